"""The page of an audit: two verdicts, what each attacker has and achieves, and what he would have found."""

import html
import json
import math
from collections.abc import Sequence
from pathlib import Path

from timediff.evaluation.attacks.registry import ATTACKS, Has
from timediff.evaluation.audit_results import Audit
from timediff.evaluation.score import Score
from timediff.report.audit_verdicts import QUESTIONS, RULES, attacks_of, audit_verdicts, smallest
from timediff.report.interactive import STYLE
from timediff.report.page import cell, document, facts_table, header, section, table
from timediff.runtime.files import write_atomically

GRADES = {"signs of a leak": "poor", "with care": "care", "no sign of a leak": "good", "not shown": "few"}
ABOUT = (
    "Attacks on real stays, of which some were trained on: can someone tell which? No number here is about a single "
    "patient."
)
HAS: dict[Has, str] = {
    "cohort": "Who has the synthetic cohort only",
    "run": "Who has the run folder too: settings, weights, and with them as many synthetic stays as he likes",
}
RATES = {"tpr_at_0.1": "found at 10 % false alarms", "tpr_at_0.01": "at 1 %", "tpr_at_0.001": "at 0.1 %"}
READING = (
    "<b>AUC</b>: the chance that the attack ranks a training stay above another one; .5 is guessing. <b>Found at 1 % "
    "false alarms</b>: the fraction of training stays that it names when it is wrong about one in a hundred others; 1 "
    "% is guessing. It matters more than the AUC: an attack that is sure of a few patients has a small AUC.",
    "<b>ε proven</b>: were the model differentially private, its ε could not be smaller (95 % confidence). A proof of "
    "a leak where it is large, and no proof of privacy where it is 0.",
    "<b>By chance</b>: how likely an attack that knows nothing does as well.",
    "<b>Right about training stays and others</b>: how often a guess about someone is right. What it is right about in "
    "people who were not trained on is medicine; the <b>risk</b> is what goes beyond it.",
    "<b>Would have seen</b>: the smallest part of the training stays whose disturbed copies in a cohort without a leak "
    "the attack finds in each of three trials.",
    "Not covered: several releases of the same patients, an attacker who trains far more models, what is known of a "
    "patient from elsewhere.",
)


def write_audit_page(path: Path, audit: Audit) -> None:
    cards = ""
    for verdict in audit_verdicts(audit):
        words = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in verdict.sentences)
        grade = f'<p><span class="grade {GRADES.get(verdict.word, "none")}">{verdict.word}</span></p>'
        cards += f'<div class="verdict"><h3>{verdict.question}</h3>{grade}{words}</div>\n'
    rules = f"<details><summary>The rules behind these words</summary><p>{html.escape(RULES)}</p></details>"
    sections = [section("Verdicts", f'<div class="verdicts">\n{cards}</div>\n{rules}')]
    for has in QUESTIONS:
        names = [name for name in attacks_of(audit) if ATTACKS(name).has == has]
        if names:
            sections.append(section(HAS[has], attack_tables(audit, names)))
    sections += [
        section("Groups of patients", groups) if (groups := audited_groups(audit)) else "",
        section("What the attacks find where it is known", power_table(audit)),
        section("Facts", facts_table(audit.facts) + _settings(audit)),
        section("How to read this page", f'<ul class="plain">{"".join(f"<li>{p}</li>" for p in READING)}</ul>'),
    ]
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in audit.notes)
    kept = [one for one in sections if one]
    write_atomically(path, document("Audit by attack", ABOUT + notes, {}, kept, style=STYLE, figures=False))


def attack_tables(audit: Audit, names: Sequence[str]) -> str:
    """What each attacker does, then what he achieves: attacks on membership, and guesses."""
    said = "".join(
        f"<li><b>{html.escape(one.title)}</b>: {html.escape(one.sentence)} <i>{html.escape(one.source)}</i></li>"
        for one in map(ATTACKS, names)
    )
    content = f'<ul class="plain">{said}</ul>'
    membership = [name for name in names if ATTACKS(name).kind == "membership"]
    if membership:
        headings = ["attack", "AUC", *RATES.values(), "ε proven", "by chance", "would have seen"]
        rows = []
        for name in membership:
            known = _of(audit, name)
            cells = [_number(known.get(what)) for what in ("auc", *RATES, "epsilon")]
            rows.append([header(html.escape(ATTACKS(name).title)), *map(cell, cells), cell(_chance(known)),
                         cell(_dose(audit, name))])  # fmt: skip
        content += table(headings, rows)
    others = [name for name in names if name not in membership]
    if others:
        headings = ["guess", "right about training stays", "about others", "risk", "by chance", "would have seen"]
        rows = []
        for name in others:
            known = _of(audit, name)
            cells = [_number(known.get(what)) for what in ("right_training", "right_others", "risk")]
            rows.append([header(html.escape(ATTACKS(name).title)), *map(cell, cells), cell(_chance(known)),
                         cell(_dose(audit, name))])  # fmt: skip
        content += table(headings, rows)
    return content


def _of(audit: Audit, name: str) -> dict[str, Score]:
    return {s.what: s for s in audit.scores if s.classifier == name and s.group is None}


def _number(score: Score | None) -> str:
    if score is None:
        return "–"
    if math.isnan(score.value):
        return f'<span class="part">not available</span><br><small>{html.escape(score.note)}</small>'
    ends = "" if math.isnan(score.low) else f"<br><small>{score.low:.3f} to {score.high:.3f}</small>"
    return f"{score.value:.3f}{ends}"


def _chance(known: dict[str, Score]) -> str:
    score = known.get("chance")
    if score is None or math.isnan(score.value):
        return "–"
    return "&lt; 0.001" if score.value < 0.001 else f"{score.value:.3f}"


def _dose(audit: Audit, name: str) -> str:
    own = [one for one in audit.power if one.attack == name]
    if not own:
        return "not tried"
    dose = smallest(own, name)
    if own[0].has == "run":
        return html.escape(own[0].planted) if dose <= 1 else "not even that"
    return f"1 stay in {round(1 / dose):,}" if dose <= 1 else f"not 1 in {round(1 / max(p.dose for p in own)):,}"


def audited_groups(audit: Audit) -> str:
    """AUC of each attack within groups of candidates."""
    scores = [s for s in audit.scores if s.group is not None and s.what == "auc"]
    if not scores:
        return ""
    attacks = list(dict.fromkeys(s.classifier for s in scores))
    groups = list(dict.fromkeys(s.group for s in scores))
    known = {(s.group, s.classifier): s for s in scores}
    rows = [
        [header(html.escape(group or "")), *(cell(_number(known.get((group, name)))) for name in attacks)]
        for group in groups
    ]
    titles = [ATTACKS(name or "").title for name in attacks]
    return "<p>AUC among some patients only: who stands out is easier to find.</p>" + table(["group", *titles], rows)


def power_table(audit: Audit, has: Has | None = None) -> str:
    """What the attacks find of what was planted; those on the cohort or the run alone, where `has` says so."""
    tried = [one for one in audit.power if has in (None, one.has)]
    if not tried:
        return "<p>Not tried.</p>"
    rows = [
        [
            header(html.escape(ATTACKS(one.attack).title)),
            cell(html.escape("nothing" if one.has == "cohort" and not one.dose else one.planted)),
            cell(f"{one.dose:.1%}" if one.has == "cohort" else "–"),
            cell(f"{one.found} of {one.of}"),
        ]
        for one in tried
    ]
    return table(["attack", "planted", "of the training stays", "found"], rows)


def _settings(audit: Audit) -> str:
    plain = {
        str(name): value if isinstance(value, str) else json.dumps(value) for name, value in audit.settings.items()
    }
    return f"<details><summary>Settings</summary>{facts_table(plain)}</details>"
