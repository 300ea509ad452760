"""Tables in LaTeX: whatever a name holds, each row has its cells, and nothing in it is a command."""

import math
import re

from hypothesis import given
from hypothesis import strategies as st

from timediff.evaluation.results import Results
from timediff.evaluation.score import Score
from timediff.evaluation.trainings import Training
from timediff.report.latex import escaped, runtime_latex, scores_latex

HOSTILE = r"\input{/etc/passwd} & 100% $x_1^2$ #1 ~ {[*]} né 中 🙂 a--b ''"
OURS = r"\\(?:textbackslash|textasciicircum|textasciitilde|textendash)\{\}|\\texttt\{U\+[0-9A-F]{4,6}\}"
OURS += r"|\$(?:<|>|\||-|\\pm|\\times|\\geq|\\leq|\\dagger)\$|\\[`'^~\"rcv]\{[A-Za-z]\}|\\[{}$&#%_]|\{[\[\]*`]?\}"


def bare(text: str) -> str:
    """What is left of it without the few commands that an escape consists of."""
    return re.sub(OURS, "", text)


@given(st.text())
def test_nothing_of_a_name_is_left_that_means_something_to_latex(text: str) -> None:
    shown = escaped(text)
    assert shown.isascii()
    assert not re.search(r"[\\{}$&#%_^~<>|\"\[\]*`\n\r]|--|''", bare(shown.replace("''", "", text.count('"'))))


def test_plain_names_stay_as_they_are() -> None:
    assert escaped("TimeGAN (Yoon et al. 2019), 5.2") == "TimeGAN (Yoon et al. 2019), 5.2"
    assert escaped("né_1") == r"n\'{e}\_1"
    assert escaped("0.5 ± 0.1") == r"0.5 $\pm$ 0.1"


def results() -> Results:
    scores = [
        Score("nnaa", "aa_test", 0.61, std={"cohort": 0.02}, floor=0.5),
        Score("nnaa", "risk", math.nan, note="too few"),
        Score("nnaa", "aa_test", 0.9, feature="pulse"),
    ]
    trainings = [
        Training("a", 0, 10.0, 500, 90.0, "H200"), Training("a", 1, 14.0, 400, 110.0, "H200"),
        Training(HOSTILE, 0, 120.0, 500, 10.0, "H200", at_once=2, resumed=True),
        Training("none", 0, failure="it raised ValueError."), Training("none", 1, failure="it raised ValueError."),
    ]  # fmt: skip
    return Results(("a", HOSTILE), {"a": scores, HOSTILE: scores[:1]}, {}, {}, trainings=trainings)


def cells(table: str) -> list[list[str]]:
    """The rows of a table, as LaTeX would part them."""
    lines = [line for line in table.splitlines() if line.endswith(r" \\")]
    return [re.split(r"(?<!\\) & ", line.removesuffix(r" \\")) for line in lines]


def test_every_row_has_a_cell_a_column() -> None:
    for table in (scores_latex(results()), runtime_latex(results())):
        columns = len(re.search(r"\{tabular\}\{(\w+)\}", table)[1])  # type: ignore[index]
        assert {len(row) for row in cells(table)} == {columns}
        assert "passwd" in table
        assert r"\input{/etc" not in table
        for line in table.splitlines():
            assert not line.startswith(("[", "*"))


def test_scores_have_their_mean_and_standard_deviation_over_seeds() -> None:
    heading, row, *rest = cells(scores_latex(results()))
    assert heading[:4] == ["number", "good value", "real against real", "a"]
    assert row[2:4] == ["0.500", r"0.610 $\pm$ 0.020"]
    assert all("pulse" not in cell for one in rest for cell in one)


def test_times_have_ratios_to_the_first_and_marks_where_they_must_not_be_compared() -> None:
    _, first, second, third = cells(runtime_latex(results()))
    assert first == ["a", r"12 $\pm$ 3", r"1 $\times$", "450", r"100 $\pm$ 14", r"1 $\times$", "H200"]
    assert second[1:4] == [r"120{*}$\dagger$", r"10 $\times$", "500"]
    assert second[5] == r"0.1 $\times$"
    assert third[1] == r"\textendash{}"
    assert r"% none, seeds 0, 1: it raised ValueError." in runtime_latex(results()).splitlines()
