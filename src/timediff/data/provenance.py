"""What a synthetic cohort says of itself: that it is one, and which run, data and seed it is from.

It lies in the cohort folder as provenance.json, and in the metadata of both Parquet files, for whoever has only those.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pyarrow as pa

from timediff.runtime.parsing import Unreadable, parse_json, read_text
from timediff.runtime.seeding import MAX_SEED
from timediff.runtime.stored import restored

NAME = "provenance.json"
KEY = b"timediff"  # of the Parquet metadata
FORMAT = 1
LONGEST = 100  # characters of each text
HASH = 16  # characters of a hash that a person compares


@dataclass(frozen=True)
class CohortProvenance:
    """Of a synthetic cohort; what is not known, or differs between the cohorts that were joined, is None."""

    synthetic: bool = True
    generator: str | None = None
    run: str | None = None  # `identity` of the generator: a hash of its settings, codec and weights
    trained_on: str | None = None  # the digest of the training cohort
    seed: int | None = None  # of the sampling
    stays: int | None = None  # that were sampled
    version: str | None = None  # of TimeDiff
    date: str | None = None  # such as 2026-11-19; only in provenance.json
    derived: bool = False  # made of a synthetic cohort afterwards: some of its stays, or several cohorts joined
    format: int = FORMAT

    def __post_init__(self) -> None:
        texts = [text for text in (self.generator, self.run, self.trained_on, self.version, self.date) if text]
        if not self.synthetic:
            raise ValueError("only a synthetic cohort has a provenance")
        if max(map(len, texts), default=0) > LONGEST:
            raise ValueError(f"a text is longer than {LONGEST} characters")
        if not all(text.isprintable() for text in texts):
            raise ValueError("a text cannot be printed")
        if not 0 <= (self.seed or 0) <= MAX_SEED or (self.stays or 0) < 0:
            raise ValueError("it holds a seed or a number of stays that cannot be")

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2)

    @staticmethod
    def from_json(text: str, where: str) -> "CohortProvenance":
        table = parse_json(text, where)
        version = table.get("format") if isinstance(table, dict) else None
        if type(version) is int and version > FORMAT:
            raise Unreadable(f"{where} was written in format {version} by a newer TimeDiff; this one reads {FORMAT}.")
        return restored(CohortProvenance, table, where)

    def derive(self) -> "CohortProvenance":
        """Of some of the stays."""
        return replace(self, derived=True)

    def facts(self) -> dict[str, str]:
        """A row each for a page."""
        told = {"synthetic": "yes, derived from a synthetic cohort" if self.derived else "yes"}
        values = {
            "generator": self.generator, "run": self.run, "trained on": self.trained_on, "sampling seed": self.seed,
            "stays sampled": self.stays, "TimeDiff": self.version, "sampled on": self.date,
        }  # fmt: skip
        return told | {name: "not known" if value is None else str(value) for name, value in values.items()}

    def __str__(self) -> str:
        """One line that a person reads."""
        known = [f"by {self.generator}" if self.generator else ""]
        if self.stays is not None and self.seed is not None:
            known.append(f"{self.stays:,} stays sampled with seed {self.seed}")
        known += [f"run {self.run[:HASH]}" if self.run else "", f"TimeDiff {self.version}" if self.version else ""]
        known.append(f"trained on {self.trained_on[:HASH]}" if self.trained_on else "")
        told = ", ".join(text for text in (*known, self.date) if text)
        return f"{'synthetic (derived)' if self.derived else 'synthetic'}: {told or 'by a generator that is not named'}"


def joined(provenances: Sequence[CohortProvenance | None]) -> CohortProvenance | None:
    """Of cohorts that are joined: what all have in common, or None where one of them is not synthetic."""
    known = [one for one in provenances if one is not None]
    if not known or len(known) < len(provenances):
        return None
    tables = [asdict(one) for one in known]
    common = {name: value for name, value in tables[0].items() if all(table[name] == value for table in tables)}
    return CohortProvenance(**common | {"derived": len(known) > 1 or known[0].derived})


def with_provenance(schema: pa.Schema, provenance: CohortProvenance | None) -> pa.Schema:
    """An Arrow schema whose metadata say where its data are from, but for the date: the same seed, the same bytes."""
    if provenance is None:
        return schema
    return schema.with_metadata({**(schema.metadata or {}), KEY: replace(provenance, date=None).to_json()})


def read_provenance(folder: Path, series: pa.Schema) -> CohortProvenance | None:
    """What a cohort folder says of itself, or else its series; None where neither says that it is synthetic."""
    path = folder / NAME
    if path.exists():
        return CohortProvenance.from_json(read_text(path), str(path))
    stored = (series.metadata or {}).get(KEY)
    if stored is None:
        return None
    where = f"{folder / 'series.parquet'}, metadata {KEY.decode()!r}"
    return CohortProvenance.from_json(stored.decode("utf-8", "replace"), where)
