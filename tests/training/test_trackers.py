"""Experiment trackers: what they are told through Accelerate, and that none can end a training."""

import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from accelerate import tracking
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from helpers.small_runs import signal_at, small_settings
from timediff.data.cohort import Cohort
from timediff.errors import Stopped, TimeDiffError
from timediff.evaluation.attacks.shadows import ShadowPlan
from timediff.generators.timediff.generator import TimeDiff

Told = list[tuple[str, Any]]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    """A module in place of each tracker's, which notes what Accelerate's trackers call."""
    calls: Told = []

    class Run:
        def log(self, values: dict[str, float], step: int, **_: object) -> None:
            calls.append(("wandb.log", (step, values)))

        def finish(self) -> None:
            calls.append(("wandb.finish", None))

    class Config:
        def update(self, values: dict[str, Any], **_: object) -> None:
            calls.append(("wandb.config", values))

    wandb, mlflow = (ModuleType(name) for name in ("wandb", "mlflow"))
    wandb.__dict__.update(init=lambda **given: calls.append(("wandb.init", given)) or Run(), config=Config())
    limits = type("limits", (), {"MAX_PARAM_VAL_LENGTH": 500, "MAX_PARAMS_TAGS_PER_BATCH": 100})
    mlflow.__dict__.update(
        search_experiments=lambda **_: [], create_experiment=lambda **given: given["name"],
        start_run=lambda **given: calls.append(("mlflow.start_run", given)),
        log_params=lambda values: calls.append(("mlflow.log_params", values)),
        log_metrics=lambda values, step, **_: calls.append(("mlflow.log_metrics", (step, values))),
        end_run=lambda: calls.append(("mlflow.end_run", None)),
        utils=type("utils", (), {"validation": limits}),
    )  # fmt: skip
    for module in (wandb, mlflow):
        module.__spec__ = importlib.machinery.ModuleSpec(module.__name__, None)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    available = ["tensorboard", "wandb", "mlflow"]
    monkeypatch.setattr(tracking, "get_available_trackers", lambda: [tracking.LoggerType(name) for name in available])
    return calls


def of(calls: Told, name: str) -> Iterator[Any]:
    return (value for call, value in calls if call == name)


def test_trackers_are_told_of_settings_and_of_every_report_through_accelerate(
    icu: Cohort, told: Told, tmp_path: Path
) -> None:
    settings = small_settings(**{"training.track": ["wandb", "mlflow"]})
    model = TimeDiff(settings=settings).fit(icu, seed=5, run=tmp_path / "my-run")
    (begun,) = of(told, "wandb.init")
    assert begun == {"project": "timediff", "name": "my-run"}
    (run,) = of(told, "mlflow.start_run")
    assert (run["run_name"], run["experiment_id"]) == ("my-run", "timediff")
    (config,) = of(told, "wandb.config")
    (parameters,) = of(told, "mlflow.log_params")
    assert config == parameters
    assert (config["seed"], config["training.lr"], config["stays"]) == (5, 1e-3, 200)
    steps = [line["step"] for line in model.history]
    for name in ("wandb.log", "mlflow.log_metrics"):
        logged = list(of(told, name))
        assert [step for step, _ in logged] == steps == [2, 4, 6, 8, 10, 12]
        assert [values["training/total"] for _, values in logged] == [line["total"] for line in model.history]
    assert [name for name, _ in told][-2:] == ["wandb.finish", "mlflow.end_run"]
    assert not (tmp_path / "my-run" / "tensorboard").exists()


def test_a_resumed_run_may_have_other_trackers(icu: Cohort, told: Told, tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        TimeDiff(settings=small_settings()).fit(icu, seed=5, run=tmp_path / "run", progress=signal_at(7))
    settings = small_settings(**{"training.track": ["wandb"]})
    TimeDiff(settings=settings).fit(icu, seed=5, run=tmp_path / "run", resume=True)
    assert [step for step, _ in of(told, "wandb.log")] == [8, 10, 12]


def test_shadow_models_are_not_tracked(icu: Cohort) -> None:
    like = TimeDiff(settings=small_settings(**{"training.track": ["wandb"]}))
    plan = ShadowPlan(like, icu, np.arange(len(icu)), models=4, seed=3, size=0, changes={})
    assert plan.generator().settings.training.track == ()  # type: ignore[attr-defined]


def test_without_a_wish_no_tracker_is_told(icu: Cohort, told: Told, tmp_path: Path) -> None:
    TimeDiff(settings=small_settings()).fit(icu, seed=5, run=tmp_path / "run")
    assert told == []


def test_tensorboard_reads_the_losses(icu: Cohort, tmp_path: Path) -> None:
    model = TimeDiff(settings=small_settings()).fit(icu, seed=5, run=tmp_path / "run")
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    read = {event.step: event.value for event in events.Scalars("training/total")}
    assert read == pytest.approx({line["step"]: line["total"] for line in model.history})


def test_a_tracker_that_fails_costs_no_model(icu: Cohort, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise ConnectionError("no route to host")

    monkeypatch.setattr(sys.modules["mlflow"], "log_metrics", unreachable)
    settings = small_settings(**{"training.track": ["wandb", "mlflow"]})
    with pytest.warns(RuntimeWarning, match="the tracker mlflow raised ConnectionError: training goes on without it"):
        model = TimeDiff(settings=settings).fit(icu, seed=5)
    assert len(list(of(told, "wandb.log"))) == len(model.history) == 6


def test_a_tracker_that_cannot_begin_is_named_without_its_address(
    icu: Cohort, told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError("https://me:secret@tracker.example")

    monkeypatch.setattr(sys.modules["wandb"], "init", refuse)
    with pytest.raises(TimeDiffError, match=r"wandb could not begin \(PermissionError\): set it up") as caught:
        TimeDiff(settings=small_settings(**{"training.track": ["wandb"]})).fit(icu, seed=5, run=tmp_path / "run")
    assert "secret" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_a_tracker_that_is_not_installed_is_named_before_anything_is_written(
    name: str, icu: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: None if package == name else object())
    settings = small_settings(**{"training.track": [name]})
    with pytest.raises(TimeDiffError, match=f"'{name}', which is not installed: pip install 'timediff-icu.{name}"):
        TimeDiff(settings=settings).fit(icu, seed=5, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_trackers_are_a_list_of_known_names() -> None:
    with pytest.raises(TimeDiffError, match="expected a list of tensorboard, wandb, mlflow"):
        small_settings(**{"training.track": "wandb"})
    with pytest.raises(TimeDiffError, match=r"track\[0\] is 'aim'; expected one of tensorboard, wandb, mlflow"):
        small_settings(**{"training.track": ["aim"]})
