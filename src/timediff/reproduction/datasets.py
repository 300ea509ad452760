"""The paper's data sets, what stands in for those that cannot be had, and where they lie under a folder."""

import gzip
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from timediff.errors import TimeDiffError

VARIABLE = "TIMEDIFF_DATA"
DEEPEST, MOST_FOLDERS = 3, 2000  # how far below FOLDER is looked
WHOLE = 10_000  # unit stays; a database of fewer is a demo or a part
LARGEST_COUNTED = 2**28  # bytes of a table of stays


@dataclass(frozen=True)
class Kind:
    """A data set that experiments can be run on."""

    name: str
    title: str
    source: str  # of sources/registry.py
    paper: str  # the paper's data set that it is, or stands in for
    test: float  # held out, as in the paper
    preset: str = "paper"  # of TimeDiff
    mir_threshold: float = 0.08
    stand_in: str = ""  # what it is instead; empty: it is the paper's own
    simulated: bool = False
    changes: Mapping[str, object] = field(default_factory=dict)  # of the source's settings
    only: tuple[str, ...] = ()  # experiments that it is for; empty: all but those that have data sets of their own
    sparse: tuple[str, ...] = ()  # features whose missing values are a value below the range

    @property
    def windows(self) -> bool:
        return self.source in ("stocks", "energy")


DEMO = "the open demo, of 100 patients, or another part of fewer than 10,000 stays"
SIMULATED = "a simulated database in the published layout, through the same extraction"
EICU = {"test": 0.25, "preset": "paper-eicu", "mir_threshold": 0.005}
KINDS = (
    Kind("stocks", "Stocks", "stocks", "stocks", 0.2, "paper-timegan"),
    Kind("energy", "Energy", "energy", "energy", 0.25, "paper-timegan"),
    Kind("mimic3", "MIMIC-III", "mimic3", "mimic3", 0.2),
    Kind("mimic4", "MIMIC-IV", "mimic4", "mimic4", 0.25),
    Kind("eicu", "eICU", "eicu", "eicu", **EICU),  # type: ignore[arg-type]
    Kind("physionet2019", "PhysioNet 2019", "physionet2019", "mimic3", 0.2,
         stand_in="stays of the challenge of 2019: hourly vital signs over 24 h; the label is sepsis and not death"),
    Kind("physionet2012", "PhysioNet 2012", "physionet2012", "mimic4", 0.25,
         stand_in="stays of the challenge of 2012: hourly vital signs over 48 h; the label is death in hospital"),
    Kind("simulated-mimic3", "simulated MIMIC-III", "mimic3", "mimic3", 0.2, stand_in=SIMULATED, simulated=True),
    Kind("simulated-mimic4", "simulated MIMIC-IV", "mimic4", "mimic4", 0.25, stand_in=SIMULATED, simulated=True),
    Kind("simulated-eicu", "simulated eICU", "eicu", "eicu", stand_in=SIMULATED, simulated=True, **EICU),  # type: ignore[arg-type]
    Kind("mimic3-demo", "MIMIC-III demo", "mimic3", "mimic3", 0.2, stand_in=DEMO),
    Kind("mimic4-demo", "MIMIC-IV demo", "mimic4", "mimic4", 0.25, stand_in=DEMO),
    Kind("eicu-demo", "eICU demo", "eicu", "eicu", stand_in=DEMO, **EICU),  # type: ignore[arg-type]
)  # fmt: skip
# The supplement's channels are a data set of their own, packed as in the paper.
SUPPLEMENT: Mapping[str, object] = {"extended": True, "packed": True}
STATIC = "static"


def supplement_of(kind: Kind) -> Kind:
    """The same database with the supplement's channels."""
    return Kind(
        f"{kind.name}-static", f"{kind.title} with the supplement", kind.source, kind.paper, kind.test, kind.preset,
        kind.mir_threshold, kind.stand_in, changes=SUPPLEMENT, only=(STATIC,), sparse=("glucose",),
    )  # fmt: skip


@dataclass(frozen=True)
class Found:
    """A data set, and where it lies; a simulated one lies nowhere yet."""

    kind: Kind
    path: Path | None = None


def folder_of(given: str | Path | None) -> Path:
    """FOLDER as given, or as the environment names it."""
    text = given or os.environ.get(VARIABLE)
    if not text:
        raise TimeDiffError(
            f"no folder of data was given: add --data FOLDER, or set {VARIABLE}. It may hold Stocks and Energy "
            "(stock_data.csv, energydata_complete.csv), PhysioNet 2012 and 2019, and MIMIC-III, MIMIC-IV or eICU."
        )
    path = Path(text)
    if not path.is_dir():
        raise TimeDiffError(f"{path} is no folder: give the one that holds the data sets, as --data FOLDER.")
    return path


def find(folder: Path) -> list[Found]:
    """What there is under FOLDER, and what is simulated in place of the databases that are not there.

    A data set that stands in for another one is left out where that one is there.
    """
    places: dict[str, Path] = {}
    for place in _folders(folder):
        for name in _kinds_in(place):
            places.setdefault(name, place)
    if not places:
        raise TimeDiffError(
            f"{folder} holds none of the data sets, nor do folders up to {DEEPEST} below it: expected stock_data.csv, "
            "energydata_complete.csv, set-a of PhysioNet 2012, training_setA of PhysioNet 2019, or the tables of "
            "MIMIC-III, MIMIC-IV or eICU as they are distributed."
        )
    own = {kind.name for kind in KINDS if not kind.stand_in} & places.keys()
    found = []
    for kind in KINDS:
        if (kind.stand_in and kind.paper in own) or not (kind.simulated or kind.name in places):
            continue
        found.append(Found(kind, places.get(kind.name)))
        if kind.source == "mimic4" and not kind.simulated:
            found.append(Found(supplement_of(kind), places[kind.name]))
    return found


def _folders(folder: Path) -> Iterator[Path]:
    """FOLDER and what is below it, in order, the near ones first."""
    level, seen = [folder], 0
    for _ in range(DEEPEST + 1):
        below: list[Path] = []
        for place in level:
            if (seen := seen + 1) > MOST_FOLDERS:
                return
            yield place
            try:
                below += sorted(child for child in place.iterdir() if child.is_dir() and not child.is_symlink())
            except OSError:  # one that may not be read holds nothing for us
                continue
        level = below


def _kinds_in(place: Path) -> list[str]:
    """Which data sets lie in just this folder."""
    try:
        names = sorted(child.name for child in place.iterdir())
    except OSError:
        return []
    tables = {re.sub(r"\.(csv|csv\.gz|parquet)$", "", name.lower()): place / name for name in names}
    found = [kind for kind, table in (("stocks", "stock_data"), ("energy", "energydata_complete")) if table in tables]
    if any(re.fullmatch(r"set-[abc](\.parquet|\.zip|_.*\.zip)?", name) for name in names):
        found.append("physionet2012")
    if any(re.fullmatch(r"training_set[AB]?(\.parquet|\.zip)?|p\d{6}\.psv", name) for name in names):
        found.append("physionet2019")
    if {"icustays", "chartevents", "patients", "admissions"} <= tables.keys():
        found.append(_sized("mimic3", tables["icustays"]))
    if {"hosp", "icu"} <= tables.keys() and (stays := _in_icu(place / "icu")):
        found.append(_sized("mimic4", stays))
    if "patient" in tables and {"vitalperiodic", "vitalaperiodic"} & tables.keys():
        found.append(_sized("eicu", tables["patient"]))
    return found


def _in_icu(folder: Path) -> Path | None:
    known: Sequence[Path] = [folder / f"icustays.{suffix}" for suffix in ("csv.gz", "csv", "parquet")]
    return next((path for path in known if path.is_file()), None)


def _sized(name: str, stays: Path) -> str:
    """The database's name, or its demo's where it has few stays."""
    return name if _has_rows(stays, WHOLE) else f"{name}-demo"


def _has_rows(path: Path, wanted: int) -> bool:
    """Whether a table has so many rows; one that cannot be read has none, which is said when it is extracted."""
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            return bool(pq.read_metadata(path).num_rows >= wanted)
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            counted = 0
            while block := file.read(2**20):
                counted += block.count(b"\n")
                if counted > wanted or file.tell() > LARGEST_COUNTED:
                    return counted > wanted
    except Exception:
        return False
    return False
