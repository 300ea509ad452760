"""The model card, as model hubs read it: Markdown with a head in YAML, and the same as JSON.

Its headings follow Mitchell et al. 2019, "Model Cards for Model Reporting".
"""

import json
import math
from typing import Any

from timediff.documents import markdown
from timediff.documents.answers import AUDIT, EVALUATE, NO_USES, RESIDUAL, USES, WAYS, answers, described, limits
from timediff.documents.known import Known
from timediff.evaluation.score import Score
from timediff.report.meanings import classifier, find_metric, meaning
from timediff.report.summary import shown

TAGS = ("synthetic-data", "electronic-health-records", "time-series", "intensive-care", "timediff")


def card_table(known: Known) -> dict[str, Any]:
    """All of the card; the head of the Markdown is its first part."""
    about, run = known.about, known.trained
    return {
        "head": head(known),
        "model": {
            "name": known.generator,
            "version": run.get("version"),
            "hash": known.identity,
            "made_by": about.maker or None,
            "organisation": about.organisation or None,
            "contact": about.contact or None,
            "license": about.license or None,
            "citation": about.citation or None,
            "settings": {path: _plain(value) for path, value in known.settings.items()},
        },
        "training": {
            "stays": len(known.train),
            "data_sha256": known.train.digest(),
            "source": about.source or None,
            "seed": run.get("seed"),
            "updates": run.get("updates"),
            "seconds": run.get("seconds"),
            "device": run.get("device"),
            "begun": run.get("created"),
        },
        "evaluation": {
            "held_out_stays": len(known.test),
            "held_out_sha256": known.test.digest(),
            "split": known.split,
            "answers": {one.question: {"word": one.word, "sentence": one.sentence} for one in answers(known)},
            "scores": [_score(score) for score in _headlines(known)],
        },
        "uses": [about.uses] if about.uses else list(USES),
        "not_for": list(NO_USES),
        "limits": limits(known),
        "risks": list(RESIDUAL),
        "date": known.date,
    }


def head(known: Known) -> dict[str, Any]:
    """What a hub searches by."""
    about = known.about
    found: dict[str, Any] = {"library_name": "timediff", "tags": list(TAGS)}
    found |= {"license": "other", "license_name": about.license} if about.license else {}
    results = [
        {
            "task": {"type": "other", "name": "generating intensive-care stays"},
            "dataset": {"type": "other", "name": f"held-out stays {known.test.digest()[:16]}"},
            "metrics": [{"type": s.metric, "name": _name(s), "value": s.value} for s in _headlines(known)],
        }
    ]
    return found | ({"model-index": [{"name": known.title, "results": results}]} if _headlines(known) else {})


def card_markdown(known: Known, table: dict[str, Any]) -> str:
    """JSON is YAML too, so each value of the head is written as JSON: no text in it can end it."""
    yaml = "".join(f"{key}: {json.dumps(value, ensure_ascii=True)}\n" for key, value in table["head"].items())
    about, training = known.about, table["training"]
    people = {"Made by": about.maker, "Organisation": about.organisation, "Contact": about.contact,
              "Licence": about.license, "Cite as": about.citation}  # fmt: skip
    trained = {
        "Training data": f"{training['stays']:,} real stays, SHA-256 {training['data_sha256']}",
        "Source": about.source,
        "Seed": str(training["seed"]),
        "Updates": "none" if training["updates"] is None else f"{training['updates']:,}",
        "Hardware": str(training["device"]),
    }
    scores = [[_name(s), f"{s.value:.3f}", _ends(s), "" if math.isnan(s.floor) else f"{s.floor:.3f}"]
              for s in _headlines(known)]  # fmt: skip
    measured = (
        markdown.table(("number", "value", "95 % interval", "real against real"), scores)
        if scores
        else f"Not evaluated. `{EVALUATE}`\n"
    )
    audits = "".join(
        f"Not audited ({name}). `{AUDIT.format(WAYS[has])}`\n\n"
        for has, name in (("cohort", "synthetic cohort"), ("run", "run folder"))
        if has not in known.audits
    )
    parts = {
        "Model details": f"{markdown.escaped(described(known))}\n\n" + markdown.facts(people),
        "Intended use": markdown.points(table["uses"]) + "\nNot for:\n\n" + markdown.points(NO_USES),
        "Answers": markdown.points([f"{one.question} {one.sentence}" for one in answers(known)]),
        "Training data": markdown.facts(trained),
        "Evaluation data": markdown.points(
            [f"{len(known.test):,} real stays that it has not seen, SHA-256 {known.test.digest()}; split {known.split}"]
        ),
        "Metrics": measured + (f"\n{audits}" if audits else ""),
        "Caveats": markdown.points(table["limits"]),
        "Ethical considerations": markdown.points(RESIDUAL),
        "Settings": "```toml\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in table["model"]["settings"].items())
        + "```\n",
    }  # fmt: skip
    body = "\n".join(f"## {heading}\n\n{text}" for heading, text in parts.items())
    return f"---\n{yaml}---\n\n# {markdown.escaped(known.title)}\n\n{body}"


def _headlines(known: Known) -> list[Score]:
    """The numbers that a decision rests on, those that there are."""
    if known.results is None:
        return []
    return [s for s in known.results.scores[known.name] if shown(s) and not math.isnan(s.value)]


def _score(score: Score) -> dict[str, Any]:
    known = {"metric": score.metric, "number": score.what, "name": _name(score), "value": score.value}
    ends = {"low": score.low, "high": score.high, "real_against_real": score.floor}
    return known | {name: value for name, value in ends.items() if not math.isnan(value)}


def _name(score: Score) -> str:
    who, found = classifier(score), find_metric(score.metric)
    title = f"{found.title if found else score.metric}: {meaning(score).title}"
    return f"{title} ({who})" if who else title


def _ends(score: Score) -> str:
    return "" if math.isnan(score.low) or math.isnan(score.high) else f"{score.low:.3f} to {score.high:.3f}"


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value if isinstance(value, bool | int | float | str | list) or value is None else str(value)
