"""Every generator there is: trained, saved, reloaded, sampled, on a cohort with every kind of feature."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import same
from helpers.small_baselines import baseline
from helpers.small_generators import EVERY, OURS, PAPER
from timediff.data.cohort import Cohort, read_cohort
from timediff.errors import TimeDiffError
from timediff.generators.base import Generator
from timediff.generators.registry import GENERATORS, load


def test_every_generator_is_among_them() -> None:
    assert {name for name, _ in EVERY.values()} == set(OURS)


def test_saved_and_loaded_it_gives_the_same_stays(model: Generator, tmp_path: Path) -> None:
    model.save(tmp_path / "run")
    assert same(load(tmp_path / "run").sample(30, seed=1), model.sample(30, seed=1))


def test_losses_of_stays_follow_from_the_seed_or_are_said_to_be_none(model: Generator, mixed: Cohort) -> None:
    if model.name in ("rcgan", "crnngan"):
        with pytest.raises(TimeDiffError, match="has no loss of a single stay"):
            model.stay_losses(mixed)
        return
    losses = model.stay_losses(mixed, seed=1)
    again, other = model.stay_losses(mixed, seed=1), model.stay_losses(mixed.take(np.arange(40)), seed=1)
    for name, values in losses.items():
        assert values.shape[0] == len(mixed)
        assert np.isfinite(values).all()
        assert (values >= 0).all() or name in model.signed_losses
        assert np.array_equal(values, again[name])
        assert np.allclose(values[:40], other[name], rtol=1e-4, atol=1e-5)  # of a stay, whoever else is asked about


def test_what_it_gives_is_a_valid_cohort(model: Generator, mixed: Cohort, tmp_path: Path) -> None:
    made = model.sample(30, seed=1)
    made.write(tmp_path / "made")
    assert same(read_cohort(tmp_path / "made"), made)
    assert made.schema == mixed.schema.generated()
    assert len(made) == 30


def test_any_length_of_series(model: Generator) -> None:
    made = model.sample(5, seed=1, length=11)
    assert made.schema.steps == 11
    assert made.series["pulse"].shape == (5, 11)


def test_a_stay_longer_than_those_trained_on_is_said(model: Generator) -> None:
    said: list[str] = []
    list(model.stream(3, length=6, say=said.append))
    assert not said
    made = list(model.stream(3, length=8, say=said.append))
    assert made[0].schema.steps == 8
    assert "stays of 6 steps" in said[0]


def test_no_stays_are_no_parts(model: Generator) -> None:
    assert list(model.stream(0, seed=0)) == []


MISTAKES: dict[str, list[tuple[dict[str, Any], str]]] = {
    "ddpm": [
        ({"sampler": "dpm"}, "'ddpm' has ancestral, ddim"),
        ({"sampler": "euler"}, "'ddpm' has ancestral, ddim"),
        ({"steps": 21}, "at most diffusion.steps"),
        ({"speed": 9}, "timediff is not sampled with speed: what can be chosen is precision, batch, sampler, steps"),
    ],
    "none": [
        ({"steps": 5}, "is not sampled with steps: what can be chosen is precision, batch"),
        ({"batch": 0}, "expected at least 1"),
    ],
    "dspd": [
        ({"sampler": "sde"}, "one of ancestral, multistep"),
        ({"steps": 1001}, "expected at most diffusion.steps, 1000"),
    ],
    "cspd": [
        ({"sampler": "ancestral"}, "one of sde, multistep"),
        ({"steps": 0}, "expected at least 1"),
    ],
    "autoregressive": [
        ({"sampler": "ddim"}, "'autoregressive' has ancestral"),
        ({"steps": 0}, "expected at least 1"),
    ],
    "cascade": [
        ({"sampler": "ddim"}, "'cascade' has multistep, euler, heun, stochastic"),
        ({"steps": 0}, "expected at least 1"),
    ],
}


def test_mistaken_options_are_named(model: Any) -> None:
    process = model.settings.diffusion.process if model.name == "timediff" else model.name.partition("-")[0]
    for options, said in MISTAKES.get(process, MISTAKES["none"]):
        with pytest.raises(TimeDiffError, match=said):
            model.sample(5, seed=0, **options)


def test_what_sampling_does_not_have_is_named(mixed: Cohort) -> None:
    model = baseline("rcgan", training__steps=1).fit(mixed, seed=0)
    with pytest.raises(TimeDiffError, match="rcgan is not sampled with steps: what can be chosen is precision, batch"):
        model.sample(3, steps=50)


def test_before_fitting_there_is_nothing_to_sample() -> None:
    with pytest.raises(TimeDiffError, match="call fit first"):
        GENERATORS("timediff")(settings=PAPER).sample(5)


def test_what_is_loaded_samples_as_what_was_fitted_in_any_precision(mixed: Cohort, tmp_path: Path) -> None:
    settings = replace(PAPER, training=replace(PAPER.training, precision="bfloat16"))
    fitted = GENERATORS("timediff")(settings=settings).fit(mixed, seed=0, run=tmp_path / "run")
    assert load(tmp_path / "run").identity == fitted.identity
    assert same(load(tmp_path / "run").sample(20, seed=1), fitted.sample(20, seed=1))


def test_planned_first_it_is_fitted_alike(model: Any, mixed: Cohort) -> None:
    """And what the cohort decides is in the settings by then."""
    planned = type(model)(settings=model._given)
    plan = planned.plan(mixed)
    assert planned.settings == model.settings
    assert (plan["stays"], plan["steps"], plan["updates"], plan["stays an update"] % 16) == (len(mixed), 6, 6, 0)
    assert plan["parameters"] == sum(one.numel() for one in model.fitted.network.parameters())
    assert planned.fit(mixed, seed=0).identity == model.identity


def test_it_reads_well_and_shows_no_value(model: Generator) -> None:
    assert repr(model).startswith(f"{type(model).__name__}:\n  generator: {model.name}\n  state: fitted")
    assert "<table" in model._repr_html_()
