"""Settings of sources that are checked as they are made: what is beyond its range is never asked for again."""

from collections.abc import Callable, Mapping
from typing import Any

from timediff.data.schema import MOST_STEPS, Schema
from timediff.errors import Problems
from timediff.settings.typed import shown
from timediff.sources.grid import step_problems, step_seconds

MOST_HOURS = 1e6  # more than a century
LARGEST_ID = 2**63 - 1


class CheckedSettings:
    """Settings that cannot be made wrong."""

    def __post_init__(self) -> None:
        if found := self.problems():
            raise Problems("settings", found)

    def problems(self) -> list[str]:
        return []


class GridSettings(CheckedSettings):
    """Settings of a grid over stays of at least some hours."""

    step: str
    steps: int
    hours: float

    @property
    def width(self) -> int:
        """Seconds of a step."""
        return step_seconds(self.step)

    @property
    def may_end(self) -> bool:
        """Whether a stay may end before the last step begins."""
        return self.hours * 3600 < (self.steps - 1) * self.width


def beyond(values: Mapping[str, float | None], low: float, high: float) -> list[str]:
    """Numbers that are not within a range."""
    return [
        f"{name} is {shown(value)}; expected {low:,} to {high:,}"
        for name, value in values.items()
        if value is not None and not low <= value <= high
    ]


def grid_problems(step: str, steps: int, variables: tuple[Any, ...]) -> list[str]:
    found = step_problems(step) + beyond({"steps": steps}, 1, MOST_STEPS)
    return found if variables else [*found, "there is no variable; expected at least one [[variable]]"]


def schema_problems(schema: Callable[[], Schema]) -> list[str]:
    """What is wrong with the schema that settings describe."""
    try:
        schema()
    except Problems as error:
        return list(error.problems)
    return []
