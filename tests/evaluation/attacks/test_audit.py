"""An audit: two verdicts that say what decided, power beside them, and nothing about a single person."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helpers.leaky import Leaky, LeakySettings
from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.evaluation.attacks.planted import with_copies
from timediff.evaluation.audit import audit, audit_to
from timediff.evaluation.audit_results import Audit
from timediff.evaluation.audit_work import AuditSettings
from timediff.evaluation.score import unavailable
from timediff.generators.base import Generator
from timediff.report.audit_verdicts import audit_verdicts, leaking
from timediff.sources.simulated import simulate

QUICK = AuditSettings(attacks=("distance", "attribute", "loss", "lira"), models=4)


@pytest.fixture(scope="module")
def real() -> list[Cohort]:
    """Training stays, held-out ones, and others of the same hospital."""
    whole = simulate(700, steps=8, seed=6)
    parts = (slice(0, 200), slice(200, 500), slice(500, 700))
    return [replace(whole.take(np.arange(700)[part]), stay_id=np.arange(700)[part]) for part in parts]


def fitted(cohort: Cohort, **settings: float) -> Generator:
    return Leaky(settings=LeakySettings(**settings)).fit(cohort, seed=0)


def words(found: Audit) -> list[str]:
    return [verdict.word for verdict in audit_verdicts(found)]


@pytest.fixture(scope="module")
def leak(real: list[Cohort]) -> Audit:
    model = fitted(real[0])
    return audit(real[0], real[1], run=model, synthetic=model.sample(300, seed=1), settings=QUICK)


def test_a_leak_is_called_one_by_the_attack_that_decided(leak: Audit) -> None:
    cohort, run = audit_verdicts(leak)
    assert (cohort.word, run.word) == ("signs of a leak", "signs of a leak")
    assert re.match(r"Of 2 attacks: nearest synthetic stay: AUC 0\.[89]", cohort.sentences[0])
    assert "likelihood ratio (LiRA), online: AUC" in run.sentences[0] or "loss: AUC" in run.sentences[0]
    assert leaking(leak)


def test_where_nothing_is_found_it_says_what_would_have_been(real: list[Cohort]) -> None:
    """A cohort of other patients: no sign, if copies of a hundredth would have been seen; otherwise not shown."""
    clean = fitted(real[2], noise=0.3).sample(300, seed=1)
    found = audit(real[0], real[1], synthetic=clean, settings=replace(QUICK, attacks=("distance",)))
    cohort, run = audit_verdicts(found)
    assert run.word == "not attacked"
    doses = [one.dose for one in found.power if one.found == one.of and one.dose]
    assert doses
    assert not [one for one in found.power if one.dose == 0 and one.found]
    expected = "no sign of a leak" if min(doses) <= 0.01 else "not shown"
    assert cohort.word == expected
    assert f"copies of 1 training stay in {round(1 / min(doses))}" in " ".join(cohort.sentences)
    weak = replace(found, power=[replace(one, found=0) for one in found.power])
    assert words(weak)[0] == "not shown"
    assert words(replace(found, power=[]))[0] == "not shown"


def test_an_attack_that_could_not_be_made_is_named_in_the_verdict(leak: Audit) -> None:
    lost = unavailable("audit", "auc", "there are too few patients", classifier="distance")
    without = [score for score in leak.scores if score.classifier != "distance"]
    cohort, _ = audit_verdicts(replace(leak, scores=[lost, *without]))
    assert cohort.sentences[-1] == "Not available: nearest synthetic stay (there are too few patients)."
    nothing, _ = audit_verdicts(replace(leak, scores=[lost]))
    assert (nothing.word, nothing.sentences) == ("not attacked", cohort.sentences[-1:])


def test_groups_and_the_most_exposed_have_areas_of_their_own(leak: Audit) -> None:
    groups = {s.group for s in leak.scores if s.group}
    assert any(group.startswith("the tenth of the stays on which training shows most") for group in groups)
    assert all(s.n >= 20 for s in leak.scores if s.group)


def test_nothing_is_about_one_person(leak: Audit, tmp_path: Path) -> None:
    """No list in what is written is as long as there are candidates, and no stay's number stands in it."""
    leak.write(tmp_path / "audit")
    text = (tmp_path / "audit" / "audit.json").read_text()

    def longest(table: object) -> int:
        inner = list(table.values()) if isinstance(table, dict) else table if isinstance(table, list) else []
        numbers = sum(isinstance(one, (int, float)) for one in inner)
        return max([numbers, *map(longest, inner)], default=0)

    assert longest(json.loads(text)) < 12
    assert "stay_id" not in text
    assert Audit.read(tmp_path / "audit").to_json() == leak.to_json()


def test_the_page_is_whole_and_plain(leak: Audit, tmp_path: Path) -> None:
    leak.write(tmp_path / "audit")
    page = (tmp_path / "audit" / "audit.html").read_text()
    for words in ("May the synthetic cohort leave the house?", "May the run folder leave the house?", "signs of a leak",
                  "would have seen", "Carlini et al., 2022", "Not covered"):  # fmt: skip
        assert words in page
    assert not re.search(r"\bnan\b", page)


def test_the_same_audit_has_the_same_numbers(real: list[Cohort], leak: Audit) -> None:
    model = fitted(real[0])
    again = audit(real[0], real[1], run=model, synthetic=model.sample(300, seed=1), settings=QUICK)
    assert again.scores == leak.scores
    assert again.power == leak.power


def test_a_stopped_audit_goes_on_with_the_models_that_it_has(
    real: list[Cohort], leak: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, trained = fitted(real[0]), []
    fit = Leaky.fit

    def counted(self: Leaky, cohort: Cohort, **options: object) -> Leaky:
        if len(trained) == 2:
            trained.append(0)
            raise KeyboardInterrupt
        trained.append(len(cohort))
        return fit(self, cohort, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Leaky, "fit", counted)
    given = {"run": model, "synthetic": model.sample(300, seed=1), "settings": QUICK}
    with pytest.raises(KeyboardInterrupt):
        audit_to(tmp_path / "out", real[0], real[1], **given)  # type: ignore[arg-type]
    with pytest.raises(TimeDiffError, match="add --resume"):
        audit_to(tmp_path / "out", real[0], real[1], **given)  # type: ignore[arg-type]
    other = replace(QUICK, seed=1)
    with pytest.raises(TimeDiffError, match="belongs to another audit"):
        audit_to(tmp_path / "out", real[0], real[1], resume=True, **{**given, "settings": other})  # type: ignore[arg-type]
    trained[2:] = [0]
    found = audit_to(tmp_path / "out", real[0], real[1], resume=True, **given)  # type: ignore[arg-type]
    assert len(trained) == 3 + 3  # the one that memorises was there, and the first of four
    assert found.scores == leak.scores
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out"]


def test_copies_are_planted_at_their_dose(real: list[Cohort]) -> None:
    rng = np.random.default_rng(0)
    train, clean = (replace(one, schema=one.schema.generated()) for one in (real[0], real[2]))
    planted = with_copies(clean, train, 0.1, rng)
    assert len(planted) == len(clean)
    first = train.schema.temporal[0].name
    copies, originals = (np.nan_to_num(one, nan=-1e6) for one in (planted.series[first][-20:], train.series[first]))
    gaps = np.abs(copies[:, None] - originals[None]).mean(axis=2)
    assert (gaps.min(axis=1) < 0.2 * np.nanstd(train.series[first])).all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"run": None, "synthetic": None}, "nothing to attack"),
        ({"held_out": slice(0, 150)}, "share what they must not"),
        ({"few": True}, "needs at least 100"),
        ({"other": True}, "was not trained on TRAIN"),
        ({"settings": AuditSettings(attacks=("distanse",))}, "did you mean distance"),
        ({"settings": AuditSettings(models=2)}, "expected at least 4"),
        ({"settings": AuditSettings(attacks=("lira",)), "run": None}, "needs --run RUN"),
        ({"settings": AuditSettings(attacks=("distance",)), "synthetic": None}, "needs --synthetic SYN"),
    ],
)
def test_what_would_make_it_untrue_is_refused(change: dict[str, object], said: str, real: list[Cohort]) -> None:
    train, held_out = real[0], real[1]
    if "held_out" in change:
        held_out = real[0].take(np.arange(150))
    if "few" in change:
        held_out = real[1].take(np.arange(60))
    model = fitted(real[2] if "other" in change else train)
    given = {"run": model, "synthetic": model.sample(100, seed=0), "settings": QUICK}
    given |= {key: value for key, value in change.items() if key in given}
    with pytest.raises(TimeDiffError, match=said):
        audit(train, held_out, **given)  # type: ignore[arg-type]
