"""Embeddings: stays as points in a plane, training, test and synthetic ones together, as in the paper's figures.

A look, not a score: neither axes nor distances between clusters mean anything.
"""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.errors import TimeDiffError
from timediff.evaluation.case import Measurement
from timediff.evaluation.figure_data import DensityMap, FigureData, Points, named, plain
from timediff.evaluation.inputs.view import Single, View
from timediff.evaluation.registry import Cost, metric
from timediff.runtime import seeding

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
    """Points of single stays: shown only to those who may see the records."""

    method: Method
    points: Single  # (n, 2)
    which: Array  # (n,), "train", "test" or "synthetic"


@dataclass(frozen=True, eq=False)
class Densities:
    """How many stays lie where: what may be shown of an embedding."""

    x: Floats  # (bins + 1,) edges
    y: Floats  # (bins + 1,) edges
    fractions: Mapping[str, Floats]  # of each set, (bins, bins) by x, then y; NaN = too few stays to show


METHODS: dict[Method, str] = {"tsne": "t-SNE", "umap": "UMAP"}
SETS = {"train": "real, training", "test": "real, unseen", "synthetic": "synthetic"}
BINS = (40, 30, 24, 18, 14, 10, 7, 5)  # a side of a map, from fine to coarse
COVERED = 0.9  # of each set's stays should be in bins that may be shown; finer maps would be mostly blank


@metric("embeddings", "looks real", title="Maps of all stays", cost=Cost(50))
def measure(given: Measurement) -> list[FigureData]:
    """No number: where the stays of each set lie."""
    settings, view = given.settings, given.case.scaled("standard")
    figures: list[FigureData] = []
    for number, method in enumerate(METHODS):
        found = embed(
            view, given.train, given.test, given.cohort, method=method, samples=settings.samples, seed=settings.seed
        )
        if not isinstance(found, str):
            figures += maps(found, given.generator, internal=settings.internal)
        given.progress(number + 1, len(METHODS))
    return figures


def maps(embedding: Embedding, generator: str, *, internal: bool = False) -> list[FigureData]:
    """Where the stays of each set lie, a map a set, and only if `internal` every stay as a point."""
    return named(generator, _maps(embedding, internal))


def _maps(embedding: Embedding, internal: bool) -> Iterator[FigureData]:
    found, method = finest_densities(embedding), METHODS[embedding.method]
    tops = [float(np.nanmax(one)) for one in found.fractions.values() if not np.isnan(one).all()]
    most = max(tops, default=None)
    for name, words in SETS.items():  # a figure each: on a phone they stand below each other
        if name in found.fractions:
            rows = [plain(row) for row in found.fractions[name]]
            x, y = (plain((edges[:-1] + edges[1:]) / 2) for edges in (found.x, found.y))
            x_ends, y_ends = (plain(edges[[0, -1]]) for edges in (found.x, found.y))
            content = DensityMap(name, x, y, x_ends, y_ends, rows, None if most is None else float(f"{most:.4g}"))
            yield FigureData(f"embeddings-{method}", "embeddings", f"{method}, {words}", content)
    if internal:
        x, y = (plain(axis) for axis in embedding.points.T.astype(np.float64))
        points = Points(x, y, embedding.which.tolist())
        yield FigureData(f"embeddings-{method}", "embeddings", f"{method}, every stay a point", points)


def finest_densities(embedding: Embedding) -> Densities:
    """The finest densities that show nearly all stays of every set, as a bin of fewer than ten stays is blank."""
    for bins in BINS:
        found = densities(embedding, bins=bins)
        if min(float(np.nansum(one)) for one in found.fractions.values()) >= COVERED:
            break
    return found


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
    chosen = {}
    for i, (name, cohort) in enumerate(sets.items()):
        rng = seeding.stream("evaluation", seed, i)
        chosen[name] = cohort.take(rng.permutation(len(cohort))[:samples])
    flat = np.concatenate([view.flat(cohort) for cohort in chosen.values()])
    which = np.repeat(list(chosen), [len(cohort) for cohort in chosen.values()])
    start = int(seeding.stream("evaluation", seed, len(sets)).integers(2**31))
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
            "UMAP needs umap-learn, which is not installed: pip install 'timediff-icu[evaluate]', or take tsne."
        ) from error
    points: Array = UMAP(random_state=seed, n_jobs=1).fit_transform(flat)  # one seed, one thread: reproducible
    return points


def densities(embedding: Embedding, bins: int | None = None) -> Densities:
    """The fraction of each set's stays in each bin; blank where a bin has fewer than ten of them.

    The edges leave out the outermost half a percent on each side: one stay far away would shrink all others into a
    few bins, and show where it lies. Without `bins`, a bin has some 15 stays of the smallest set on average.
    """
    if bins is None:
        smallest = int(np.unique(embedding.which, return_counts=True)[1].min())
        bins = min(MOST_BINS, max(FEWEST_BINS, int(np.sqrt(smallest / PER_BIN))))
    x, y = (np.linspace(*_middle(axis), bins + 1) for axis in embedding.points.T.astype(np.float64))
    fractions = {}
    for name in np.unique(embedding.which):
        points = embedding.points[embedding.which == name].astype(np.float64)
        count, _, _ = np.histogram2d(points[:, 0], points[:, 1], bins=(x, y))
        fractions[str(name)] = np.where(count >= MIN_AGGREGATE, count / len(points), np.nan)
    return Densities(x, y, fractions)


def _middle(axis: Floats) -> tuple[float, float]:
    """Where all but the outermost half a percent on each side lies; never a point."""
    low, high = (float(edge) for edge in np.quantile(axis, [0.005, 0.995]))
    return (low, high) if low < high else (low - 0.5, high + 0.5)
