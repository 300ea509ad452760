"""Encoding loses nothing that was observed, and decoding gives nothing that could not be."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.strategies import schemas
from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.data.cohort import Cohort
from timediff.data.schema import Feature, Schema, multiples
from timediff.errors import Problems, TimeDiffError
from timediff.settings.training import CodecSettings


@st.composite
def cohorts(draw: st.DrawFn) -> Cohort:
    """Any schema; values on the resolution and inside the bounds; any share missing, up to all."""
    schema = replace(draw(schemas()), steps=draw(st.integers(1, 5)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    stays = draw(st.integers(2, 8))
    series, static = {}, {}
    for feature in schema.features:
        shape = (stays, schema.steps) if feature.scope == "temporal" else (stays,)
        values = _values(feature, shape, rng)
        values[rng.random(shape) < draw(st.sampled_from([0.0, 0.3, 1.0]))] = np.nan
        (series if feature.scope == "temporal" else static)[feature.name] = values
    return Cohort(schema, np.arange(stays), series, static)


def _values(feature: Feature, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if feature.discrete:
        return rng.integers(0, len(feature.classes), shape).astype(float)
    low, high = feature.bounds or (-100.0, 100.0)
    values = rng.uniform(low, high, shape)
    if feature.resolution:
        steps = np.clip(np.round(values / feature.resolution), *multiples((low, high), feature.resolution))
        values = np.clip(steps * feature.resolution, low, high)
    return values


@settings(deadline=None, max_examples=200)
@given(cohorts())
def test_decode_after_encode_is_the_identity_on_what_was_observed(cohort: Cohort) -> None:
    if all(_constant(cohort.values(feature.name)) for feature in cohort.schema.features):
        with pytest.raises(Problems, match="nothing to learn"):
            Codec.fit(cohort, CodecSettings(allow_constant=True))
        return
    codec = Codec.fit(cohort, CodecSettings(allow_constant=True))
    again = codec.decode(codec.encode(cohort))
    for feature in cohort.schema.features:
        before, after = cohort.values(feature.name), again.values(feature.name)
        assert np.array_equal(np.isnan(before), np.isnan(after)), feature
        observed = ~np.isnan(before)
        if feature.discrete or not observed.any():
            assert np.array_equal(before[observed], after[observed])
            continue
        size = np.abs(before[observed]).max()
        tolerance = 1e-9 * size if feature.resolution else 1e-6 * np.ptp(before[observed]) + 1e-9 * size
        assert np.abs(before[observed] - after[observed]).max() <= tolerance


def _constant(values: np.ndarray) -> bool:
    """No channel at all: one value only, and either all of it missing or none."""
    observed = values[~np.isnan(values)]
    return len(set(observed)) <= 1 and len(observed) in (0, values.size)


def test_values_on_the_resolution_come_back_to_the_bit(icu: Cohort) -> None:
    codec = Codec.fit(icu)
    again = codec.decode(codec.encode(icu))
    for name, values in icu.series.items():
        assert np.array_equal(values, again.series[name], equal_nan=True)
    for name, values in icu.static.items():
        assert np.array_equal(values, again.static[name])


def test_channels_of_the_paper(icu: Cohort) -> None:
    """Seven vital signs, a mask each, age, sex and death: 8 continuous channels, 9 binary ones."""
    codec = Codec.fit(icu)
    assert [c.feature for c in codec.layout.continuous] == [*icu.series, "age"]
    assert [(c.feature, c.part) for c in codec.layout.discrete] == [
        *((name, "mask") for name in icu.series), ("sex", "value"), ("died", "value"),
    ]  # fmt: skip
    assert codec.layout.classes == (2,) * 9


def test_range_mean_and_mask(icu: Cohort) -> None:
    encoded, values = Codec.fit(icu).encode(icu), icu.series["heart_rate"]
    channel, mask, missing = encoded.continuous[..., 0].numpy(), encoded.discrete[..., 0].numpy(), np.isnan(values)
    assert channel.min() == -1
    assert channel.max() == 1
    assert np.array_equal(mask == 1, missing)
    mean = 2 * (np.nanmean(values) - np.nanmin(values)) / (np.nanmax(values) - np.nanmin(values)) - 1
    assert np.allclose(channel[missing], mean, atol=1e-6)


def test_bounds_instead_of_training_extremes(icu: Cohort) -> None:
    codec = Codec.fit(icu, CodecSettings(scale="bounds"))
    assert (codec.statistics["heart_rate"].low, codec.statistics["heart_rate"].high) == (20, 250)
    again = codec.decode(codec.encode(icu))
    assert np.array_equal(icu.series["heart_rate"], again.series["heart_rate"], equal_nan=True)


def test_fitted_on_training_data_only(icu: Cohort) -> None:
    train, test = icu.split()
    codec = Codec.fit(train)
    before = codec.to_json()
    codec.encode(test)
    assert codec.to_json() == before
    assert codec.statistics["heart_rate"].high == np.nanmax(train.series["heart_rate"])


PLAIN, QUANTILE = CodecSettings(), CodecSettings(scale="quantile")
RECORDED = CodecSettings(scale="quantile", recording=True)


@settings(deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([PLAIN, RECORDED]))
def test_whatever_is_generated_is_valid(mixed: Cohort, seed: int, how: CodecSettings) -> None:
    """Any tensor, however wild, decodes into bounds, resolution and classes, one value for a static feature."""
    codec, rng = Codec.fit(mixed, how), np.random.default_rng(seed)
    wild = Batch.of(
        torch.from_numpy(rng.normal(0, 3, (4, 6, len(codec.layout.continuous))).astype(np.float32)),
        torch.from_numpy(
            np.stack([rng.integers(0, k, (4, 6)) for k in codec.layout.classes], axis=-1).astype(np.int32)
        ),
    )
    made = codec.decode(wild)
    assert "patient" not in made.schema
    assert same_after_reading(made)
    pulse = made.series["pulse"][~np.isnan(made.series["pulse"])]
    assert (pulse == np.round(pulse)).all()


def same_after_reading(cohort: Cohort) -> bool:
    """A cohort that its own checks accept."""
    return len(Cohort.from_tables(cohort.schema, *cohort.tables())) == len(cohort)


def test_a_static_value_is_the_mean_or_the_majority(mixed: Cohort) -> None:
    codec = Codec.fit(mixed)
    encoded = codec.encode(mixed)
    unit = [c.feature for c in codec.layout.discrete].index("unit")
    encoded.discrete[:, 0, unit] = 0  # one dissenting step of six
    assert np.array_equal(codec.decode(encoded).static["unit"], mixed.static["unit"])
    height = [c.feature for c in codec.layout.continuous].index("height")
    encoded.continuous[:, ::2, height] += 0.01
    encoded.continuous[:, 1::2, height] -= 0.01
    assert np.array_equal(codec.decode(encoded).static["height"], mixed.static["height"], equal_nan=True)


def test_sparse_channel_has_no_mask_and_keeps_its_holes(mixed: Cohort) -> None:
    codec = Codec.fit(mixed, CodecSettings(sparse=("lactate",)))
    assert ("lactate", "mask") not in [(c.feature, c.part) for c in codec.layout.discrete]
    encoded = codec.encode(mixed)
    channel = encoded.continuous[..., [c.feature for c in codec.layout.continuous].index("lactate")].numpy()
    missing = np.isnan(mixed.series["lactate"])
    assert (channel[missing] == -1).all()
    assert channel[~missing].min() > -0.81
    again = codec.decode(encoded).series["lactate"]
    assert np.allclose(again, mixed.series["lactate"], rtol=1e-5, equal_nan=True)


def _broken(mixed: Cohort, value: float) -> Cohort:
    return replace(mixed, series={**mixed.series, "pulse": np.full_like(mixed.series["pulse"], value)})


@pytest.mark.parametrize(("value", "said"), [(np.nan, "'pulse' has no value at all"), (80.0, "'pulse' is always 80")])
def test_nothing_to_learn_is_refused_or_carried_through(value: float, said: str, mixed: Cohort) -> None:
    broken = _broken(mixed, value)
    with pytest.raises(Problems, match=f"{said}.*--allow-constant"):
        Codec.fit(broken)
    codec = Codec.fit(broken, CodecSettings(allow_constant=True))
    again = codec.decode(codec.encode(broken))
    assert np.array_equal(again.series["pulse"], broken.series["pulse"], equal_nan=True)


def test_a_constant_sparse_feature_keeps_its_holes(mixed: Cohort) -> None:
    values = np.where(np.isnan(mixed.series["lactate"]), np.nan, 2.0)
    broken = replace(mixed, series={**mixed.series, "lactate": values})
    codec = Codec.fit(broken, CodecSettings(allow_constant=True, sparse=("lactate",)))
    assert np.array_equal(codec.decode(codec.encode(broken)).series["lactate"], values, equal_nan=True)


def test_many_classes() -> None:
    schema = Schema((Feature("x", "categorical", classes=tuple(range(40_000))),), 1)
    cohort = Cohort(schema, np.arange(2), {"x": np.array([[0.0], [39_999.0]])}, {})
    codec = Codec.fit(cohort)
    assert codec.decode(codec.encode(cohort)).series["x"].tolist() == [[0], [39_999]]


def test_a_resolution_too_fine_for_single_precision_is_refused() -> None:
    schema = Schema((Feature("x", "continuous", resolution=1),), 1)
    cohort = Cohort(schema, np.arange(2), {"x": np.array([[0.0], [1e9]])}, {})
    with pytest.raises(Problems, match="coarser resolution"):
        Codec.fit(cohort)


def test_a_constant_label_is_refused(icu: Cohort) -> None:
    survivors = icu.take(icu.label == 0)
    with pytest.raises(Problems, match="'died' is always 0"):
        Codec.fit(survivors)


def test_ragged_stays_are_told_of_the_horizon(ragged: Cohort) -> None:
    with pytest.raises(TimeDiffError, match=r"2 to 6 steps.*--horizon 2"):
        Codec.fit(ragged).encode(ragged)


def test_text_round_trip(mixed: Cohort) -> None:
    codec = Codec.fit(_broken(mixed, np.nan), CodecSettings(allow_constant=True, sparse=("lactate",)))
    again = Codec.from_json(codec.to_json(), codec.schema)
    assert again.to_json() == codec.to_json()
    assert (again.layout.continuous, again.layout.discrete) == (codec.layout.continuous, codec.layout.discrete)


def test_a_schema_without_discrete_channels() -> None:
    schema = Schema((Feature("x", "continuous"), Feature("y", "continuous")), 3)
    values = np.random.default_rng(0).normal(size=(2, 5, 3))
    cohort = Cohort(schema, np.arange(5), {"x": values[0], "y": values[1]}, {})
    codec = Codec.fit(cohort)
    assert codec.layout.discrete == ()
    assert np.allclose(codec.decode(codec.encode(cohort)).series["y"], values[1], atol=1e-5)


def _statistics(kind: str, *, recording: bool = False) -> tuple[Codec, dict[str, Any]]:
    schema = Schema((Feature("x", "continuous"), Feature("c", "categorical", classes=("a", "b", "c"))), 6)
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 6))
    series = {"x": np.round(10 * values) if recording else values, "c": rng.integers(0, 3, (40, 6)).astype(float)}
    how = CodecSettings(scale=kind, recording=recording)  # type: ignore[arg-type]
    codec = Codec.fit(Cohort(schema, np.arange(40), series, {}), how)
    return codec, json.loads(codec.to_json())


IMPOSSIBLE: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "no feature": (lambda t: t["statistics"].pop("x"), "'x' has no statistics"),
    "another feature": (lambda t: t["statistics"].update(y=t["statistics"]["x"]), "'y' is not a feature"),
    "null": (lambda t: t["statistics"]["x"].update(low=None), "all null where no value was ever observed"),
    "all null": (lambda t: t["statistics"]["x"].update(low=None, high=None, fill=None), "all null where"),
    "NaN": (lambda t: t["statistics"]["x"].update(fill=float("nan")), "it holds NaN"),
    "infinite": (lambda t: t["statistics"]["x"].update(high=float("inf")), "it holds Infinity"),
    "text": (lambda t: t["statistics"]["x"].update(high="9"), "high is '9'; expected a number"),
    "true": (lambda t: t["statistics"]["x"].update(high=True), "high is True; expected a number"),
    "number for a fact": (lambda t: t["statistics"]["x"].update(missing=1), "missing is 1; expected true or false"),
    "beyond": (lambda t: t["statistics"]["x"].update(high=1e308), "beyond what can be computed with"),
    "upside down": (lambda t: t["statistics"]["x"].update(low=9.0), "low is not below high"),
    "constant": (lambda t: t["statistics"]["x"].update(constant=True), "its numbers are not all the same"),
    "half a class": (lambda t: t["statistics"]["c"].update(fill=1.5), "not numbers of its classes"),
    "no class": (lambda t: t["statistics"]["c"].update(high=3), "not numbers of its classes"),
    "fill": (lambda t: t.update(fill="median"), "expected one of mean, carry"),
    "unknown": (lambda t: t.update(scale="training"), "there is no setting scale"),
    "unequal": (lambda t: t["statistics"]["x"]["quantiles"]["low"].pop(), "as many values as probabilities"),
    "one knot": (lambda t: t["statistics"]["x"]["quantiles"].update(value=[1], low=[0], high=[1]), "at least two"),
    "falling": (lambda t: t["statistics"]["x"]["quantiles"]["value"].reverse(), "do not ascend"),
    "probability": (
        lambda t: t["statistics"]["x"]["quantiles"]["high"].__setitem__(-1, 1.5), "probabilities of its quantiles",
    ),
    "probabilities": (lambda t: t["statistics"]["x"]["quantiles"]["low"].reverse(), "probabilities of its quantiles"),
    "no spread": (lambda t: t["statistics"]["x"]["quantiles"].update(sd=0), "not above 0"),
    "knots as text": (lambda t: t["statistics"]["x"]["quantiles"].update(value="abc"), "quantiles"),
    "knots as texts": (lambda t: t["statistics"]["x"]["quantiles"].update(value=["a", "b"]), "expected a number"),
}  # fmt: skip


@pytest.mark.parametrize("kind", IMPOSSIBLE)
def test_a_codec_that_no_data_can_have_given_is_refused(kind: str) -> None:
    codec, table = _statistics("quantile")
    change, said = IMPOSSIBLE[kind]
    change(table)
    with pytest.raises(TimeDiffError, match=said):
        Codec.from_json(json.dumps(table), codec.schema, "codec.json")


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=6,
), st.lists(st.integers(0, 9), max_size=4))  # fmt: skip
@settings(deadline=None)
def test_whatever_stands_in_a_codec_it_is_read_or_refused(value: object, path: list[int]) -> None:
    codec, table = _statistics("quantile", recording=True)
    node: Any = table
    for number in path:
        keys: list[Any] = [*node] if isinstance(node, dict) else [*range(len(node))] if isinstance(node, list) else []
        if keys:
            parent, key = node, keys[number % len(keys)]
            node = parent[key]
    if path:
        parent[key] = value
    with suppress(TimeDiffError):
        read = Codec.from_json(json.dumps(table if path else value), codec.schema)
        made = read.decode(read.encode(codec.decode(codec.encode(_cohort_of(codec)))))
        assert np.isfinite(made.series["x"]).all()


def _cohort_of(codec: Codec) -> Cohort:
    return Cohort(codec.schema, np.arange(2), {"x": np.zeros((2, 6)), "c": np.zeros((2, 6))}, {})


@settings(deadline=None, max_examples=100)
@given(cohorts(), st.sampled_from([PLAIN, QUANTILE, RECORDED]))
def test_every_codec_that_was_fitted_is_read_back(cohort: Cohort, how: CodecSettings) -> None:
    if all(_constant(cohort.values(feature.name)) for feature in cohort.schema.features):
        return
    codec = Codec.fit(cohort, replace(how, allow_constant=True))
    made = codec.decode(codec.encode(cohort))
    for feature in cohort.schema.features:
        assert (np.isnan(made.values(feature.name)) == np.isnan(cohort.values(feature.name))).all()
    assert Codec.from_json(codec.to_json(), codec.schema).to_json() == codec.to_json()


@pytest.mark.parametrize("scale", ["training", "quantile"])
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((-1e308, 1e308), r"'x' has values of about 1e\+308, more than"),
        ((1.0, 1e200), r"'x' has values of about 1e\+200, more than"),
        ((5e-324, 1e-323), r"'x' has a range of about 5e-324, less than"),
        ((0.0, 1e-310), r"'x' has a range of about 1e-310, less than"),
    ],
)
def test_numbers_that_cannot_be_computed_with_are_named_before_training(
    values: tuple[float, float], said: str, scale: str
) -> None:
    schema = Schema((Feature("x", "continuous"),), 1)
    cohort = Cohort(schema, np.arange(40), {"x": np.resize(values, (40, 1))}, {})
    with pytest.raises(Problems, match=f"{said}.*another unit"):
        Codec.fit(cohort, CodecSettings(scale=scale))  # type: ignore[arg-type]


@pytest.mark.parametrize("values", [(-1e149, 1e149), (1e-149, 9e-149), (1e15, 1e15 + 1)])
def test_large_and_small_numbers_that_can_be_computed_with_come_back(values: tuple[float, float]) -> None:
    schema = Schema((Feature("x", "continuous"),), 1)
    cohort = Cohort(schema, np.arange(40), {"x": np.resize(values, (40, 1))}, {})
    for how in (PLAIN, QUANTILE, RECORDED):
        codec = Codec.fit(cohort, how)
        again = codec.decode(codec.encode(cohort)).series["x"]
        assert np.allclose(again, cohort.series["x"], rtol=0, atol=1e-6 * (values[1] - values[0]))
