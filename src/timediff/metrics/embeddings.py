"""Embeddings: stays as points in a plane, training, test and synthetic ones together, as in the paper's figures.

A look, not a score: neither axes nor distances between clusters mean anything.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from timediff import seeding
from timediff.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.metrics.views import Single, View
from timediff.tables import Array, Floats

Method = Literal["tsne", "umap"]
FEWEST_STAYS = 30  # in each set
WIDE = 500  # columns; above, t-SNE sees the first 50 principal components, which keep what distances it needs
COMPONENTS = 50
ITERATIONS = 300
PERPLEXITY = 30.0
PER_BIN = 15  # stays of the smallest set that a bin holds on average
FEWEST_BINS, MOST_BINS = 2, 40


@dataclass(frozen=True, eq=False)
class Embedding:
    """Points of single stays: drawn only for the eyes of those who may see the records."""

    method: Method
    points: Single  # (n, 2)
    which: Array  # (n,), "train", "test" or "synthetic"


@dataclass(frozen=True, eq=False)
class Densities:
    """How many stays lie where: what may be shown of an embedding."""

    x: Floats  # (bins + 1,) edges
    y: Floats  # (bins + 1,) edges
    shares: Mapping[str, Floats]  # of each set, (bins, bins) by x, then y; NaN = too few stays to show


def embed(
    view: View,
    train: Cohort,
    test: Cohort,
    synthetic: Cohort,
    *,
    method: Method = "tsne",
    samples: int = 2000,
    seed: int = 0,
) -> Embedding | str:
    """Up to `samples` stays of each set in one plane; where a set has too few, a sentence that says so."""
    sets = {"train": train, "test": test, "synthetic": synthetic}
    if short := [name for name, cohort in sets.items() if min(len(cohort), samples) < FEWEST_STAYS]:
        return (
            f"fewer than {FEWEST_STAYS} stays in the {' and '.join(short)} set; at least that many are needed in each"
        )
    drawn = {}
    for i, (name, cohort) in enumerate(sets.items()):
        rng = seeding.stream("judging", seed, i)
        drawn[name] = cohort.take(rng.permutation(len(cohort))[:samples])
    flat = np.concatenate([view.flat(cohort) for cohort in drawn.values()])
    which = np.repeat(list(drawn), [len(cohort) for cohort in drawn.values()])
    start = int(seeding.stream("judging", seed, len(sets)).integers(2**31))
    points = {"tsne": _tsne, "umap": _umap}[method](flat, start)
    return Embedding(method, points.astype(np.float32), which)


def _tsne(flat: Single, seed: int) -> Array:
    """t-SNE (van der Maaten & Hinton 2008), its learning rate scaled with the points (Belkina et al. 2019)."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    if flat.shape[1] > WIDE:
        flat = PCA(min(COMPONENTS, len(flat)), svd_solver="randomized", random_state=seed).fit_transform(flat)
    perplexity = min(PERPLEXITY, (len(flat) - 1) / 3)
    # "auto" is n / early exaggeration / 4, at least 50: scikit-learn's rate counts 4 times that of the publication.
    plane = TSNE(perplexity=perplexity, max_iter=ITERATIONS, learning_rate="auto", init="pca", random_state=seed)
    points: Array = plane.fit_transform(flat)
    return points


def _umap(flat: Single, seed: int) -> Array:
    """UMAP (McInnes et al. 2018) with its usual settings."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ImportWarning)  # of TensorFlow, which only its parametric variant needs
            from umap import UMAP
    except ImportError as error:
        raise TimeDiffError(
            "UMAP needs umap-learn, which is not installed: pip install 'timediff[evaluate]', or take tsne."
        ) from error
    points: Array = UMAP(random_state=seed, n_jobs=1).fit_transform(flat)  # one seed, one thread: reproducible
    return points


def densities(embedding: Embedding, bins: int | None = None, fewest: int = 10) -> Densities:
    """The share of each set's stays in each bin; blank where a bin has fewer than `fewest` of them.

    The edges leave out the outermost half a percent on each side: one stay far away would shrink all others into a
    few bins, and show where it lies. Without `bins`, a bin has some 15 stays of the smallest set on average.
    """
    if bins is None:
        smallest = int(np.unique(embedding.which, return_counts=True)[1].min())
        bins = min(MOST_BINS, max(FEWEST_BINS, int(np.sqrt(smallest / PER_BIN))))
    x, y = (np.linspace(*_middle(axis), bins + 1) for axis in embedding.points.T.astype(np.float64))
    shares = {}
    for name in np.unique(embedding.which):
        points = embedding.points[embedding.which == name].astype(np.float64)
        count, _, _ = np.histogram2d(points[:, 0], points[:, 1], bins=(x, y))
        shares[str(name)] = np.where(count >= fewest, count / len(points), np.nan)
    return Densities(x, y, shares)


def _middle(axis: Floats) -> tuple[float, float]:
    """Where all but the outermost half a percent on each side lies; never a point."""
    low, high = (float(edge) for edge in np.quantile(axis, [0.005, 0.995]))
    return (low, high) if low < high else (low - 0.5, high + 0.5)
