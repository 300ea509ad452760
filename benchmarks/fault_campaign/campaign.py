"""Many cases and kills, counted: what failed, where first, and how to see it again."""

import os
import platform
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from fault_campaign import kills
from fault_campaign.case import judge
from fault_campaign.children import in_child, perform, time_limit
from fault_campaign.doors import DOORS, chosen, described, prepared
from fault_campaign.sound import Sound

BATCH = 250  # cases a child: its first ones are slower
EVERY = 15  # seconds between two lines of progress


@dataclass
class Counts:
    """What has been seen so far."""

    cases: Counter[str] = field(default_factory=Counter)  # by door
    kills: Counter[str] = field(default_factory=Counter)  # by command
    failures: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)  # (door, kind, where): replays
    seconds: Counter[str] = field(default_factory=Counter)  # by door

    def add(self, door: str, kind: str, where: str, replay: str) -> bool:
        """Whether it is the first of its group."""
        group = self.failures.setdefault((door, kind, where), [])
        group.append(replay)
        return len(group) == 1


class Campaign:
    """Cases and kills of one seed, in a temporary folder."""

    def __init__(self, seed: int, limit: int = 60, say: Callable[[str], None] = print) -> None:
        self.seed, self.limit, self.say = seed, limit, say
        memory = Path("/dev/shm")  # where forcing to disk costs nothing
        self.folder = Path(tempfile.mkdtemp(prefix="faults-", dir=memory if os.access(memory, os.W_OK) else None))
        self.sound = Sound(self.folder / "sound")
        self.counts = Counts()

    def __enter__(self) -> "Campaign":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(
        self,
        cases: int,
        kill_count: int,
        only: str | None = None,
        seconds: float | None = None,
        timed: bool = True,
    ) -> dict[str, Any]:
        if only is not None and only not in DOORS:
            raise SystemExit(f"there is no door {only!r}; expected one of {', '.join(DOORS)}.")
        started = time.monotonic()
        end = started + (seconds or float("inf"))
        numbers = [n for n in range(cases) if only in (None, chosen(self.seed, n)[0])]
        self.sound.build(name for door in {chosen(self.seed, n)[0] for n in numbers} for name in DOORS[door][2])
        built = time.monotonic()
        self.cases(numbers, end)
        judged = time.monotonic()
        if only is None:
            self.kills(range(kill_count), end, timed)
        return self._summary(built - started, judged - built, time.monotonic() - judged)

    def cases(self, numbers: list[int], end: float = float("inf")) -> None:
        said = time.monotonic()
        while numbers and time.monotonic() < end:
            done = 0
            for number, message in self._batch(numbers[:BATCH]):
                done += 1
                self._count(number, message)
                if time.monotonic() - said > EVERY:
                    said = time.monotonic()
                    total = sum(self.counts.cases.values())
                    self.say(f"{total:,} cases, {len(self.counts.failures)} distinct failures")
            numbers = numbers[done:]

    def _batch(self, numbers: list[int]) -> Iterator[tuple[int, dict[str, Any]]]:
        """What came of each case; a child that dies takes one case with it."""

        def work(send: Callable[[Any], None]) -> None:
            for number in numbers:
                folder = self.folder / f"case-{number}"
                send({"begun": number})
                with time_limit(self.limit):
                    started = time.monotonic()
                    case, outcome = perform(lambda place, n=number: prepared(self.seed, n, place, self.sound), folder)
                    found = [(failure.kind, failure.where) for failure in judge(case, outcome)]
                os.chdir(self.folder)
                shutil.rmtree(folder, ignore_errors=True)
                send({"failures": found, "did": described(case), "seconds": time.monotonic() - started})

        begun = None
        for message in in_child(work):
            if "begun" in message:
                begun = message["begun"]
            elif "ended" not in message:
                assert begun is not None
                yield begun, message
                begun = None
            elif begun is not None:
                shutil.rmtree(self.folder / f"case-{begun}", ignore_errors=True)
                yield begun, {"failures": [self._died(message["ended"])], "did": "", "seconds": float(self.limit)}

    def _died(self, ended: int) -> tuple[str, str]:
        if os.WIFSIGNALED(ended) and os.WTERMSIG(ended) == signal.SIGALRM:
            return "hang", f"over {self.limit} s"
        why = signal.Signals(os.WTERMSIG(ended)).name if os.WIFSIGNALED(ended) else f"code {os.WEXITSTATUS(ended)}"
        return "crash", why

    def _count(self, number: int, message: dict[str, Any]) -> None:
        door = chosen(self.seed, number)[0]
        self.counts.cases[door] += 1
        self.counts.seconds[door] += message["seconds"]
        for kind, where in message["failures"]:
            replay = f"python benchmarks/faults.py --seed {self.seed} --case {number}"
            if self.counts.add(door, kind, where, replay):
                self.say(f"  {door}: {kind}: {where}\n    {message['did'][:300]}\n    {replay}")

    def kills(self, numbers: range, end: float = float("inf"), timed: bool = True) -> None:
        for number in numbers:
            if time.monotonic() > end:
                return
            result = kills.perform(self.seed, number, self.folder / f"kill-{number}", self.sound, self.limit, timed)
            shutil.rmtree(self.folder / f"kill-{number}", ignore_errors=True)
            self.counts.kills[result.command] += 1
            for where in result.failures:
                replay = f"python benchmarks/faults.py --seed {self.seed} --kill {number}"
                if self.counts.add(f"killed {result.command}", "kill", where, replay):
                    self.say(f"  killed {result.command}: {where}\n    {result.did}\n    {replay}")

    def show_case(self, number: int) -> int:
        """Repeats one case and prints all of it; 1 if something is wrong."""
        door = chosen(self.seed, number)[0]
        self.sound.build(DOORS[door][2])
        folder = self.folder / "case"

        def work(send: Callable[[Any], None]) -> None:
            with time_limit(self.limit):
                case, outcome = perform(lambda place: prepared(self.seed, number, place, self.sound), folder)
            send([described(case), outcome.printed, f"code {outcome.code}; appeared: {outcome.appeared}"])
            if outcome.again is not None:
                send([f"corrected: code {outcome.again.code}; {outcome.again.printed}"])
            send([str(failure) for failure in judge(case, outcome)] or ["nothing is wrong"])

        *lines, ended = in_child(work)
        for line in lines:
            self.say("\n".join(line))
        if ended["ended"]:
            self.say(": ".join(self._died(ended["ended"])))
        return int(ended["ended"] != 0 or lines[-1] != ["nothing is wrong"])

    def show_kill(self, number: int, timed: bool = True) -> int:
        result = kills.perform(self.seed, number, self.folder / "kill", self.sound, self.limit, timed)
        self.say("\n".join([result.did, *result.details, *(result.failures or ["nothing is wrong"])]))
        return int(bool(result.failures))

    def _summary(self, building: float, casing: float, killing: float) -> dict[str, Any]:
        from timediff import __version__

        cases, killed = sum(self.counts.cases.values()), sum(self.counts.kills.values())
        groups = [
            {"door": door, "kind": kind, "where": where, "times": len(replays), "first": replays[0]}
            for (door, kind, where), replays in sorted(self.counts.failures.items())
        ]
        kinds = Counter(dict.fromkeys(KINDS, 0))
        for group in groups:
            kinds[group["kind"]] += group["times"]
        self.say(f"{cases:,} cases in {casing:.0f} s ({cases / max(casing, 1e-9):.1f} a second), {killed} kills in "
                 f"{killing:.0f} s: {len(groups)} distinct failures")  # fmt: skip
        for group in groups:
            self.say(f"  {group['times']} × {group['door']}: {group['kind']}: {group['where']}\n    {group['first']}")
        per_door = {door: round(self.counts.cases[door] / s, 1) for door, s in self.counts.seconds.items() if s}
        return {
            "seed": self.seed, "cases": cases, "kills": killed, "cases_by_door": dict(self.counts.cases),
            "cases_a_second_by_door": per_door, "kills_by_command": dict(self.counts.kills), "counts": dict(kinds),
            "failures": groups, "seconds": {"building": building, "cases": casing, "kills": killing},
            "versions": {"timediff": __version__, "python": platform.python_version(), "machine": platform.machine()},
        }  # fmt: skip


KINDS = (
    "traceback", "exit code", "silent acceptance", "leftover", "blocked", "leak", "memory", "hang", "crash", "kill",
)  # fmt: skip
