"""What a user can put right. The command line shows the message and ends with code 2; anything else is our bug."""

from collections.abc import Sequence


class TimeDiffError(Exception):
    """Says what was given, what was expected, and what to do."""


class Problems(TimeDiffError):
    """Everything that is wrong with one input, found in one reading."""

    def __init__(self, where: str, problems: Sequence[str]) -> None:
        self.where, self.problems = where, tuple(problems)
        lines = self.problems[0] if len(problems) == 1 else "".join(f"\n  - {problem}" for problem in problems)
        super().__init__(f"{where}: {lines}")

    def __reduce__(self) -> tuple[type["Problems"], tuple[str, tuple[str, ...]]]:  # on its way from another process
        return type(self), (self.where, self.problems)


class Stopped(TimeDiffError):
    """A long operation was interrupted, saved what it had, and can be continued."""


class Lost(TimeDiffError):
    """Of many processes another one has ended."""
