"""TimeDiff: fast and autoregressive learn a known law; what a cohort decides; samplers; names that settings had before.

The law: what is missing together, what persists, and what goes with the outcome.
"""

import re

import numpy as np
import pytest

from helpers.small_generators import EVERY
from timediff.data.batch import Layout
from timediff.data.cohort import Cohort
from timediff.data.schema import Feature, Schema
from timediff.diffusion.settings import PROCESSES
from timediff.errors import TimeDiffError
from timediff.generators.timediff.generator import TimeDiff
from timediff.generators.timediff.network import build_process
from timediff.settings.resolve import resolve

STAYS, STEPS = 800, 8


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    """Two vital signs, always missing together and for some steps on end; both higher in those who die (30 %)."""
    rng = np.random.default_rng(0)
    died = rng.random(STAYS) < 0.3
    level = rng.normal(0, 1, STAYS) + 1.5 * died
    pulse = 80 + 10 * (level[:, None] + 0.3 * rng.normal(size=(STAYS, STEPS)))
    pressure = pulse + 40 + 2 * rng.normal(size=(STAYS, STEPS))
    missing = np.zeros((STAYS, STEPS), bool)
    missing[:, 0] = rng.random(STAYS) < 0.3
    for step in range(1, STEPS):
        switch = rng.random(STAYS) < np.where(missing[:, step - 1], 0.2, 0.2 * 3 / 7)  # keeps the rate at 0.3
        missing[:, step] = missing[:, step - 1] ^ switch
    schema = Schema(
        (
            Feature("pulse", "continuous", resolution=1.0),
            Feature("pressure", "continuous"),
            Feature("died", "binary", "static", role="label"),
        ),
        STEPS,
    )
    series = {"pulse": np.where(missing, np.nan, np.round(pulse)), "pressure": np.where(missing, np.nan, pressure)}
    return Cohort(schema, np.arange(STAYS), series, {"died": died.astype(float)})


SMALL: dict[str, object] = {"model.hidden": 32, "training.warmup": 50, "training.lr": 5e-3, "training.ema": 0.99}
OF_PRESET: dict[str, dict[str, object]] = {
    "autoregressive": {"training.steps": 700, "diffusion.units": 16},
    "fast": {"training.steps": 700, "sampling.steps": 24},
}


def sampled(cohort: Cohort, preset: str, **changes: object) -> Cohort:
    settings = resolve(preset, assignments={**SMALL, **OF_PRESET[preset], **changes})
    return TimeDiff(settings=settings).fit(cohort, seed=0).sample(2000, seed=1)


@pytest.fixture(scope="module", params=list(OF_PRESET))
def synthetic(cohort: Cohort, request: pytest.FixtureRequest) -> Cohort:
    return sampled(cohort, request.param)


def gaps(cohort: Cohort, name: str = "pulse") -> np.ndarray:
    return np.isnan(cohort.series[name])


def test_what_is_missing_together_comes_out_together(cohort: Cohort, synthetic: Cohort) -> None:
    assert (gaps(synthetic) == gaps(synthetic, "pressure")).mean() > 0.995
    assert gaps(synthetic).mean() == pytest.approx(gaps(cohort).mean(), abs=0.03)


def test_gaps_last_as_long(cohort: Cohort, synthetic: Cohort) -> None:
    stays_missing = [float(gaps(one)[:, 1:][gaps(one)[:, :-1]].mean()) for one in (cohort, synthetic)]
    assert stays_missing[1] == pytest.approx(stays_missing[0], abs=0.05)


def test_with_each_class_alone_they_would_not(cohort: Cohort) -> None:
    apart = sampled(cohort, "fast", **{"diffusion.joint": False, "training.steps": 300})
    assert (gaps(apart) == gaps(apart, "pressure")).mean() < 0.9


def test_the_outcome_is_as_frequent_and_goes_with_the_values(cohort: Cohort, synthetic: Cohort) -> None:
    assert synthetic.label.mean() == pytest.approx(cohort.label.mean(), abs=0.03)
    shifts = []
    for one in (cohort, synthetic):
        pulse, label = one.series["pulse"], one.label == 1
        shifts.append(float(np.nanmean(pulse[label]) - np.nanmean(pulse[~label])))
    assert shifts[1] == pytest.approx(shifts[0], rel=0.2)


def test_values_vary_as_much_and_hold_together(cohort: Cohort, synthetic: Cohort) -> None:
    for name in ("pulse", "pressure"):
        real, made = (one.series[name] for one in (cohort, synthetic))
        assert np.nanmean(made) == pytest.approx(np.nanmean(real), abs=1.5)
        assert np.nanstd(made) == pytest.approx(np.nanstd(real), rel=0.1)

    def difference(one: Cohort) -> float:
        return float(np.nanstd(one.series["pressure"] - one.series["pulse"]))

    assert difference(synthetic) < 2 * difference(cohort)  # which is 2, while each alone varies by 12


def test_values_lie_on_the_levels_that_real_ones_have(cohort: Cohort, synthetic: Cohort) -> None:
    pulse = synthetic.series["pulse"][~gaps(synthetic)]
    assert (pulse == np.round(pulse)).all()


def test_width_and_batch_follow_from_the_number_of_stays(cohort: Cohort) -> None:
    def sized(stays: int) -> tuple[int | None, int | None]:
        model = TimeDiff("fast")
        model.plan(cohort.take(np.arange(stays) % STAYS))
        return model.settings.model.hidden, model.settings.training.batch

    assert [sized(stays) for stays in (60, 1000, 2200, 2300, 8000)] == [
        (64, 16), (64, 64), (64, 128), (256, 128), (256, 512)
    ]  # fmt: skip
    model = TimeDiff("fast")
    model.plan(cohort)
    assert model.settings.training.lr == pytest.approx(0.5 / 64)
    paper = TimeDiff("paper")
    paper.plan(cohort)
    width = 4 * (2 + 2 * 3)  # times the columns: two values, two masks and the outcome, of two classes each
    assert resolve("paper").differences(paper.settings) == {"model.hidden": (None, width)}


def test_the_network_of_paper_has_as_many_parameters_as_the_authors_have() -> None:
    """Of MIMIC-III's shape: seven vital signs, their masks and the outcome."""
    layout = Layout.of(7, [2] * 8)
    process = build_process(resolve("paper").for_cohort(1000, layout), layout)
    assert sum(one.numel() for one in process.parameters()) == 472_351


def test_another_cohort_decides_anew(cohort: Cohort) -> None:
    model = TimeDiff("fast")
    for stays, batch, width in ((8000, 512, 256), (60, 16, 64)):
        plan = model.plan(cohort.take(np.arange(stays) % STAYS))
        assert plan["stays an update"] == batch
        assert model.settings.model.hidden == width


def test_a_cohort_smaller_than_any_batch_is_trained_on_as_it_is(cohort: Cohort) -> None:
    few = cohort.take(np.arange(9))
    settings = resolve("fast", assignments={"model.hidden": 4, "training.steps": 2, "sampling.steps": 3})
    assert len(TimeDiff(settings=settings).fit(few, seed=0).sample(5, seed=0)) == 5


@pytest.mark.parametrize("preset", ["paper", "fast"])
def test_samplers_are_options(preset: str, mixed: Cohort) -> None:
    """Each makes other stays of the same noise, in so many calls, or one less where two belong together."""
    _, settings = EVERY[preset]
    model = TimeDiff(settings=settings).fit(mixed, seed=0)
    samplers, digests = model.settings.diffusion.samplers.names(), set()
    for sampler in samplers:
        for steps in (11, 13, 20):
            calls: list[int] = []

            def count(done: int, total: int, calls: list[int] = calls, **values: float) -> None:
                calls.append(total)

            digests.add(model.sample(7, seed=0, sampler=sampler, steps=steps, progress=count).digest())
            assert calls == [len(calls)] * len(calls)
            assert len(calls) in ((steps, steps - 1) if sampler in ("heun", "stochastic") else (steps,))
    assert len(digests) == 3 * len(samplers)


@pytest.mark.parametrize(
    ("preset", "old", "value", "new"),
    [
        ("paper", "model.early", True, "model.noise_level_input"),
        ("fast", "model.early", True, "model.noise_level_input"),
        ("fast", "diffusion.cells", "joint", "diffusion.joint"),
        ("paper", "diffusion.cells", "independent", "diffusion.joint"),
    ],
)
def test_a_renamed_setting_is_answered_with_its_new_name(preset: str, old: str, value: object, new: str) -> None:
    with pytest.raises(TimeDiffError, match=f"{re.escape(old)} is {re.escape(new)} now"):
        resolve(preset, assignments={old: value})


def test_the_cascade_goes_by_its_name_of_0_1_0_too() -> None:
    given = resolve("fast", assignments={"diffusion.process": "edm"})
    assert given == resolve("fast")
    assert given.diffusion.process == "cascade"
    assert "edm" not in PROCESSES.names()
