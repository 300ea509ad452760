"""Tables for a paper: scores and times of a comparison in LaTeX, which need the package booktabs and nothing else."""

import math
import unicodedata
from collections.abc import Sequence

from timediff.evaluation.results import Results
from timediff.evaluation.score import Score
from timediff.evaluation.trainings import runtimes
from timediff.report.meanings import classifier, meaning
from timediff.report.summary import shown
from timediff.report.training_time import amount, first_timed, marks, notes, times

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": "$<$", ">": "$>$", "|": "$|$", '"': "''",
    "[": "{[}", "]": "{]}", "*": "{*}",  # after the end of a row these two would be read as its options
    "`": "{`}", "–": r"\textendash{}",
    "±": r"$\pm$", "×": r"$\times$", "−": "$-$", "≥": r"$\geq$", "≤": r"$\leq$", "†": r"$\dagger$",
}  # fmt: skip
ACCENTS = {"\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0308": '"', "\u030a": "r", "\u0327": "c",
           "\u030c": "v"}  # fmt: skip


def escaped(text: str) -> str:
    """The text as LaTeX prints it, whatever is in it; a letter that no common font has becomes its number."""
    apart = ["{}" * (letter == before and letter in "-'") for before, letter in zip(" " + text, text, strict=False)]
    return "".join(between + _letter(letter) for between, letter in zip(apart, text, strict=True))


def _letter(letter: str) -> str:
    if letter in SPECIAL:
        return SPECIAL[letter]
    if letter.isascii():
        return letter if letter.isprintable() else " "
    parts = unicodedata.normalize("NFD", letter)
    if len(parts) == 2 and parts[0].isascii() and parts[0].isalpha() and parts[1] in ACCENTS:
        return f"\\{ACCENTS[parts[1]]}{{{parts[0]}}}"
    return f"\\texttt{{U+{ord(letter):04X}}}"


def scores_latex(results: Results) -> str:
    """A row a number of the whole cohort and a column a generator: mean ± SD over training seeds."""
    rows = {score.key: score for name in results.generators for score in results.scores[name] if shown(score)}
    body = []
    for key, first in rows.items():
        who = classifier(first)
        title = meaning(first).title + (f" ({who})" if who else "")
        found = [next((s for s in results.scores[name] if s.key == key), None) for name in results.generators]
        cells = [title, meaning(first).good, _number(first.floor), *map(_cell, found)]
        body.append([escaped(cell) for cell in cells])
    headings = ["number", "good value", "real against real", *results.generators]
    above = [
        r"% \usepackage{booktabs}, and \input{table.tex} within a table. Mean and one standard deviation over training",
        "% seeds; of a number that has none, there was one training, or the worst of them counts.",
    ]
    return _tabular(above, "llr" + "r" * len(results.generators), list(map(escaped, headings)), body)


def runtime_latex(results: Results) -> str:
    """A row a generator: seconds of training, updates, stays sampled a second, and ratios to the first."""
    known = runtimes(results.trainings)
    first = first_timed(known)
    body = []
    for one in known:
        time, rate = amount(one.seconds, one.std), amount(one.sampling, one.sampling_std)
        cells = [one.generator, time + marks(one), times(one.ratio), amount(one.updates), rate + marks(one)]
        body.append([escaped(cell) for cell in (*cells, times(one.sampling_ratio), one.hardware or "–")])
    headings = ["generator", "training (s)", "ratio", "updates", "stays a second", "ratio", "hardware"]
    above = [
        r"% \usepackage{booktabs}, and \input{runtime.tex} within a table. Mean and one standard deviation over",
        f"% training seeds; ratios are to {escaped(first)}." if first else "% training seeds.",
        *(f"% {sign} {what}" for sign, what in notes(known)),
        *(f"% {escaped(f'{one.generator}, {why}')}" for one in known for why in one.failures),
    ]
    return _tabular(above, "lrrrrrl", headings, body)


def _tabular(above: Sequence[str], columns: str, headings: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [" & ".join(row) + r" \\" for row in body]
    head = " & ".join(headings) + r" \\"
    parts = [*above, rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *lines, r"\bottomrule"]
    return "\n".join([*parts, r"\end{tabular}", ""])


def _cell(score: Score | None) -> str:
    if score is None or math.isnan(score.value):
        return "–"
    if meaning(score).whole:
        return f"{score.value:,.0f}"
    std = score.std.get("cohort", math.nan)
    return _number(score.value) + ("" if math.isnan(std) else f" ± {std:.3f}")


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}".replace("-", "−")
