"""Data frames as they come → a cohort: settings are given or inferred, and shown."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from timediff.data.cohort import Cohort
from timediff.data.frames import is_frame, to_arrow
from timediff.data.schema import Feature, Schema
from timediff.errors import TimeDiffError, listed
from timediff.sources.infer import infer, read_settings
from timediff.sources.losses import require_kept
from timediff.sources.table import extract_tables
from timediff.sources.table_inputs import Given
from timediff.sources.table_settings import TableFeature, TableSettings


def extracted(
    series: Any,
    static: Any = None,
    schema: Any = None,
    *,
    accept_loss: bool = False,
    show: Callable[[str], object] | None = print,
    **chosen: Any,
) -> Cohort:
    """What Cohort.from_frames does with frames that are no cohort yet."""
    beside = [] if static is None else [static] if is_frame(static) else list(static)
    if isinstance(schema, str | Path):
        schema = read_settings(schema)
    if isinstance(schema, TableSettings):
        if chosen:
            raise TimeDiffError(
                f"schema says all there is to say, so {listed(list(chosen))} cannot be given beside it."
            )
        settings, given = schema, _named(series, beside, schema)
    elif schema is None or isinstance(schema, Schema):
        try:
            inferred = infer(to_arrow(series), static=[to_arrow(table) for table in beside], **chosen)
        except TypeError as error:
            raise TimeDiffError(f"from_frames: {str(error).removeprefix('infer() ')}.") from error
        settings, given = inferred.settings, dict(inferred.given)
        if schema is not None:
            settings = _as_stated(settings, schema)
        elif show is not None:
            show(str(inferred))
    else:
        raise TimeDiffError(
            f"schema is of type {type(schema).__name__}; expected a Schema, or the path of what timediff infer wrote."
        )
    found = extract_tables(given, settings, "the data frame")
    if not accept_loss:
        require_kept(found.losses, "the data frame")
    if show is not None:
        for line in found.lines():
            if not line.startswith("0 "):
                show(line)
    return found.cohort


def _named(series: Any, beside: list[Any], settings: TableSettings) -> dict[str, Given]:
    """Frames under the names of the files that settings were written for."""
    names = [join.file for join in settings.joins]
    if len(names) != len(beside) or settings.series:
        raise TimeDiffError(
            f"the settings name {len(names) + len(settings.series)} tables beside the first; {len(beside)} are given."
        )
    tables = {name: to_arrow(table) for name, table in zip(names, beside, strict=True)}
    return {"": to_arrow(series), **tables}


def _as_stated(settings: TableSettings, schema: Schema) -> TableSettings:
    """What was inferred of how tables are written, with the features and the grid of a schema."""
    known = {entry.name: entry for entry in settings.feature}

    def entry(feature: Feature) -> TableFeature:
        f, like = feature, known.get(feature.name, TableFeature(feature.name))
        return replace(
            like, kind=f.kind, scope=f.scope, role=f.role, unit=f.unit, bounds=f.bounds, resolution=f.resolution,
            classes=f.classes, spellings=like.spellings if like.feature.classes == f.classes else None,
        )  # fmt: skip

    return replace(
        settings, feature=tuple(map(entry, schema.features)), step=schema.step, steps=schema.steps,
        test=schema.split.test, relation=schema.relations,
    )  # fmt: skip
