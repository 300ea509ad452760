"""What becomes of measurements on their way to the grid: how many are lost, and to what."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from timediff.errors import TimeDiffError, listed
from timediff.sources.extraction import many

MOST_LOST = 0.05  # of all measurements, without a word
MOST_OF_ONE = 0.5  # of those of one feature
AFTER_GRID = "after the last step"
REASONS: Mapping[str, str] = {  # in the order in which a measurement is looked at, with what can be done
    "unparsed": "mend or list them in missing",
    "outside the limits": "check units and above, at_least, below, at_most",
    "without a time": "give each row a time",
    "of a stay without a start or an end": "check the columns of origin and length",
    "before the start": "check origin and time_unit",
    AFTER_GRID: "set more steps or another time_unit, or cut = true if they are left out on purpose",
    "after the end of the stay": "check length",
    "off the grid": 'rule = "at" keeps only what is exactly on it',
    "duplicates": "of equal times the mean is taken; remove them, or give each its own time",
}
CHUNK = 100  # features counted in one query


@dataclass(frozen=True)
class LossCounts:
    """Measurements by feature: how many there were, and how many of them each reason took."""

    found: Mapping[str, int]
    lost: Mapping[str, Mapping[str, int]]  # by feature, by reason; reasons without any are left out
    on_purpose: tuple[str, ...] = ()  # reasons that the settings want

    @property
    def total(self) -> int:
        return sum(self.found.values())

    def by_reason(self) -> dict[str, int]:
        counts = {reason: sum(lost.get(reason, 0) for lost in self.lost.values()) for reason in REASONS}
        return {reason: count for reason, count in counts.items() if count}

    def fraction(self, feature: str | None = None) -> float:
        """Lost, of all or of one feature's, but for what is left out on purpose."""
        names = list(self.found) if feature is None else [feature]
        found = sum(self.found[name] for name in names)
        lost = sum(
            count
            for name in names
            for reason, count in self.lost.get(name, {}).items()
            if reason not in self.on_purpose
        )
        return lost / found if found else 0.0

    @property
    def too_many(self) -> bool:
        return self.fraction() > MOST_LOST or bool(self.mostly_lost())

    def mostly_lost(self) -> list[str]:
        """Features of which more than half is lost."""
        return [name for name in self.found if self.fraction(name) > MOST_OF_ONE]

    def sentence(self) -> str:
        """What was lost and why: how many, to which reason, of which features."""
        reasons = [f"{count:,} {self._named(reason)}" for reason, count in self.by_reason().items()]
        return f"{self.fraction():.1%} of {many(self.total, 'measurement')} would be lost: {'; '.join(reasons)}"

    def _named(self, reason: str) -> str:
        by_feature = sorted(((lost.get(reason, 0), name) for name, lost in self.lost.items()), reverse=True)
        names = [f"{name} {count:,}" for count, name in by_feature[:3] if count]
        more = sum(1 for count, _ in by_feature[3:] if count)
        purpose = ", on purpose" if reason in self.on_purpose else ""
        return f"{reason} ({', '.join(names)}{f' and {more:,} more features' if more else ''}{purpose})"

    def lines(self) -> Iterator[str]:
        """For a terminal: a line a reason."""
        for reason, count in self.by_reason().items():
            yield f"{many(count, 'measurement')} of {self.total:,} ({count / self.total:.1%}) {self._named(reason)}"

    def as_json(self) -> dict[str, Any]:
        return {
            "found": self.total,
            "lost": self.by_reason(),
            "on_purpose": list(self.on_purpose),
            "features": {n: {"found": found, "lost": dict(self.lost.get(n, {}))} for n, found in self.found.items()},
        }


def require_kept(losses: LossCounts | None, source: str) -> None:
    """Refuses an extraction that would lose more than a little."""
    if losses is None or not losses.too_many:
        return
    reasons = {reason: count for reason, count in losses.by_reason().items() if reason not in losses.on_purpose}
    advice, most = REASONS[max(reasons, key=lambda reason: reasons[reason])], losses.mostly_lost()
    which = f", and more than half of {listed(most)}" if most and losses.fraction() <= MOST_LOST else ""
    raise TimeDiffError(
        f"{source}: {losses.sentence()}{which}; {advice}, or accept it with --accept-loss (in Python accept_loss=True)."
    )


def counted(table: Any, columns: Mapping[str, Any]) -> dict[str, int]:
    """How many rows are true, of each of many columns."""
    names, found = list(columns), dict[str, int]()
    for start in range(0, len(names), CHUNK):
        some = names[start : start + CHUNK]
        sums = {f"n{i}": columns[name].sum() for i, name in enumerate(some)}
        row = table.agg(**sums).to_pyarrow().to_pylist()[0]
        found |= {name: int(row[f"n{i}"] or 0) for i, name in enumerate(some)}
    return found


def counts_by(table: Any, group: str, values: Sequence[str]) -> dict[str, dict[str, int]]:
    """How many values each column has, for each group of rows."""
    found: dict[str, dict[str, int]] = {}
    for start in range(0, len(values), CHUNK):
        some = values[start : start + CHUNK]
        for row in table.group_by(group).agg(**{name: table[name].count() for name in some}).to_pyarrow().to_pylist():
            found.setdefault(row.pop(group), {}).update(row)
    return found


def duplicates(table: Any, keys: Sequence[str], values: Sequence[str]) -> dict[str, int]:
    """How many measurements beyond the first have the same keys, by column of values."""
    found: dict[str, int] = {}
    for start in range(0, len(values), CHUNK):
        some = values[start : start + CHUNK]
        times = table.group_by(list(keys)).agg(**{name: table[name].count() for name in some})
        row = times.agg(**{name: (times[name] - 1).sum(where=times[name] > 1) for name in some}).to_pyarrow()
        found |= {name: int(value or 0) for name, value in row.to_pylist()[0].items()}
    return found
