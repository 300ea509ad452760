"""A feature as a standard normal one: monotone, exact for what was seen, and levels come back whatever the noise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from timediff.data.codec import Codec
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.data.quantiles import Quantiles
from timediff.settings.training import CodecSettings
from timediff.sources.simulated import simulate

some_values = arrays(
    np.float64, st.integers(2, 300), elements=st.one_of(st.integers(0, 12).map(float), st.floats(-1e3, 1e3, width=32))
).filter(lambda values: len(np.unique(values)) > 1)


@given(some_values)
@settings(deadline=None)
def test_what_was_seen_comes_back(values):
    known = Quantiles.fit(values)
    assert np.allclose(known.decode(known.encode(values)), values, rtol=1e-6, atol=1e-6 * np.ptp(values))


@given(some_values)
@settings(deadline=None)
def test_order_is_kept_and_nothing_beyond_the_extremes_is_made(values):
    known = Quantiles.fit(values)
    assert (np.diff(known.encode(np.sort(values))) >= -1e-9).all()
    made = known.decode(np.linspace(-9, 9, 200))
    assert (np.diff(made) >= 0).all()
    assert made.min() >= values.min()
    assert made.max() <= values.max()


def test_scores_are_standard_normal():
    values = np.random.default_rng(0).gamma(1.5, size=20_000)
    scores = Quantiles.fit(values).encode(values)
    assert abs(scores.mean()) < 1e-9
    assert abs(scores.std() - 1) < 1e-9
    assert np.allclose(np.quantile(scores, [0.025, 0.16, 0.5, 0.84]), [-1.96, -0.994, 0, 0.994], atol=0.02)


def test_a_level_comes_back_from_anywhere_in_its_share():
    values = np.repeat([0.21, 0.4, 0.5, 1.0], [100, 400, 300, 200])
    known = Quantiles.fit(values)
    noise = np.random.default_rng(0).normal(0, 0.1, len(values))
    assert np.array_equal(known.decode(known.encode(values) + noise), values)


def test_what_lies_beyond_the_training_values_is_as_the_extreme():
    """Also where that is a level, whose share begins at probability 0."""
    known = Quantiles.fit(np.repeat([1.0, 2.0], 50))
    assert np.array_equal(known.encode(np.array([-7.0, 9.0])), known.encode(np.array([1.0, 2.0])))


def test_normal_noise_becomes_the_distribution_it_was_fitted_to():
    rng = np.random.default_rng(0)
    values = np.concatenate([np.repeat([3.0, 15.0], [3000, 5000]), rng.integers(4, 15, 2000)])
    known = Quantiles.fit(values)
    made = known.decode((rng.standard_normal(50_000) - known.mean) / known.sd)
    assert abs((made == 15).mean() - 0.5) < 0.01
    assert abs((made == 3).mean() - 0.3) < 0.01


@given(some_values)
@settings(deadline=None)
def test_every_knot_but_the_extremes_stands_for_ten_observations(values):
    assert (len(Quantiles.fit(values).value) - 2) * MIN_AGGREGATE <= len(values)


def test_the_codec_gives_back_what_it_was_given_and_fills_within_the_stay():
    cohort = simulate(60, steps=8, seed=0)
    codec = Codec.fit(cohort, CodecSettings(scale="quantile", fill="carry"))
    back = codec.decode(codec.encode(cohort))
    for feature in cohort.schema.temporal:
        assert np.allclose(back.series[feature.name], cohort.series[feature.name], atol=1e-4, equal_nan=True)
    assert Codec.from_json(codec.to_json(), codec.schema) == codec
    mean = Codec.fit(cohort, CodecSettings(scale="quantile"))
    column = [c.feature for c in codec.layout.continuous].index("heart_rate")
    gaps = np.isnan(cohort.series["heart_rate"])
    assert (mean.encode(cohort).continuous[:, :, column].numpy()[gaps] == 0).all()
    inside = gaps & ~gaps.all(axis=1, keepdims=True)
    assert np.mean(codec.encode(cohort).continuous[:, :, column].numpy()[inside] == 0) < 0.1


def test_sparse_channels_and_quantiles_exclude_each_other():
    from timediff.errors import TimeDiffError

    with pytest.raises(TimeDiffError, match="leave no room"):
        Codec.fit(simulate(60, steps=4, seed=0), CodecSettings(scale="quantile", sparse=("heart_rate",)))
