"""The simulated ICU is charted as a real one: by line or cuff, with digits that people prefer, and values repeated."""

import numpy as np
import pytest

from timediff.data.arrays import Array, Floats
from timediff.data.lattices import THIRD, on_lattice
from timediff.sources.simulated import simulate, simulate_with_lines
from timediff.sources.simulated_charting import (
    HABITS,
    Habit,
    chart,
    charted_again,
    charts,
    line_in_place,
    nearest,
    rounded,
)

STAYS = 4000


@pytest.fixture(scope="module")
def simulated() -> tuple[dict[str, Floats], Array]:
    cohort, line = simulate_with_lines(STAYS, steps=48, seed=1)
    return cohort.series, line


@pytest.fixture(scope="module")
def series(simulated: tuple[dict[str, Floats], Array]) -> dict[str, Floats]:
    return simulated[0]


@pytest.fixture(scope="module")
def line(simulated: tuple[dict[str, Floats], Array]) -> Array:
    return simulated[1]


def there(values: Floats) -> Array:
    return ~np.isnan(values)


def test_the_lines_are_those_of_the_same_stays(series: dict[str, Floats]) -> None:
    again = simulate(STAYS, steps=48, seed=1).series
    assert all(np.array_equal(again[name], values, equal_nan=True) for name, values in series.items())


def test_of_a_cuff_the_mean_is_exactly_what_follows_from_the_other_two(series: dict[str, Floats], line: Array) -> None:
    cuff = ~line & there(series["mbp"])
    follows = np.round((series["sbp"] + 2 * series["dbp"]) / 3, 2)
    assert np.array_equal(series["mbp"][cuff], follows[cuff])
    thirds = np.round(3 * series["mbp"][cuff]) % 3
    assert np.allclose(np.bincount(thirds.astype(int)) / cuff.sum(), 1 / 3, atol=0.02)


def test_of_a_line_the_mean_is_whole_and_only_near_to_what_follows(series: dict[str, Floats], line: Array) -> None:
    read = line & there(series["mbp"])
    beside = (series["mbp"] - (series["sbp"] + 2 * series["dbp"]) / 3)[read]
    assert on_lattice(series["mbp"][read], 1).all()
    assert (np.abs(beside) < 0.04).mean() < 0.1
    assert 1 < beside.std() < 5


def test_the_order_of_the_pressures_always_holds(series: dict[str, Floats]) -> None:
    measured = there(series["mbp"])
    sbp, mbp, dbp = (series[name][measured] for name in ("sbp", "mbp", "dbp"))
    assert (sbp > mbp).all()
    assert (mbp > dbp).all()


def test_half_of_the_stays_have_only_whole_means_a_fifth_mostly_thirds_and_others_change(
    series: dict[str, Floats], line: Array
) -> None:
    """As in PhysioNet 2012: by the share of means that are no whole numbers, which is ⅔ of what a cuff measures."""
    measured = there(series["mbp"])
    share = (measured & ~on_lattice(series["mbp"], 1)).sum(axis=1) / measured.sum(axis=1)
    assert 0.4 < (share == 0).mean() < 0.6
    assert 0.12 < (share > 0.55).mean() < 0.28
    assert 0.15 < ((share > 0.02) & (share < 0.5)).mean() < 0.4
    assert on_lattice(series["mbp"][measured], THIRD).all()
    late = line[:, -1].astype(int) - line[:, 0]
    assert (late == -1).mean() > 0.1  # the line was taken out
    assert (late == 1).mean() > 0.03  # it was placed


def test_a_line_is_placed_once_at_most(line: Array) -> None:
    assert (np.abs(np.diff(line.astype(int), axis=1)).sum(axis=1) <= 2).all()


def test_the_sicker_are_likelier_to_have_a_line() -> None:
    rng = np.random.default_rng(0)
    severity = np.repeat([-1.0, 1.0], 5000)
    ever = line_in_place(rng, severity, 48).any(axis=1)
    assert ever[:5000].mean() < ever[5000:].mean() - 0.15


def test_a_line_measures_nearly_every_hour_and_a_cuff_less_often(series: dict[str, Floats], line: Array) -> None:
    measured = there(series["sbp"])
    assert measured[line].mean() > 0.9
    assert measured[~line].mean() < measured[line].mean() - 0.1


def test_what_is_measured_together_is_missing_together(series: dict[str, Floats]) -> None:
    assert np.array_equal(there(series["sbp"]), there(series["dbp"]))
    assert np.array_equal(there(series["sbp"]), there(series["mbp"]))
    missing = {name: np.isnan(values) for name, values in series.items()}
    for name in ("resp_rate", "spo2"):
        assert missing[name][missing["heart_rate"]].mean() > 0.7
    assert missing["sbp"][missing["heart_rate"]].mean() < 0.4


@pytest.mark.parametrize(
    ("name", "step", "chance", "at_least"),
    [("heart_rate", 10, 0.1, 0.02), ("resp_rate", 2, 0.5, 0.08), ("temperature", 0.5, 0.2, 0.06)],
)
def test_people_prefer_some_numbers(
    name: str, step: float, chance: float, at_least: float, series: dict[str, Floats]
) -> None:
    values = series[name][there(series[name])]
    assert chance + at_least < on_lattice(values, step).mean() < chance + 3 * at_least


@pytest.mark.parametrize("name", ["sbp", "dbp"])
def test_pressures_of_a_cuff_end_in_0_more_often_and_those_of_a_line_do_not(
    name: str, series: dict[str, Floats], line: Array
) -> None:
    measured = there(series[name])
    tens = on_lattice(series[name], 10)
    assert tens[measured & ~line].mean() > 0.18
    assert tens[measured & line].mean() == pytest.approx(0.1, abs=0.005)


def test_in_some_stays_people_round_more_than_in_others(series: dict[str, Floats]) -> None:
    values = series["resp_rate"]
    even = np.nanmean(np.where(np.isnan(values), np.nan, on_lattice(values, 2)), axis=1)
    chance = np.nanmean(even) * (1 - np.nanmean(even)) / there(values).sum(axis=1).mean()
    assert np.nanvar(even) > 1.5 * chance


@pytest.mark.parametrize("name", ["heart_rate", "sbp", "dbp", "resp_rate", "temperature", "spo2"])
def test_values_repeat_more_often_than_by_chance(name: str, series: dict[str, Floats]) -> None:
    """By chance the same value is about as likely as the next one: differences are smooth about 0."""
    step = 0.1 if name == "temperature" else 1
    change = np.diff(series[name], axis=1) / step
    steps = np.round(change[there(change)])
    assert (steps == 0).mean() > 1.3 * max((steps == n).mean() for n in (-2, -1, 1, 2))


@pytest.mark.parametrize("name", HABITS)
def test_every_feature_is_charted_again_as_often_as_its_habit_says(name: str) -> None:
    rng = np.random.default_rng(0)
    true = rng.uniform(0, 1e6, (2000, 40))  # of which two are never the same by chance
    values = chart(rng, true, np.zeros(true.shape, bool), HABITS[name])
    same = (np.diff(values, axis=1) == 0)[there(np.diff(values, axis=1))]
    assert HABITS[name].again > 0
    assert same.mean() == pytest.approx(HABITS[name].again, rel=0.1)


def test_a_reading_is_charted_again_as_a_whole(series: dict[str, Floats]) -> None:
    same = [np.diff(series[name], axis=1) == 0 for name in ("sbp", "dbp")]
    both = there(series["sbp"])[:, 1:] & there(series["sbp"])[:, :-1]
    assert (same[0] & same[1])[both].mean() > 0.03  # by chance it would be less than 0.01


def test_a_value_that_is_charted_again_is_the_last_one_with_its_own() -> None:
    measured = np.random.default_rng(0).random((500, 30)) < 0.6
    source = charted_again(np.random.default_rng(1), measured, 0.4)
    own = source == np.arange(30)
    for stay, step in np.argwhere(~own):
        before = np.flatnonzero((measured & own)[stay, :step])
        assert source[stay, step] == before[-1]
    repeated = (measured & ~own)[measured.cumsum(axis=1) > 1]
    assert 0.15 < repeated.mean() < 0.3  # of all steps, of which 0.6 are measured


def test_numbers_that_are_a_step_apart_remain_so() -> None:
    halves = np.arange(-50, 50) * 5.0
    assert (np.diff(nearest(halves, 10)[::2]) == 10).all()
    assert (np.diff(nearest(halves, 10)[1::2]) == 10).all()
    assert np.abs(nearest(halves, 10) - halves).max() == 5


def test_the_fraction_that_is_rounded_is_the_stated_one() -> None:
    values = np.full((20_000, 10), 23.0)
    done = rounded(np.random.default_rng(0), values, Habit(preferred=10, rounded=0.2))
    assert set(np.unique(done)) == {20, 23}
    assert (done == 20).mean() == pytest.approx(0.2, abs=0.005)


def test_every_vital_sign_is_charted() -> None:
    rng, shape = np.random.default_rng(0), (50, 12)
    true = {name: np.full(shape, 40.0) for name in (*HABITS, "mbp")} | {"sbp": np.full(shape, 60.0)}
    true["dbp"] = np.full(shape, 30.0)
    names = list(true)
    severity = np.zeros(shape)
    found = charts(rng, true, severity > 0, severity, lambda: rng.standard_normal(shape))
    assert list(found) == names
    assert all(there(values).any() and np.isnan(values).any() for values in found.values())
