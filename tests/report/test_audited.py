"""An audit of a synthetic cohort answers the third question of its evaluation; one of other stays is refused."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.evaluation.audit import audit
from timediff.evaluation.audit_results import Audit
from timediff.evaluation.audit_work import AuditSettings
from timediff.evaluation.evaluate import evaluate, evaluate_to
from timediff.evaluation.results import Results
from timediff.evaluation.score import Score
from timediff.report.audit_verdicts import _effect, cohort_verdict
from timediff.report.verdicts import Verdict, exposes, leaks, verdicts
from timediff.sources.simulated import simulate

ICU = simulate(700, steps=4, seed=0)
TRAIN, TEST, FRESH, OTHER = (
    ICU.take(np.arange(*ends)) for ends in ((0, 200), (200, 400), (400, 600), (500, 700))
)  # 200 stays each
ONLY = ["copies", "near_copies"]


def audited(synthetic: Cohort, **changes: bool) -> Audit:
    return audit(TRAIN, TEST, synthetic=synthetic, settings=AuditSettings(attacks=("distance",), **changes))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def fresh() -> Audit:
    return audited(FRESH)


@pytest.fixture(scope="module")
def copied() -> Audit:
    return audited(TRAIN, power=False)


def no_copies(**about: float) -> list[Score]:
    return [Score(metric, "share", 0.0, n=400, floor=0.0, **about) for metric in ONLY]  # type: ignore[arg-type]


def answer(found: Audit, scores: Sequence[Score] | None = None, held_out: int = 1000) -> Verdict:
    return exposes(no_copies() if scores is None else scores, held_out=held_out, audit=found)


def strong(found: Audit) -> Audit:
    """The same, had its attacks found the smallest of all doses."""
    return replace(found, power=[replace(one, dose=0.005, found=one.of) for one in found.power])


def test_the_audit_s_verdict_about_the_cohort_is_the_answer(fresh: Audit, copied: Audit) -> None:
    weak = replace(fresh, power=[])
    for found, word in ((copied, "signs of a leak"), (strong(fresh), "no sign of a leak"), (weak, "not shown")):
        verdict, own = answer(found), cohort_verdict(found)
        assert verdict.word == own.word == word
        assert verdict.sentences[0] == f"Audit: {own.sentences[0]}"
        assert set(own.sentences[1:]) <= set(verdict.sentences)
        assert "No exact copies or near copies beyond chance were found." in verdict.sentences
        assert not any("which was not made" in sentence for sentence in verdict.sentences)


def test_copies_are_signs_of_a_leak_whatever_the_audit_says(fresh: Audit) -> None:
    scores = [replace(no_copies()[0], value=0.1), no_copies()[1]]
    verdict = answer(strong(fresh), scores)
    assert verdict.word == "signs of a leak"
    assert verdict.sentences[0].startswith("10.00% of the synthetic stays are exact copies")
    assert verdict.sentences[1].startswith("Audit: None of 1 attacks")


def test_what_an_audit_tries_itself_is_no_reason_beside_it(fresh: Audit) -> None:
    few = answer(strong(fresh), no_copies(floor_high=0.2), held_out=60)
    missing = answer(strong(fresh), [])
    assert few.word == missing.word == "no sign of a leak"
    assert "Not measured: copies, near copies." in missing.sentences


def test_an_evaluation_keeps_the_audits_it_was_given(fresh: Audit, copied: Audit, tmp_path: Path) -> None:
    cohorts = {"fresh": FRESH, "copied": TRAIN, "none": OTHER}
    settings = {"only": ONLY, "protocol": "paper"}
    results = evaluate(TRAIN, TEST, cohorts, audits=[copied, fresh], **settings)
    assert {name: found.facts for name, found in results.audits.items()} == {
        "copied": copied.facts, "fresh": fresh.facts
    }  # fmt: skip
    results.write(tmp_path / "out")
    read = Results.read(tmp_path / "out")
    for name in cohorts:
        assert verdicts(read, name)[2] == verdicts(results, name)[2]
    assert leaks(read) == ["copied"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("<p>Audit: ") == 2
    assert page.count("which was not made") == 1
    read.report(tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text() == page


@pytest.mark.parametrize(("what", "chance"), [("auc", 0.5), ("tpr_at_0.01", 0.0), ("risk", 0.0)])
def test_an_attack_counts_from_two_hundredths_above_chance_on(what: str, chance: float) -> None:
    effects = [_effect([Score("membership", what, chance + above)]) for above in (0.019, 0.021)]
    assert effects[0] < 0 < effects[1]


def test_an_attack_that_succeeds_alone_is_a_leak(copied: Audit) -> None:
    results = Results(("a",), {"a": no_copies()}, {}, {}, audits={"a": copied})
    assert leaks(results) == ["a"]
    assert leaks(replace(results, audits={})) == []


def test_an_edited_audit_is_refused(copied: Audit, tmp_path: Path) -> None:
    copied.write(tmp_path / "audit")
    stored = tmp_path / "audit" / "audit.json"
    stored.write_text(stored.read_text().replace('"seed": 0', '"seed": 1'))
    with pytest.raises(TimeDiffError, match="was edited or damaged since it was written"):
        Audit.read(tmp_path / "audit")
    assert Audit.read(tmp_path / "audit", allow_edited=True).settings["seed"] == 1


def test_an_audit_of_other_stays_is_refused(fresh: Audit, tmp_path: Path) -> None:
    def refused(train: Cohort, synthetic: Cohort | list[Cohort], found: Audit, words: str) -> None:
        for made in (evaluate, lambda *given, **rest: evaluate_to(tmp_path / "out", *given, **rest)):
            with pytest.raises(TimeDiffError, match=words):
                made(train, TEST, {"a": synthetic}, audits=[found])
        assert list(tmp_path.iterdir()) == []

    refused(OTHER, FRESH, fresh, "of another training cohort")
    refused(TRAIN, OTHER, fresh, "of no synthetic cohort that is evaluated here")
    refused(TRAIN, [FRESH, OTHER], fresh, "where several cohorts have one name")
    facts = {name: said for name, said in fresh.facts.items() if not name.startswith("synthetic")}
    refused(TRAIN, FRESH, replace(fresh, facts=facts), "attacked no synthetic cohort")
