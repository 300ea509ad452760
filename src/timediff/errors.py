"""What a user can put right. The command line shows the message and ends with code 2; anything else is our bug."""

from collections.abc import Sequence

MOST_PROBLEMS = 20  # said of one input
LONGEST_NAME = 60  # characters


class TimeDiffError(Exception):
    """Says what was given, what was expected, and what to do."""


class Problems(TimeDiffError):
    """Everything that is wrong with one input, found in one reading."""

    def __init__(self, where: str, problems: Sequence[str]) -> None:
        self.where, self.problems = where, tuple(problems)
        shown = [*self.problems[:MOST_PROBLEMS]]
        if len(problems) > MOST_PROBLEMS:
            shown.append(f"and {len(problems) - MOST_PROBLEMS:,} more like these")
        lines = self.problems[0] if len(problems) == 1 else "".join(f"\n  - {problem}" for problem in shown)
        super().__init__(f"{where}: {lines}")

    def __reduce__(self) -> tuple[type["Problems"], tuple[str, tuple[str, ...]]]:  # on its way from another process
        return type(self), (self.where, self.problems)


class Stopped(TimeDiffError):
    """A long operation was interrupted, saved what it had, and can be continued."""


class Lost(TimeDiffError):
    """Of many processes another one has ended."""


def listed(names: Sequence[object], most: int = 4) -> str:
    """Names in a message: 'a', 'b', 'c', 'd' and 2,996 more."""
    texts = [text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}…" for text in map(repr, names[:most])]
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(texts) + more
