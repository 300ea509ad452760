"""One case: a command on an input, what came of it, and what is wrong with that."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fault_campaign.mutations import SECRETS

ALLOWED = (0, 2, 130)  # well, a mistake that a user can mend, interrupted
MEMORY = 1_500  # MiB that a command may take beyond what the imports take
GUESSED = re.compile(r"(^|/)\.[^/]*\.partial|(^|/)timediff-[^/]*$")  # what is never left behind


@dataclass
class Case:
    """A command in a folder of its own, with what is known of its right outcome."""

    door: str
    did: str
    argv: list[str]
    outputs: tuple[str, ...] = ()  # what it may make in its folder when it ends well
    changes: tuple[str, ...] = ()  # folders that it may write into, however it ends
    truth: str | None = None  # what `measure` gives where nothing is damaged
    measure: Callable[[str], str] | None = None  # of the printed text; files are found in the current folder
    mend: Callable[[], None] | None = None  # puts the sound input in place
    again: list[str] | None = None  # the corrected command; the same if not given
    repeated: bool = False  # whether it is corrected even where a refusal left nothing behind
    secrets: tuple[str, ...] = SECRETS


@dataclass
class Outcome:
    """How a command ended."""

    code: int | None = None  # None: an exception came out
    printed: str = ""
    place: str = ""  # of the exception: its type, and the last line of ours that it went through
    appeared: list[str] = field(default_factory=list)  # files and folders that were not there before
    measured: str | None = None
    memory: int = 0  # MiB
    again: "Outcome | None" = None  # the corrected command, after a refusal


@dataclass(frozen=True)
class Failure:
    kind: str
    where: str  # what failures are grouped by

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}"


def judge(case: Case, outcome: Outcome) -> list[Failure]:
    """Everything that is wrong with an outcome."""
    found = []
    if outcome.code is None or "Traceback (most recent call last)" in outcome.printed:
        found.append(Failure("traceback", outcome.place or last_line(outcome.printed)))
    elif outcome.code not in ALLOWED:
        found.append(Failure("exit code", f"{outcome.code}, {last_line(outcome.printed)}"))
    if outcome.code == 0 and case.truth is not None and outcome.measured != case.truth:
        found.append(Failure("silent acceptance", f"{case.argv[0]}, {_shape(case.did)}"))
    if left := _left_over(case, outcome):
        found.append(Failure("leftover", f"{case.argv[0]}, {_shape(left[0])} after: {last_line(outcome.printed)}"))
    if any(secret in outcome.printed for secret in case.secrets):
        line = next(line for line in outcome.printed.splitlines() if any(s in line for s in case.secrets))
        found.append(Failure("leak", _shape(_without(line, case.secrets))))
    if outcome.memory > MEMORY:
        found.append(Failure("memory", f"{case.argv[0]}, {_shape(case.did)}"))
    if outcome.again is not None:
        again = outcome.again
        if again.code != 0 or (case.truth is not None and again.measured != case.truth):
            found.append(Failure("blocked", f"{case.argv[0]}, corrected: {again.place or last_line(again.printed)}"))
    return found


def _left_over(case: Case, outcome: Outcome) -> list[str]:
    def may(path: str) -> bool:
        top = path.split("/")[0]
        if GUESSED.search(path) or path.startswith("tmp:"):
            return False
        return top in case.changes or (outcome.code == 0 and top in case.outputs)

    return [path for path in outcome.appeared if not may(path)]


def last_line(printed: str) -> str:
    lines = [line for line in printed.splitlines() if line.strip()]
    return _shape(lines[-1].strip()) if lines else "(nothing printed)"


def _shape(text: str) -> str:
    """Without what differs from case to case."""
    text = re.sub(r"/\S*/", "…/", text)
    return re.sub(r"\d+", "#", text)[:140]


def _without(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = text.replace(secret, "*")
    return text


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}
