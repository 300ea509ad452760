"""Where things lie in OUT. It grows, and whatever is in it under its own name is whole or can be continued."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from timediff.comparison.folder import Folder
from timediff.comparison.rows import Row

NAME = "reproduction.json"
FORMAT = 1


def key(*what: Any) -> str:
    """A hash of plain values."""
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class ReproductionFolder:
    out: Path

    @property
    def plan(self) -> Path:
        return self.out / NAME

    @property
    def cells(self) -> Path:
        """What was measured, a file each."""
        return self.out / "cells"

    @property
    def measured(self) -> Path:
        """Finished metrics, where evaluations share them."""
        return self.out / "measured"

    def data(self, dataset: str, settings: str) -> Path:
        return self.out / "data" / dataset / settings


@dataclass(frozen=True)
class FitFolder(Folder):
    """The places of one training, named by a hash of all that it follows from."""

    dataset: str = ""
    key: str = ""
    stays: int = 0  # of its cohort

    def run(self, row: Row, seed: int) -> Path:
        return self.path / "runs" / self.dataset / f"{row.folder}-{self.key}"

    def cohort(self, row: Row, seed: int) -> Path:
        return self.path / "cohorts" / self.dataset / f"{row.folder}-{self.key}-{self.stays}"

    def record(self, row: Row, seed: int) -> Path:
        return self.path / "records" / self.dataset / f"{row.folder}-{self.key}-{self.stays}.json"
