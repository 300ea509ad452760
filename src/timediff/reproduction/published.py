"""The numbers that the paper printed, by table: published/NAME.toml."""

import math
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True)
class Published:
    """A number of the paper; NaN where it prints none."""

    value: float = math.nan
    std: float = math.nan


@dataclass(frozen=True)
class Printed:
    """One table of the paper: its numbers by metric, row and data set."""

    place: str  # such as "Table 1"
    datasets: tuple[str, ...]
    numbers: dict[str, dict[str, list[list[float]]]]

    def of(self, metric: str, row: str, dataset: str) -> Published:
        """The number, or none: not every row is of every data set."""
        rows = self.numbers.get(metric, {})
        if row not in rows or dataset not in self.datasets:
            return Published()
        return Published(*rows[row][self.datasets.index(dataset)])


@cache
def printed(name: str) -> Printed:
    text = (resources.files("timediff.reproduction") / "published" / f"{name}.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    place, datasets = table.pop("table"), tuple(table.pop("datasets"))
    return Printed(place, datasets, table)
