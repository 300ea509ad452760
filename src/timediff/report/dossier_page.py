"""The dossier: one page by which a steward decides, and which is signed. It has no figures, and prints as it stands."""

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from timediff import __version__
from timediff.data.describe import statistics
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.documents.answers import (
    AUDIT,
    CONDITIONS,
    EVALUATE,
    EXPIRY,
    NO_USES,
    RESIDUAL,
    USES,
    WAYS,
    answers,
    described,
    hashes,
    limits,
)
from timediff.documents.known import Known
from timediff.evaluation.attacks.registry import ATTACKS, Has
from timediff.evaluation.audit_results import Audit
from timediff.evaluation.metrics.marginals import marginals
from timediff.evaluation.score import Score
from timediff.evaluation.single_stays import COPIES
from timediff.report.audit_page import HAS, attack_tables, audited_groups, power_table
from timediff.report.audit_verdicts import attacks_of
from timediff.report.comparison_page import features_table
from timediff.report.dossier_style import STYLE
from timediff.report.number_tables import by_number
from timediff.report.page import cell, document, facts_table, header, section, table
from timediff.report.plain_words import Answer
from timediff.report.score_tables import side_by_side
from timediff.runtime.files import write_atomically

ABOUT = (
    f"By this page a data steward decides whether synthetic stays, and the model that made them, may leave the house. "
    f"Real stays appear only as aggregates of at least {MIN_AGGREGATE}, and no number is about a single person. Lines "
    "are to be filled in by hand."
)
BLANK = '<span class="blank"></span>'
FEATURES = (
    "Mean ± SD, or rate of each class, of the held-out real stays and of the synthetic ones. ▲ ▼ mark what lies far "
    f"apart; hidden: fewer than {MIN_AGGREGATE} real stays say it."
)
WITH_REAL = "Each attacker also has {} real stays of other patients of the same kind."
PLANTED = (
    "<p>Found, by how many of the training stays have a disturbed copy in the cohort; a dose above one that is found "
    "each time is not tried.</p>"
)
SMALLER = "not tried"
POWER = "The same attacks were made where it is known what there is to find: leaks that were planted, and none."
NOT_MADE = "<p><b>{}.</b> It can be made with <code>{}</code>, and this dossier anew with what that writes.</p>"
NOT_OF_GROUPS = ("all", "tstr", "trtr", "trts")  # what is lost says it
DECISIONS = ("The synthetic cohort may leave", "The run folder may leave")
CHOICES = ("yes", "no", "yes, with conditions")
ROLES = ("Data steward", "Responsible for the project", "Data protection officer")


def write_dossier_page(path: Path, known: Known) -> None:
    """Writes the page: answers, data, attacks, use, groups, limits, conditions, decision."""
    sections = [
        section("1. In one sentence each", _answers(answers(known))),
        section("2. What it is, who made it and how", _made(known)),
        section("3. What was tested against which attacker", _tested(known)),
        section("4. What it is good for", _useful(known)),
        section("5. Groups of patients", _groups(known)),
        section("6. Known limits and what risk is left", _list(limits(known)) + "<h3>What risk is left</h3>"
                + _list(RESIDUAL)),
        section("7. Permitted uses, conditions, expiry", _permitted(known)),
        section("8. Decision", _decision(known)),
    ]  # fmt: skip
    page = document(f"Dossier: {known.title}", ABOUT, {}, sections, style=STYLE, figures=False)
    write_atomically(path, page)


def _answers(found: Sequence[Answer]) -> str:
    rows = ""
    for one in found:
        reasons = "".join(f"<p>{html.escape(reason)}</p>" for reason in one.reasons[:2])
        rows += (
            f'<div class="answer"><h3>{html.escape(one.question)}</h3><div><p class="said">{html.escape(one.sentence)}'
            f'</p>{reasons}</div><p class="word"><span class="grade {one.kind}">{html.escape(one.word)}</span></p>'
            "</div>\n"
        )
    return rows


def _made(known: Known) -> str:
    about, made, run = known.about, known.provenance, known.trained
    people = {
        "Source of the real data": about.source,
        "Whose stays": about.population,
        "Legal basis": about.legal_basis,
        "Made by": about.maker,
        "Organisation": about.organisation,
        "Contact": about.contact,
        "Why it was made": about.purpose,
        "To be given to": about.recipients,
    }
    facts = {
        "Generator": f"{known.generator}, of TimeDiff {run.get('version', 'unknown')}",
        "Run": f"hash {known.identity}",
        "Training": _training(run),
        "Trained on": f"{len(known.train):,} real stays, hash {known.train.digest()}",
        "Held out": f"{len(known.test):,} real stays, hash {known.test.digest()}; split {known.split}",
        "Synthetic cohort": f"{len(known.synthetic):,} stays, hash {known.synthetic.digest()}",
        "Sampling": f"seed {made.seed}, TimeDiff {made.version}" + (f", {made.date}" if made.date else ""),
        "This dossier": f"{known.date}, TimeDiff {__version__}",
    }
    files = [[header(html.escape(f.name)), cell(f"{f.size:,} bytes"), cell(f'<code>{f.sha256}</code>')]
             for f in known.files]  # fmt: skip
    parts = [
        f"<p>{html.escape(described(known))}</p>",
        _filled(people),
        facts_table(facts),
        _statistics(known),
        _extracted(known),
        f"<h3>Features</h3><p>{FEATURES}</p>{features_table(marginals(known.test, known.synthetic))}",
        f"<h3>Files of the synthetic cohort</h3>{table(('file', 'size', 'SHA-256'), files, kind='files')}",
        f"<h3>Settings of the generator</h3>{_settings(known.settings)}",
    ]
    return "\n".join(part for part in parts if part)


def _training(run: Mapping[str, Any]) -> str:
    known = {
        "seed {}": run.get("seed"),
        "{:,} updates": run.get("updates"),
        "{:.0f} s": run.get("seconds"),
        "{}": run.get("device"),
        "begun {}": run.get("created"),
    }
    return ", ".join(text.format(value) for text, value in known.items() if value is not None)


def _filled(people: Mapping[str, str]) -> str:
    """What people have said, and a line where they have not."""
    rows = [[header(html.escape(name)), cell(html.escape(said) or BLANK)] for name, said in people.items()]
    return table((), rows, kind="facts form")


def _statistics(known: Known) -> str:
    cohorts = {"training stays": known.train, "held-out stays": known.test, "synthetic stays": known.synthetic}
    each = {name: statistics(cohort, MIN_AGGREGATE) for name, cohort in cohorts.items()}
    columns = list(dict.fromkeys(column for row in each.values() for column in row))
    rows = [
        [header(name), *(cell(html.escape(row.get(column, "–"))) for column in columns)] for name, row in each.items()
    ]
    return table(["", *columns], rows)


def _extracted(known: Known) -> str:
    if known.extraction is None:
        return ""
    rows = [[header(html.escape(rule)), cell(html.escape(count))] for rule, count in known.extraction.rows()]
    return "<h3>From all stays of the source to these</h3>" + table(("rule", "stays"), rows)


def _settings(settings: Mapping[str, Any]) -> str:
    items = "".join(
        f"<li>{html.escape(path)} = {html.escape(json.dumps(_plain(value)))}</li>" for path, value in settings.items()
    )
    return f'<ul class="settings">{items}</ul>'


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | list | tuple) or value is None else str(value)


def _tested(known: Known) -> str:
    content = _copies(known)
    for has in HAS:
        audit = known.audits.get(has)
        content += f"<h3>{html.escape(HAS[has])}</h3>"
        if audit is None:
            content += NOT_MADE.format("Not audited", html.escape(AUDIT.format(WAYS[has])))
            continue
        names = [name for name in attacks_of(audit) if ATTACKS(name).has == has]
        if any(ATTACKS(name).reference for name in names):
            knows = audit.facts.get("held-out stays", "").rpartition(" ")[2] or "some"
            content += f"<p>{html.escape(WITH_REAL.format(knows))}</p>"
        content += attack_tables(audit, names) + f"<p>{POWER}</p>" + _power(audit, has)
    return content


def _power(audit: Audit, has: Has) -> str:
    """What the attacks find of what was planted, a column a dose; of a run there is one dose."""
    tried = [one for one in audit.power if one.has == has]
    doses = sorted({one.dose for one in tried})
    if has == "run" or not tried:
        return power_table(audit, has)
    known = {(one.attack, one.dose): f"{one.found} of {one.of}" for one in tried}
    rows = [
        [header(html.escape(ATTACKS(name).title)), *(cell(known.get((name, dose), SMALLER)) for dose in doses)]
        for name in dict.fromkeys(one.attack for one in tried)
    ]
    return PLANTED + table(["attack", *(f"{dose:.1%}" if dose else "nothing" for dose in doses)], rows)


def _copies(known: Known) -> str:
    said = (
        f"<p>{known.copies:,} of {len(known.synthetic):,} synthetic stays equal a training stay value for value; of "
        "the held-out stays none does.</p>"
    )
    found = [s for s in _scores(known) if s.metric in COPIES and s.what == "share"]
    return said + (side_by_side({"synthetic": found}) if found else "")


def _useful(known: Known) -> str:
    if known.results is None:
        return NOT_MADE.format("Not evaluated", html.escape(EVALUATE))
    facts = known.results.facts
    when = f"Evaluated {facts.get('date', 'on an unknown day')} with {facts.get('version', 'an unknown version')}, "
    when += f"protocol {known.results.settings.get('protocol', 'unknown')}, seed {known.results.settings.get('seed')}."
    looks = [s for s in _scores(known) if s.metric == "discriminative" and s.what == "auc"]
    gaps = [s for s in _scores(known) if s.metric == "tstr" and s.what == "gap"]
    means = [s for s in gaps if (s.classifier or "").startswith("mean of")]
    events = [s for s in _scores(known) if s.metric == "tstr" and s.what == "events"]
    errors = [s for s in _scores(known) if s.metric == "predictive"]
    content = f"<p>{html.escape(when)} Every number and figure is in the report of the evaluation.</p>"
    titles = {
        "Can classifiers tell them from real stays?": looks,
        "What is lost by learning from synthetic stays": [*(means or gaps), *events],
        "Forecasting the next step": errors,
    }
    for title, scores in titles.items():
        content += f"<h3>{title}</h3>" + (side_by_side({"synthetic": scores}) if scores else "<p>Not measured.</p>")
    return content


def _groups(known: Known) -> str:
    within = [s for s in _scores(known, grouped=True) if s.feature is None and s.what not in NOT_OF_GROUPS]
    few = [f"{s.group}: {s.note}." for s in _scores(known, grouped=True) if s.what == "all"]
    content = "<h3>How well each group is generated</h3>"
    content += by_number({"synthetic": within}, lambda s: s.group or "", "group") if within else "<p>Not measured.</p>"
    content += f"<p>Not compared:</p>{_list(few)}" if few else ""
    content += "<h3>How easily each group is found</h3>"
    audits = {id(audit): audit for audit in known.audits.values()}.values()
    found = "".join(map(audited_groups, audits))
    return content + (found or "<p>Not measured.</p>")


def _scores(known: Known, *, grouped: bool = False) -> list[Score]:
    """Of whole cohorts, or of groups of stays."""
    if known.results is None:
        return []
    every = known.results.scores[known.name]
    return [s for s in every if s.group is not None] if grouped else [
        s for s in every if s.group is None and s.feature is None
    ]  # fmt: skip


def _permitted(known: Known) -> str:
    about = known.about
    own = {
        "Permitted uses": about.uses,
        "Conditions": about.conditions,
        "Licence": about.license,
        "Expires on": about.expires,
    }
    return (
        _filled(own)
        + '<div class="columns"><div><h3>Usual uses</h3>' + _boxes(USES)
        + "<h3>What it is not for</h3>" + _list(NO_USES)
        + "</div><div><h3>Usual conditions</h3>" + _boxes(CONDITIONS)
        + "<h3>This decision also expires</h3>" + _boxes(EXPIRY) + "</div></div>"
    )  # fmt: skip


def _decision(known: Known) -> str:
    names = ", ".join(f"{name} {digest}" for name, digest in hashes(known).items())
    choices = "".join(f'<td class="choice"><span class="box"></span> {w}</td>' for w in CHOICES)
    rows = [f'<tr><th scope="row">{what}</th>{choices}</tr>' for what in DECISIONS]
    signed = [[header(role), *(cell("") for _ in range(3))] for role in ROLES]
    return (
        f"<p>It holds for these and no others: {html.escape(names)}.</p>"
        f'<table class="decision"><tbody>{"".join(rows)}</tbody></table>'
        f'<p class="lines">Conditions {BLANK}{BLANK}{BLANK}</p>'
        + table(("", "name", "date", "signature"), signed, kind="signatures")
    )


def _list(points: Sequence[str]) -> str:
    return f'<ul class="plain">{"".join(f"<li>{html.escape(point)}</li>" for point in points)}</ul>'


def _boxes(points: Sequence[str]) -> str:
    items = "".join(f'<li><span class="box"></span> {html.escape(point)}</li>' for point in points)
    return f'<ul class="boxes">{items}</ul>'
