"""How values were recorded is found in data, and what is decoded is recorded likewise."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.data.cohort import Cohort
from timediff.data.lattices import telling_lattices
from timediff.data.levels import ClassLevels, Levels
from timediff.data.quantiles import Quantiles
from timediff.data.recording import Recording, before, derivations, significant
from timediff.data.relations import ExactRelation
from timediff.data.schema import Feature, Schema
from timediff.errors import Problems
from timediff.settings.resolve import resolve
from timediff.settings.training import CodecSettings
from timediff.sources.simulated import simulate

SETTINGS = CodecSettings(scale="quantile", fill="carry", recording=True)
MEAN = "({a} + 2 · {b}) / 3"
STAYS, STEPS = 400, 12


def pressures(seed: int = 0) -> Cohort:
    """Systolic and diastolic pressures, and mean ones of a line (whole numbers) or a cuff (derived), by stay."""
    rng = np.random.default_rng(seed)
    level = rng.normal(0, 10, (STAYS, 1))
    systolic = np.round(120 + level + rng.normal(0, 8, (STAYS, STEPS)))
    diastolic = np.round(65 + level / 2 + rng.normal(0, 5, (STAYS, STEPS)))
    again = rng.random((STAYS, STEPS)) < 0.2
    for step in range(1, STEPS):
        systolic[:, step] = np.where(again[:, step], systolic[:, step - 1], systolic[:, step])
    derived = significant(np.round((systolic + 2 * diastolic) / 3, 2), 4)
    read = np.round((systolic + 2 * diastolic) / 3 + rng.normal(0, 3, (STAYS, STEPS)))
    mean = np.where(np.arange(STAYS)[:, None] % 2, derived, read)
    mean[rng.random((STAYS, STEPS)) < 0.1] = np.nan
    names = ("systolic", "diastolic", "mean")
    schema = Schema(tuple(Feature(name, "continuous", "temporal") for name in names), step="1h", steps=STEPS)
    return Cohort(schema, np.arange(STAYS), dict(zip(names, (systolic, diastolic, mean), strict=True)), {})


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return pressures()


@pytest.fixture(scope="module")
def codec(cohort: Cohort) -> Codec:
    return Codec.fit(cohort, SETTINGS)


def recording(codec: Codec, name: str) -> Recording:
    found = codec.statistics[name].recording
    assert found is not None
    return found


def classes(codec: Codec, batch: Batch, name: str) -> np.ndarray:
    (place,) = (i for i, channel in enumerate(codec.layout.discrete) if channel.feature == name)
    return batch.discrete[:, :, place].numpy()


# --- what is found


@pytest.mark.parametrize(
    ("values", "base", "found"),
    [
        (np.arange(40.0, 140), 1.0, (1.0,)),
        (np.arange(350, 410) / 10, 0.1, (0.1,)),
        (np.append(np.repeat(np.arange(10.0, 400, 10), 9), np.arange(10.0, 400)), 1.0, (10.0, 1.0)),
        (np.append(np.repeat(np.arange(40.0, 90), 3), np.round(np.arange(120, 270) / 3, 2)), None, ()),
    ],
)
def test_lattices_that_hold_more_than_chance_are_found(
    values: np.ndarray, base: float | None, found: tuple[float, ...]
) -> None:
    if base is None:  # whole numbers and thirds: nearly all are hundredths, since thirds are rounded
        coarsest, telling = telling_lattices(values, 2)
        assert (coarsest, telling[0]) == (1 / 3, 1.0)
        return
    assert telling_lattices(values, 1) == (base, found)


def test_numbers_without_a_lattice_have_none() -> None:
    assert telling_lattices(np.random.default_rng(0).normal(size=5000), None) == (None, ())


def test_zeros_say_nothing_of_a_lattice() -> None:
    values = np.append(np.zeros(20_000), np.random.default_rng(0).normal(size=5000, scale=2000))
    assert telling_lattices(values, None) == (None, ())


@given(st.integers(1, 6), st.integers(0, 10**6))
def test_rounding_to_significant_digits_is_that_of_format(digits: int, seed: int) -> None:
    values = np.random.default_rng(seed).uniform(0.01, 2000, 20)
    expected = [
        round(value, max(0, min(6, digits - len(str(int(value))) if value >= 1 else digits))) for value in values
    ]
    large = values >= 1
    np.testing.assert_array_equal(significant(values, digits)[large], np.array(expected)[large])


def test_a_relation_is_found_and_decides_the_class(cohort: Cohort, codec: Codec) -> None:
    mean = recording(codec, "mean")
    assert mean.derived is not None
    assert (mean.derived.form, mean.derived.a, mean.derived.b) == (MEAN, "systolic", "diastolic")
    assert (mean.decimals, mean.digits) == (2, 4)
    found = classes(codec, codec.encode(cohort), "mean")
    values = cohort.series["mean"]
    whole_stays = np.arange(STAYS) % 2 == 0
    known = ~np.isnan(values)
    derived = found == mean.classes.index("derived")
    assert derived[~whole_stays][known[~whole_stays]].mean() > 0.99
    assert derived[whole_stays][known[whole_stays]].mean() < 0.01  # although the relation holds there by chance


def test_the_cuff_of_the_simulated_icu_is_found() -> None:
    """All its mean pressures are thirds, as recorded: a relation must hold to the last digit, not to a third."""
    codec = Codec.fit(simulate(400, steps=24, seed=0), SETTINGS)
    derived = recording(codec, "mbp").derived
    assert derived is not None
    assert derived.words == "mbp = (sbp + 2 · dbp) / 3"


def test_of_two_features_that_equal_each_other_one_is_derived() -> None:
    values = {name: np.arange(300.0).reshape(30, 10) for name in ("a", "b")}
    relations = [ExactRelation(x, "{a}", y, y, 0.5) for x, y in (("a", "b"), ("b", "a"))]
    assert list(derivations(values, relations)) == ["a"]


def test_a_relation_that_gives_one_value_alone_is_none() -> None:
    values = {"a": np.zeros((30, 10)), "b": np.zeros((30, 10))}
    assert derivations(values, [ExactRelation("a", "{a}", "b", "b", 0.5)]) == {}


def test_the_value_before_skips_what_is_missing() -> None:
    values = np.array([[np.nan, 1.0, np.nan, 1.0, 2.0]])
    np.testing.assert_array_equal(before(values), [[np.nan, np.nan, 1.0, 1.0, 1.0]])


# --- there and back


def test_decode_after_encode_gives_the_recorded_values_back(cohort: Cohort, codec: Codec) -> None:
    again = codec.decode(codec.encode(cohort))
    for name, values in cohort.series.items():
        frequent = np.isin(values, [v for v, n in zip(*np.unique(values, return_counts=True), strict=True) if n >= 10])
        np.testing.assert_array_equal(np.isnan(again.series[name]), np.isnan(values))
        same = again.series[name][frequent] == values[frequent]
        assert same.mean() > 0.999, name


def test_what_is_generated_is_recorded_as_its_class_says(cohort: Cohort, codec: Codec) -> None:
    """Of any scores, however wrong, the classes come out as they went in: lattices, repeats, relations, missing."""
    batch = codec.encode(cohort)
    noisy = Batch(torch.randn(batch.continuous.shape), batch.discrete, batch.lengths)
    made = codec.decode(noisy)
    mean, found = recording(codec, "mean"), classes(codec, batch, "mean")
    values = made.series["mean"]
    assert (np.isnan(values) == (found == mean.classes.index("missing"))).all()
    derived = found == mean.classes.index("derived")
    given = significant(np.round((made.series["systolic"] + 2 * made.series["diastolic"]) / 3, 2), 4)
    np.testing.assert_array_equal(values[derived], given[derived])
    whole = found == mean.classes.index("whole numbers")
    assert (values[whole] % 1 == 0).all()
    for name in ("systolic", "diastolic"):
        own, kinds = recording(codec, name), classes(codec, batch, name)
        repeats = made.series[name] == before(made.series[name])
        if own.repeats:
            np.testing.assert_array_equal(repeats[:, 1:], (kinds == own.classes.index("repeat"))[:, 1:])


def test_without_the_class_of_repeats_equal_values_may_follow_each_other() -> None:
    plain = Recording((1.0,), free=False, repeats=False, missing=False, decimals=0)
    quantiles = Quantiles.fit(np.repeat(np.arange(50.0, 60), 20))
    values = plain.recover(np.zeros((2, 3)), np.zeros((2, 3), int), ClassLevels(plain, quantiles), {})
    assert (values == values[0, 0]).all()


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6))
def test_levels_are_as_frequent_as_in_training(seed: int) -> None:
    """What lies anywhere within the distribution is divided among a lattice's points by how frequent they are."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(10, 200, 30)
    values = np.repeat(np.arange(30.0), counts)
    quantiles = Quantiles.fit(values)
    levels = Levels(np.arange(30.0), quantiles, 1.0)
    probability = (np.arange(20_000) + 0.5) / 20_000
    first, second = levels.nearest_two(probability)
    shares = np.array([(first == value).mean() for value in range(30)])
    np.testing.assert_allclose(shares, counts / counts.sum(), atol=2e-3)
    assert (first != second).all()


def test_what_may_not_be_the_last_value_is_divided_by_frequency_too() -> None:
    """Next to a frequent value lies a seldom one: most of what has to leave the first goes beyond."""
    values = np.repeat([0.0, 1.0, 2.0], [1000, 20, 1000])
    levels = Levels(np.arange(3.0), Quantiles.fit(values), 1.0)
    first, second = levels.nearest_two((np.arange(20_000) + 0.5) / 20_000)
    leaving = second[first == 0]
    assert 0 < (leaving == 1).mean() < 0.1
    assert (leaving == 2).mean() > 0.9


def test_a_seldom_point_does_not_take_what_other_classes_leave() -> None:
    """Tenths beside whole numbers: those that hardly occur stay seldom, although whole numbers lie next to them."""
    whole = np.repeat(np.arange(60.0, 100), 100)
    thirds = np.repeat(np.arange(60.0, 99) + 0.3, 20)
    quantiles = Quantiles.fit(np.concatenate([whole, thirds]))
    points = np.round(np.setdiff1d(np.round(np.arange(600, 990) / 10, 1), np.arange(60.0, 100)), 1)
    levels = Levels(points, quantiles, 0.1)
    first, _ = levels.nearest_two((np.arange(5000) + 0.5) / 5000)
    assert (np.abs(first % 1 - 0.3) < 1e-6).mean() > 0.95


def test_of_a_repeat_or_a_relation_of_nothing_there_is_a_value_all_the_same(cohort: Cohort, codec: Codec) -> None:
    batch = codec.encode(cohort)
    discrete = batch.discrete.clone()
    for place, channel in enumerate(codec.layout.discrete):
        own = recording(codec, channel.feature).classes
        discrete[:, :, place] = own.index("repeat") if "repeat" in own else own.index("derived")
    made = codec.decode(Batch(batch.continuous, discrete, batch.lengths))
    assert not any(np.isnan(values).any() for values in made.series.values())


# --- kept and refused


def test_it_is_kept_with_the_codec(cohort: Cohort, codec: Codec) -> None:
    again = Codec.from_json(codec.to_json(), codec.schema)
    assert again.statistics == codec.statistics


def derived(form: str = MEAN, a: str = "systolic") -> dict[str, object]:
    return {"target": "mean", "form": form, "a": a, "b": "diastolic", "tolerance": 0.005}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"lattices": [0.7]}, "no known ones"),
        ({"lattices": [0.1, 1.0]}, "no known ones"),
        ({"lattices": [], "free": False}, "neither a lattice"),
        ({"decimals": 99}, "decimals"),
        ({"digits": 0}, "digits"),
        ({"derived": derived(form="__import__")}, "relation"),
        ({"derived": derived(a="mean")}, "relation"),
        ({"derived": derived(a="nobody")}, "relation"),
    ],
)  # fmt: skip
def test_what_fit_cannot_have_given_is_refused(codec: Codec, changes: dict[str, object], said: str) -> None:
    table = json.loads(codec.to_json())
    table["statistics"]["mean"]["recording"] |= changes
    with pytest.raises(Problems, match=said):
        Codec.from_json(json.dumps(table), codec.schema)


def test_a_static_feature_cannot_say_how_it_is_recorded(codec: Codec) -> None:
    schema = replace(codec.schema, features=(*codec.schema.features, Feature("age", "continuous", "static")))
    table = json.loads(codec.to_json())
    table["statistics"]["age"] = table["statistics"]["mean"]
    with pytest.raises(Problems, match="only continuous temporal features"):
        Codec.from_json(json.dumps(table), schema)


@pytest.mark.parametrize("preset", ["paper", "halo", "rcgan", "tforcing"])
def test_a_generator_that_cannot_use_it_says_so(preset: str) -> None:
    with pytest.raises(Problems, match=r"codec\.recording"):
        resolve(preset, assignments={"codec.recording": True})


# --- intervals


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**31 - 1))
def test_every_number_of_a_value_s_interval_is_decoded_as_that_value(seed: int) -> None:
    cohort, codec = INTERVALS
    batch = codec.encode(cohort, intervals=True)
    assert batch.intervals is not None
    low, high = batch.intervals.double().clamp(-4, 4).unbind(-1)
    place = torch.rand(low.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    inside = torch.where(high > low, low + (high - low) * (0.001 + 0.998 * place), batch.continuous.double())
    decoded = codec.decode(Batch.of(inside, batch.discrete))
    for name, values in cohort.series.items():
        assert np.allclose(decoded.series[name], values, equal_nan=True)
    assert (high > low).double().mean() > 0.3


def test_what_is_encoded_lies_in_its_interval() -> None:
    cohort, codec = INTERVALS
    batch = codec.encode(cohort, intervals=True)
    assert batch.intervals is not None
    low, high = batch.intervals.unbind(-1)
    wide = high > low
    assert ((low <= batch.continuous) & (batch.continuous <= high))[wide].all()
    assert codec.encode(cohort).intervals is None


INTERVALS = (pressures(), Codec.fit(pressures(), SETTINGS))
