"""Hypothesis strategies for schemas and cohorts."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from timediff.data.cohort import Cohort
from timediff.data.schema import Feature, Schema

names = st.text(min_size=1, max_size=8).filter(lambda n: n not in ("stay_id", "step", "length"))
numbers = st.floats(-1e6, 1e6)


@st.composite
def features(draw: st.DrawFn, scope: str) -> Feature:
    name, kind = draw(names), draw(st.sampled_from(["continuous", "binary", "categorical"]))
    if kind == "continuous":
        bounds = draw(st.none() | st.tuples(numbers, numbers).filter(lambda b: b[1] - b[0] > 1e-9))
        span = bounds[1] - bounds[0] if bounds else 200.0
        resolution = draw(st.none() | st.floats(max(span * 1e-6, 1e-6), 1e3))
        if bounds and resolution and Feature(name, kind, scope, bounds=bounds, resolution=resolution).problems():
            resolution = None  # none of its multiples lies within the bounds
        return Feature(name, kind, scope, bounds=bounds, resolution=resolution)
    size = 2 if kind == "binary" else draw(st.integers(2, 7))
    classes = draw(st.lists(st.text(max_size=5) | st.integers(0, 9), min_size=size, max_size=size, unique=True))
    return Feature(
        name,
        kind,
        scope,
        classes=tuple(str(c) for c in range(size)) if len({type(c) for c in classes}) > 1 else tuple(classes),
    )


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    listed = [draw(features("temporal")), *draw(st.lists(features("static") | features("temporal"), max_size=5))]
    unique = {feature.name: feature for feature in reversed(listed)}
    if not any(f.scope == "temporal" for f in unique.values()):
        unique = {listed[0].name: listed[0]}
    return Schema(tuple(unique.values()), draw(st.integers(1, 500)), draw(st.sampled_from(["1h", "5min", "1d"])))


@st.composite
def cohorts(draw: st.DrawFn) -> Cohort:
    """A few stays of any schema, with texts or whole numbers as ids, missing values, and often different lengths."""
    schema = replace(draw(schemas()), steps=draw(st.integers(1, 4)))
    stays, rng = draw(st.integers(1, 5)), np.random.default_rng(draw(st.integers(0, 1000)))
    texts = draw(st.lists(st.text(max_size=4), min_size=stays, max_size=stays, unique=True) | st.none())
    ids = np.arange(stays) if texts is None else np.array(texts, dtype=object)
    length = rng.integers(1, schema.steps + 1, stays) if draw(st.booleans()) else None
    inside = np.arange(schema.steps) < (np.full(stays, schema.steps) if length is None else length)[:, None]

    def values(feature: Feature, shape: tuple[int, ...]) -> np.ndarray:
        low, high = feature.bounds or (-1e3, 1e3)
        whole = rng.integers(0, len(feature.classes) or 1, shape)
        found = whole.astype(float) if feature.discrete else rng.uniform(low, high, shape)
        return np.where(rng.random(shape) < 0.3, np.nan, found)

    series = {f.name: np.where(inside, values(f, inside.shape), np.nan) for f in schema.temporal}
    static = {f.name: values(f, (stays,)) for f in schema.static}
    return Cohort(schema, ids, series, static, None if length is None or (length == schema.steps).all() else length)
