"""Pictures: the figures of an evaluation as plain JSON; real stays as aggregates of at least ten."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from timediff.cohort import Cohort
from timediff.describe import distribution
from timediff.metrics.embeddings import Densities, Embedding, densities
from timediff.report.page import require_plotly
from timediff.report.terminal import FEWEST
from timediff.results import Picture

METHODS = {"tsne": "t-SNE", "umap": "UMAP"}
BINS = (40, 30, 24, 18, 14, 10, 7, 5)  # a side of a map, from fine to coarse
COVERED = 0.9  # of each set's stays should be in bins that may be shown; finer maps would be mostly blank


def pictures(
    test: Cohort,
    synthetics: Mapping[str, Cohort],
    embeddings: Mapping[str, Sequence[Embedding]] | None = None,
    *,
    internal: bool = False,
) -> list[Picture]:
    """All figures of all generators; single real stays only as points of a map, and only if `internal`."""
    require_plotly()
    found: list[Picture] = []
    for generator, synthetic in synthetics.items():
        found += _numbered(generator, _of_cohort(test, synthetic))
        for embedding in (embeddings or {}).get(generator, ()):
            found += map_pictures(embedding, generator, internal=internal)
    return found


def map_pictures(embedding: Embedding, generator: str, *, internal: bool = False) -> list[Picture]:
    """Where the stays of each set lie, a picture a set, and only if `internal` every stay as a point."""
    require_plotly()
    return _numbered(generator, _of_map(embedding, internal))


def shown(embedding: Embedding) -> Densities:
    """The finest densities that show nearly all stays of every set, as a bin of fewer than ten stays is blank."""
    for bins in BINS:
        found = densities(embedding, bins=bins, fewest=FEWEST)
        if min(float(np.nansum(share)) for share in found.shares.values()) >= COVERED:
            break
    return found


def _of_cohort(real: Cohort, synthetic: Cohort) -> Iterator[Picture]:
    from timediff.report import figures

    generated = [feature for feature in real.schema.features if feature.generated]
    temporal = [feature for feature in generated if feature.scope == "temporal"]
    for feature in temporal:
        figure = figures.trajectories(real, synthetic, feature.name)
        yield _picture("trajectories", f"{feature.name} over time", figure, feature.name)
    for feature in generated:
        figure = figures.overlay(distribution(real, feature, FEWEST), synthetic)
        yield _picture("distributions", feature.name, figure, feature.name)
    if any(not feature.discrete for feature in temporal):
        yield _picture("stays", "Single synthetic stays", figures.single_stays(synthetic))
    yield _picture("missingness", "Share of missing values", figures.missingness(real, synthetic))


def _of_map(embedding: Embedding, internal: bool) -> Iterator[Picture]:
    from timediff.report import figures

    found, method = shown(embedding), METHODS[embedding.method]
    tops = [float(np.nanmax(share)) for share in found.shares.values() if not np.isnan(share).all()]
    for name in figures.SETS:  # a figure each: on a phone they stand below each other
        if name in found.shares:
            figure = figures.density_figure({name: found.shares[name]}, found.x, found.y, max(tops, default=None))
            yield _picture("embeddings", f"{method}, {figures.SET_NAMES[name]}", figure)
    if internal:
        figure = figures.points_figure(embedding.points.astype(np.float64), embedding.which.tolist())
        yield _picture("embeddings", f"{method}, every stay a point", figure)


def _numbered(generator: str, drawn: Iterator[Picture]) -> list[Picture]:
    """Named for their files, which no generator's name can lead elsewhere."""
    short = hashlib.sha256(generator.encode()).hexdigest()[:8]
    return [replace(p, name=f"{p.name}-{short}-{i:03}", generator=generator) for i, p in enumerate(drawn)]


def _picture(section: str, title: str, figure: Any, feature: str | None = None) -> Picture:
    name = f"embeddings-{title.split(',')[0]}" if section == "embeddings" else section
    return Picture(name, section, title, json.loads(figure.to_json()), feature)
