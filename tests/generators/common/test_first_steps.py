"""First steps: sampled from a fitted distribution that keeps nobody's value, or those of the training stays."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.small_baselines import baseline, columns_of
from timediff.data.cohort import Cohort
from timediff.generators.common.first_steps import Copula, Remembered
from timediff.runtime.randomness import Noise
from timediff.sources.simulated import simulate


def many() -> Noise:
    return Noise("sampling", [(0, 0)], [20_000], 20_000, torch.device("cpu"))


def test_fitted_first_steps_vary_and_correlate_like_the_real_ones() -> None:
    columns, joined = columns_of(simulate(3000, steps=2, seed=0))
    vectors = joined[:, 0]
    first = Copula(columns)
    first.fit(vectors)
    real, made = vectors.double().numpy(), first.sample(many()).double().numpy()
    assert np.allclose(made.mean(axis=0), real.mean(axis=0), atol=0.03)
    assert np.allclose(made.std(axis=0), real.std(axis=0), atol=0.03)
    continuous = slice(0, columns.continuous)
    gap = np.corrcoef(made[:, continuous].T) - np.corrcoef(real[:, continuous].T)
    assert np.abs(gap).max() < 0.06
    assert set(np.unique(made[:, columns.continuous :])) == {-1.0, 1.0}


@given(stays=st.integers(10, 300), seed=st.integers(0, 99))
def test_no_knot_of_fitted_first_steps_is_of_fewer_than_ten_stays(stays: int, seed: int, mixed: Cohort) -> None:
    """Where stays have the values 0, 1, 2 …, means of ten neighbours lie ten apart. So a knot is nobody's value."""
    columns, _ = columns_of(mixed)
    draws = torch.Generator().manual_seed(seed)
    first = Copula(columns)
    first.fit(torch.stack([torch.randperm(stays, generator=draws).float() for _ in range(columns.width)], dim=1))
    for knots in first.knots.double():
        assert knots[0] >= 4.5
        assert knots[-1] <= stays - 5.5
        assert bool((knots.diff() >= 10).all())


def test_fitted_first_steps_have_every_class_at_its_rate(mixed: Cohort) -> None:
    """Of two, three and five classes."""
    columns, joined = columns_of(mixed)
    first = Copula(columns)
    first.fit(joined[:, 0])
    _, real = columns.split(joined[:, 0])
    _, made = columns.split(first.sample(many()))
    for i, k in enumerate(columns.classes):
        rates = [(own[:, i].bincount(minlength=k) / len(own)).numpy() for own in (real, made)]
        assert np.allclose(*rates, atol=0.02)
    assert {2, 3, 5} <= set(columns.classes)


def test_real_first_steps_are_those_of_training_stays(mixed: Cohort) -> None:
    made = baseline("tforcing", training__steps=1, model__first="real").fit(mixed, seed=0).sample(40, seed=1)
    pulses = set(mixed.series["pulse"][:, 0][~np.isnan(mixed.series["pulse"][:, 0])])
    sampled = made.series["pulse"][:, 0]
    assert set(sampled[~np.isnan(sampled)]) <= pulses


def test_what_is_remembered_of_a_first_step_is_its_squared_distance_to_the_nearest(mixed: Cohort) -> None:
    """Exactly 0 of a training stay's, also among many that lie far from zero."""
    columns, _ = columns_of(mixed)
    draws = torch.Generator().manual_seed(0)
    vectors, others = (50 + torch.randn(100, columns.width, generator=draws) for _ in range(2))
    remembered, fitted = Remembered(columns), Copula(columns)
    remembered.fit(vectors)
    assert (remembered.losses(vectors[20:60]) == 0).all()
    expected = (others[:, None] - vectors).square().mean(dim=-1).amin(dim=1)
    assert torch.allclose(remembered.losses(others), expected, rtol=1e-4)
    fitted.fit(vectors)
    assert fitted.losses(vectors) is None
