"""Shadow models: the same ones however they are trained, and as many as there is time for."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import timediff as td
from helpers.leaky import Leaky, Mortal, MortalSettings
from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.evaluation.attacks import shadows as module
from timediff.evaluation.attacks.case import Shadow
from timediff.evaluation.attacks.shadows import FEWEST, Budget, ShadowPlan, TooFew, shadow_models, usual_jobs
from timediff.evaluation.audit import audit, audit_to
from timediff.evaluation.audit_work import AuditSettings
from timediff.generators.base import Generator
from timediff.runtime.worker import Ended

SMALL = {"model.hidden": 8, "training.steps": 4, "training.batch": 16, "diffusion.steps": 10}


@pytest.fixture(scope="module")
def real() -> list[Cohort]:
    """Training stays, and held-out ones."""
    whole = td.simulate(320, steps=4, seed=6)
    return [replace(whole.take(np.arange(*part)), stay_id=np.arange(*part)) for part in ((0, 120), (120, 320))]


@pytest.fixture(scope="module")
def model(real: list[Cohort]) -> Generator:
    return td.TimeDiff("paper", assignments=SMALL).fit(real[0], seed=0)


def plan(like: Generator, cohort: Cohort, **changes: object) -> ShadowPlan:
    given = ShadowPlan(like, cohort, np.arange(len(cohort)), FEWEST, seed=3, size=0, changes={})
    return replace(given, **changes)  # type: ignore[arg-type]


def mortal(cohort: Cohort, dies_from: int) -> Generator:
    return Mortal(settings=MortalSettings(dies_from=dies_from)).fit(cohort, seed=0)


def contents(folder: Path) -> dict[str, bytes]:
    files = [*folder.glob("shadow-*/weights.safetensors"), *folder.glob("shadow-*-cohort/*.parquet")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def alike(one: Shadow, other: Shadow) -> bool:
    assert one.synthetic is not None
    assert other.synthetic is not None
    same_cohort = one.synthetic.digest() == other.synthetic.digest()
    return one.model.identity == other.model.identity and same_cohort and (one.trained == other.trained).all()


def test_several_at_once_are_the_same_models_byte_by_byte(model: Generator, real: list[Cohort], tmp_path: Path) -> None:
    """One after the other in memory, so in a folder, and by workers in a folder and in one that is soon gone."""
    here = shadow_models(plan(model, real[1], size=150), None)[0]
    found = [here]
    for jobs in (1, 2):
        folder = tmp_path / str(jobs)
        folder.mkdir()
        found.append(shadow_models(plan(model, real[1], size=150, jobs=jobs), folder)[0])
    found.append(shadow_models(plan(model, real[1], size=150, jobs=2), None)[0])
    assert len(contents(tmp_path / "1")) == 3 * FEWEST
    assert contents(tmp_path / "1") == contents(tmp_path / "2")
    for several in found[1:]:
        assert len(several) == FEWEST
        assert all(map(alike, here, several))
    assert len({one.model.identity for one in here}) == FEWEST


def test_an_audit_says_the_same_of_several_at_once(model: Generator, real: list[Cohort]) -> None:
    settings = AuditSettings(("shadow-classifier", "lira"), models=FEWEST)
    given = {"run": model, "synthetic": model.sample(120, seed=1)}
    one, two = (audit(*real, **given, settings=replace(settings, jobs=jobs)) for jobs in (1, 2))  # type: ignore[arg-type]
    assert one.scores == two.scores
    assert one.power == two.power
    assert one.settings == two.settings


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(("attack", "sampled"), [("lira", 0), ("rmia", 0), ("shadow-classifier", FEWEST)])
def test_only_attacks_on_cohorts_have_shadow_models_sampled(
    attack: str, sampled: int, jobs: int, real: list[Cohort], monkeypatch: pytest.MonkeyPatch
) -> None:
    like, found = Leaky().fit(real[0], seed=0), list[Shadow]()
    trained = module.shadow_models

    def watched(*arguments: object) -> tuple[list[Shadow], list[str]]:
        shadows, failures = trained(*arguments)  # type: ignore[arg-type]
        found.extend(shadows)
        return shadows, failures

    monkeypatch.setattr("timediff.evaluation.audit_work.shadow_models", watched)
    settings = AuditSettings((attack,), models=FEWEST, power=False, jobs=jobs)
    audit(*real, run=like, synthetic=like.sample(100, seed=1), settings=settings)
    assert len(found) == FEWEST
    assert sum(one.synthetic is not None for one in found) == sampled


def test_a_worker_that_dies_takes_no_other_with_it(real: list[Cohort], tmp_path: Path) -> None:
    """The fifth of five: its reason is said and stands in the audit, which goes on with the four."""
    settings, said = AuditSettings(("lira",), models=5, power=False, jobs=2), list[str]()
    given = {"run": mortal(real[0], dies_from=5), "settings": settings}
    found = audit_to(tmp_path / "out", *real, **given, say=said.append)  # type: ignore[arg-type]
    (why,) = found.notes
    assert why.startswith("shadow model 5 of 5 could not be trained: its process was ended by signal 9 (SIGKILL)")
    assert any(line.startswith(why) and "shadow-4.txt" in line for line in said)
    assert found.facts["shadow models"] == "4"
    assert not np.isnan(next(score.value for score in found.scores if score.what == "auc"))
    assert why in (tmp_path / "out" / "audit.html").read_text()


def test_with_fewer_than_attacks_need_the_audit_ends_with_a_sentence(real: list[Cohort], tmp_path: Path) -> None:
    """The others are kept, and nothing that cannot help any more is begun."""
    settings, said = AuditSettings(("lira", "rmia"), models=6, power=False, jobs=2), list[str]()
    given = {"run": mortal(real[0], dies_from=2), "settings": settings}
    says = r"could not be trained, and attacks need at least 4\. shadow model \d of 6"  # which, is a matter of time
    with pytest.raises(TimeDiffError, match=says):
        audit_to(tmp_path / "out", *real, **given, say=said.append)  # type: ignore[arg-type]
    parts = tmp_path / ".out.parts"
    assert [path.name for path in parts.glob("shadow-?")] == ["shadow-0"]
    assert "out of luck" in (parts / "shadow-1.txt").read_text()
    assert not (parts / "shadow-5.txt").exists()
    assert not (tmp_path / "out").exists()


def test_a_training_that_fails_here_is_said_like_one_that_fails_in_a_worker(
    real: list[Cohort], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(self: Leaky, cohort: Cohort, *, seed: int, **options: object) -> Leaky:
        if seed > FEWEST + 3:
            raise ValueError(f"a cell holds {cohort.series['heart_rate'][0, 0]!r}")
        return fit(self, cohort, seed=seed, **options)  # type: ignore[arg-type]

    like, fit = Leaky().fit(real[0], seed=0), Leaky.fit
    monkeypatch.setattr(Leaky, "fit", failing)
    found, failures = shadow_models(plan(like, real[1], models=5), None)
    assert len(found) == 4
    assert failures == ["shadow model 5 of 5 could not be trained: it raised ValueError."]
    with pytest.raises(TooFew, match="of 4 shadow models 1 could not be trained"):
        shadow_models(plan(like, real[1], seed=4), None)


@pytest.mark.parametrize("jobs", [1, 2, 6])
@pytest.mark.parametrize(("minutes", "models"), [(0, FEWEST), (100, 6)])
def test_never_fewer_than_the_fewest_and_all_where_there_is_time(
    minutes: float, models: int, jobs: int, real: list[Cohort]
) -> None:
    said: list[str] = []
    asked = plan(Leaky().fit(real[0], seed=0), real[1], models=6, minutes=minutes, jobs=jobs)
    assert len(shadow_models(asked, None, say=said.append)[0]) == models
    assert ("4 of 6 shadow models fit into 0 minutes" in said) == (minutes == 0)


def test_no_model_is_begun_that_would_not_be_done_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    budget = Budget(minutes=10, models=12)
    assert [budget.may_begin(busy) for busy in range(5)] == [True] * FEWEST + [False]  # how long one takes is not known
    clock[0] = 200
    budget.ended(Ended(seconds=200))
    assert budget.may_begin(3)
    assert budget.may_begin(7)
    clock[0] = 399
    assert budget.may_begin(4)
    budget.ended(Ended(seconds=210))  # the longest counts
    assert not budget.may_begin(4)
    assert budget.may_begin(1)  # fewer than the fewest would be there
    budget.ended(Ended("it died", seconds=500))
    clock[0] = 389
    assert budget.may_begin(4)  # one that died says nothing of the others


def test_where_time_is_up_the_models_of_before_are_enough(real: list[Cohort], tmp_path: Path) -> None:
    asked = plan(Leaky().fit(real[0], seed=0), real[1], models=6, jobs=2)
    first = shadow_models(replace(asked, minutes=0), tmp_path)[0]
    again: list[str] = []
    kept = shadow_models(replace(asked, minutes=0), tmp_path, say=again.append)[0]
    assert [one.model.identity for one in kept] == [one.model.identity for one in first]
    assert again == ["4 of 6 shadow models fit into 0 minutes"]
    assert len(shadow_models(asked, tmp_path)[0]) == 6


def test_one_bar_says_how_far_all_are_and_how_many_are_done(model: Generator, real: list[Cohort]) -> None:
    for jobs in (1, 2):
        seen: list[tuple[float, float]] = []

        def progress(done: int, total: int, *, seen: list[tuple[float, float]] = seen, **values: float) -> None:
            seen.append((done / total, values["models"]))

        shadow_models(plan(model, real[1], jobs=jobs), None, progress)
        assert seen[-1] == (1.0, FEWEST)
        assert {models for _, models in seen} == set(range(FEWEST + 1))
        assert all(0 <= done <= 1 for done, _ in seen)


def test_on_the_cpu_it_is_one_at_a_time_and_on_a_gpu_four_or_one_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    device = ["cpu"]
    monkeypatch.setattr(module.devices, "device", lambda: torch.device(device[0]))
    monkeypatch.setattr(module.devices, "cores", lambda: 16)
    assert usual_jobs() == 1
    device[0] = "cuda"
    assert usual_jobs() == 4
    monkeypatch.setattr(module.devices, "cores", lambda: 2)
    assert usual_jobs() == 2


def test_stopped_and_resumed_it_is_as_if_it_never_was(real: list[Cohort], tmp_path: Path) -> None:
    """All workers are stopped by one Ctrl-C, and each model goes on from where it was, also one after the other."""
    td.TimeDiff("paper", assignments=SMALL).fit(real[0], seed=0, run=tmp_path / "run")
    for name, cohort in zip(("train", "held-out"), real, strict=True):
        cohort.write(tmp_path / name)

    def command(out: str, *options: str) -> list[str]:
        places = [str(tmp_path / name) for name in ("train", "held-out", out)]
        run = ["--run", str(tmp_path / "run"), "--models", "4", "--attack", "lira", "--no-power"]
        long = ["--set", "training.steps=150", "--set", "training.checkpoint_every=25"]
        return [sys.executable, "-m", "timediff", "audit", *places, *run, *long, *options]

    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    first = subprocess.Popen(command("out", "--jobs", "2"), env=environment, stderr=subprocess.PIPE, text=True)
    parts = tmp_path / ".out.parts"
    while not all(any(parts.glob(f"shadow-{number}/checkpoints/step-*")) for number in (0, 1)) and first.poll() is None:
        time.sleep(0.02)
    first.send_signal(signal.SIGINT)
    _, error = first.communicate(timeout=60)
    assert first.returncode == 130
    assert error.strip() == "stopped. The shadow models so far are kept, and --resume goes on from there"
    facts = {run: json.loads((run / "provenance.json").read_text()) for run in parts.glob("shadow-?")}
    stopped = [run for run, known in facts.items() if "weights_sha256" not in known]
    assert stopped
    assert all(facts[run]["seconds"] > 0 for run in stopped)  # each was left to save what it had
    again = subprocess.run(
        command("out", "--jobs", "1", "--resume"), env=environment, capture_output=True, text=True, check=False
    )
    assert again.returncode in (0, 3), again.stderr
    whole = subprocess.run(
        command("whole", "--jobs", "2"), env=environment, capture_output=True, text=True, check=False
    )
    assert whole.returncode == again.returncode, whole.stderr
    assert td.Audit.read(tmp_path / "out").scores == td.Audit.read(tmp_path / "whole").scores
