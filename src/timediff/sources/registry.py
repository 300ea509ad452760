"""Sources by name: what `timediff extract NAME` looks up."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from timediff.errors import TimeDiffError
from timediff.runtime.registry import Registry
from timediff.sources.base import Source

# Each source has a settings class of its own, so only a source itself knows what type its settings are.
SOURCES: Registry[type[Source[Any]]] = Registry(
    "source",
    "timediff.sources",
    {
        "mimic3": "timediff.sources.mimic:MIMIC3",
        "mimic4": "timediff.sources.mimic:MIMIC4",
        "eicu": "timediff.sources.eicu:EICU",
        "physionet2012": "timediff.sources.physionet2012:PhysioNet2012",
        "physionet2019": "timediff.sources.physionet2019:PhysioNet2019",
        "stocks": "timediff.sources.windows:Stocks",
        "energy": "timediff.sources.windows:Energy",
        "meds": "timediff.sources.meds:MEDS",
        "table": "timediff.sources.table:TableSource",
    },
)


def source(name: str) -> Source[Any]:
    """The source of this name."""
    try:
        return SOURCES(name)()
    except ModuleNotFoundError as error:
        if error.name not in ("ibis", "duckdb"):
            raise
        raise TimeDiffError("this source needs Ibis and DuckDB: pip install 'timediff-icu[extract]'.") from error


def resolve(
    name: str,
    config: str | Path | None = None,
    changes: Mapping[str, object] | None = None,
    *,
    as_published: bool = False,
) -> Any:
    """A source's settings: its own, those of the paper's authors, or those of a file; then single ones by name."""
    return source(name).resolve(config, changes, as_published=as_published)
