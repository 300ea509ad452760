"""Embeddings: what is drawn of each set, the same by seed, and never fewer than ten real stays in one place."""

import builtins
from typing import Any

import numpy as np
import pytest

from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.evaluation.inputs.view import View
from timediff.evaluation.metrics.embeddings import Embedding, densities, embed
from timediff.sources.simulated import simulate


@pytest.fixture(scope="module")
def sets() -> tuple[Cohort, Cohort, Cohort]:
    return simulate(80, steps=6, seed=0), simulate(50, steps=6, seed=1), simulate(90, steps=6, seed=2)


def drawn(sets: tuple[Cohort, Cohort, Cohort], **how: Any) -> Embedding:
    result = embed(View.fit(sets[0]), *sets, **how)
    assert isinstance(result, Embedding)
    return result


def scattered(**counts: int) -> Embedding:
    rng = np.random.default_rng(0)
    which = np.repeat(list(counts), list(counts.values()))
    return Embedding("tsne", rng.normal(size=(len(which), 2)).astype(np.float32), which)


def test_each_set_has_its_points_up_to_the_number_asked_for(sets: tuple[Cohort, Cohort, Cohort]) -> None:
    embedding = drawn(sets, samples=60)
    assert [int((embedding.which == name).sum()) for name in ("train", "test", "synthetic")] == [60, 50, 60]
    assert embedding.points.shape == (170, 2)
    assert embedding.points.dtype == np.float32
    assert np.isfinite(embedding.points).all()


def test_the_same_seed_gives_the_same_points(sets: tuple[Cohort, Cohort, Cohort]) -> None:
    first = drawn(sets, samples=40, seed=1)
    np.testing.assert_array_equal(first.points, drawn(sets, samples=40, seed=1).points)
    assert not np.array_equal(first.points, drawn(sets, samples=40, seed=2).points)


def test_stays_of_another_world_lie_apart(sets: tuple[Cohort, Cohort, Cohort]) -> None:
    train, test, synthetic = sets
    far = Cohort(
        synthetic.schema, synthetic.stay_id, {n: v + 50 for n, v in synthetic.series.items()}, synthetic.static
    )
    embedding = drawn((train, test, far))
    centre = {name: embedding.points[embedding.which == name].mean(axis=0) for name in ("train", "test", "synthetic")}
    apart = np.linalg.norm(centre["synthetic"] - centre["test"])
    assert apart > 5 * np.linalg.norm(centre["train"] - centre["test"])


def test_wide_series_are_embedded_by_their_components() -> None:
    long = tuple(simulate(40, steps=48, seed=seed) for seed in range(3))
    assert View.fit(long[0]).flat(long[0]).shape[1] > 500
    assert drawn(long).points.shape == (120, 2)


@pytest.mark.parametrize(("samples", "perplexity"), [(60, 30.0), (30, 89 / 3)])
def test_tsne_has_the_settings_of_the_paper_as_far_as_there_are_stays(
    samples: int, perplexity: float, sets: tuple[Cohort, Cohort, Cohort], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    class Recorded:
        def __init__(self, **settings: Any) -> None:
            asked.append(settings)

        def fit_transform(self, rows: Any) -> Any:
            return np.zeros((len(rows), 2))

    monkeypatch.setattr("sklearn.manifold.TSNE", Recorded)
    drawn(sets, samples=samples)
    (settings,) = asked
    assert settings["perplexity"] == pytest.approx(perplexity)
    assert settings["max_iter"] == 300
    assert (settings["learning_rate"], settings["init"]) == ("auto", "pca")


def test_umap_is_reproducible_too(sets: tuple[Cohort, Cohort, Cohort]) -> None:
    first, second = (drawn(sets, method="umap", samples=30, seed=3) for _ in range(2))
    assert first.points.shape == (90, 2)
    np.testing.assert_array_equal(first.points, second.points)


def test_without_umap_learn_the_user_is_told_what_to_install(
    sets: tuple[Cohort, Cohort, Cohort], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name == "umap":
            raise ImportError(name)
        return plain(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(TimeDiffError, match=r"pip install 'timediff-icu\[evaluate\]'"):
        drawn(sets, method="umap")


def test_too_few_stays_are_a_sentence(sets: tuple[Cohort, Cohort, Cohort]) -> None:
    train, test, synthetic = sets
    why = embed(View.fit(train), train, test.take(np.arange(29)), synthetic)
    assert isinstance(why, str)
    assert "fewer than 30 stays in the test set" in why


@pytest.mark.parametrize("bins", [None, 3, 8])
def test_a_bin_of_fewer_than_ten_is_blank(bins: int | None) -> None:
    embedding = scattered(train=300, test=200, synthetic=400)
    shown = densities(embedding, bins)
    for name, shares in shown.fractions.items():
        points = embedding.points[embedding.which == name]
        count, _, _ = np.histogram2d(points[:, 0], points[:, 1], bins=(shown.x, shown.y))
        np.testing.assert_array_equal(np.isnan(shares), count < 10)
        np.testing.assert_allclose(shares[count >= 10], count[count >= 10] / len(points))


def test_most_stays_are_shown_when_the_bins_are_not_chosen() -> None:
    for share in densities(scattered(train=2000, test=2000, synthetic=2000)).fractions.values():
        assert np.nansum(share) > 0.8


def test_one_stay_far_away_changes_no_picture() -> None:
    embedding = scattered(train=400, test=400, synthetic=400)
    points = embedding.points.copy()
    points[np.argmax(points[:, 0]), 0] = 1e6
    ours, theirs = densities(embedding), densities(Embedding("tsne", points, embedding.which))
    np.testing.assert_array_equal(ours.x, theirs.x)
    np.testing.assert_array_equal(ours.fractions["test"], theirs.fractions["test"])
