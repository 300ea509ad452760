"""Commands that are killed, at a moment of durability or at any other, and repeated: they end as if never killed."""

import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from fault_campaign.case import GUESSED, everything, last_line
from fault_campaign.children import call, in_child, time_limit
from fault_campaign.mutations import copied
from fault_campaign.sound import TINY_ARGUMENTS, Sound, log, tables, weights

NEEDED = {"fit": ("cohort",), "sample": ("run",), "extract": ("mimic4",), "evaluate": ("pair",)}  # sound inputs


@dataclass(frozen=True)
class Command:
    """A command, how it goes on after a kill, and what its result is."""

    argv: list[str]
    again: list[str]
    inputs: tuple[str, ...]
    out: str
    result: Callable[[Path], Any]
    grows: bool = False  # OUT is there from the beginning; of other commands it is there when all is done


def _results(folder: Path) -> Any:
    table = json.loads((folder / "results.json").read_text())
    facts = {name: fact for name, fact in table["facts"].items() if name not in ("date", "duration")}
    return {**table, "facts": facts}


EVALUATE = [
    "evaluate", "--train", "seen", "--test", "unseen", "--synthetic", "made", "--out", "out",
    "--only", "copies", "--only", "mir",
]  # fmt: skip
COMMANDS = {
    "fit": Command(
        ["fit", "cohort", "out", *TINY_ARGUMENTS], ["fit", "cohort", "out", *TINY_ARGUMENTS, "--resume"], ("cohort",),
        "out", lambda out: (weights(out), log(out)), grows=True,
    ),
    "sample": Command(
        ["sample", "run", "out", "-n", "1100"], ["sample", "run", "out", "-n", "1100", "--resume"], ("run",), "out",
        lambda out: [(out / f"{name}.parquet").read_bytes().hex() for name in ("series", "static")],
    ),
    "extract": Command(
        ["extract", "mimic4", "raw-mimic4/raw", "out"], ["extract", "mimic4", "raw-mimic4/raw", "out"], ("raw-mimic4",),
        "out", tables,
    ),
    "evaluate": Command(EVALUATE, [*EVALUATE, "--resume"], ("seen", "unseen", "made"), "out", _results),
}  # fmt: skip


@dataclass
class Result:
    command: str
    did: str
    failures: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)


def perform(seed: int, number: int, folder: Path, sound: Sound, limit: int, timed: bool = True) -> Result:
    """Kills one command once or twice and repeats it. Without `timed`, only at moments of durability."""
    rng = Random(f"kill {seed} {number}")
    name = list(COMMANDS)[number % len(COMMANDS)]
    command = COMMANDS[name]
    sound.build(NEEDED[name])
    reference = _reference(command, sound, limit)
    work, temporary = folder / "work", folder / "tmp"
    work.mkdir(parents=True)
    temporary.mkdir()
    for given in command.inputs:
        copied(sound / given, work / given)
    before = everything(work)
    result, argv, ended, printed = Result(name, f"timediff {' '.join(command.argv)}"), command.argv, 1, ""
    for _ in range(1 + (rng.random() < 0.35)):
        moment = rng.randrange(1, reference["moments"] + 1) if not timed or rng.random() < 0.5 else 0
        seconds = 0.0 if moment else rng.uniform(0, reference["seconds"])
        result.did += f"; killed at {f'moment {moment}' if moment else f'{seconds:.3f} s'}"
        ended, printed = run(argv, work, temporary, limit, moment, seconds)
        if ended == 0:
            break
        if not (os.WIFSIGNALED(ended) and os.WTERMSIG(ended) == signal.SIGKILL):
            result.failures.append(f"ended with {ended} before it was killed: {last_line(printed)}")
            return result
        argv = command.again
        if not command.grows and (work / command.out).is_dir():  # killed when it was done: nothing is left to do
            ended = 0
            break
    if ended:
        ended, printed = run(argv, work, temporary, limit)
    if ended:
        result.failures.append(f"could not go on: {last_line(printed)}")
    if not (work / command.out).is_dir():
        return result
    try:
        found = json.loads(json.dumps(command.result(work / command.out)))
    except (OSError, ValueError, KeyError) as error:
        result.failures.append(f"its result cannot be read: {type(error).__name__}")
    else:
        result.failures += [f"the result differs: {part}" for part in _different(found, reference["result"])]
        if result.failures:
            result.details += [f"found: {str(found)[:3000]}", f"expected: {str(reference['result'])[:3000]}"]
    left = [p for p in sorted(everything(work) - before) if p.split("/")[0] != command.out or GUESSED.search(p)]
    left += [f"tmp:{path}" for path in sorted(everything(temporary))]
    if left:
        result.failures.append(f"left over: {re.sub('[0-9]+', '#', left[0])}")
        result.details.append(f"left over: {left}")
    return result


def _different(found: Any, expected: Any) -> list[str]:
    if found == expected:
        return []
    if isinstance(expected, list) and len(expected) == 2 and isinstance(expected[1], list):  # weights and log
        return [part for part, a, b in zip(("weights", "log"), found, expected, strict=True) if a != b]
    return ["values"]


def _reference(command: Command, sound: Sound, limit: int) -> dict[str, Any]:
    """The result of the command that is not killed, its moments and seconds; kept beside the sound inputs."""
    kept = sound / f"kill-{command.argv[0]}.json"
    if not kept.exists():
        folder = sound / f"kill-{command.argv[0]}"
        folder.mkdir()
        for given in command.inputs:
            copied(sound / given, folder / given)
        started = time.monotonic()
        ended, printed = run(command.argv, folder, folder, limit, counted=sound / "moments")
        if ended:
            raise RuntimeError(f"{' '.join(command.argv)}: {printed}")
        seconds, moments = time.monotonic() - started, int((sound / "moments").read_text())
        result = command.result(folder / command.out)
        kept.write_text(json.dumps({"result": result, "moments": moments, "seconds": seconds}))
    table: dict[str, Any] = json.loads(kept.read_text())
    return table


def run(
    argv: list[str], work: Path, temporary: Path, limit: int, moment: int = 0, seconds: float = 0.0,
    counted: Path | None = None,
) -> tuple[int, str]:  # fmt: skip
    """Runs a command in a child that is killed at a moment or after some seconds; wait status and what was printed."""
    import tempfile

    printed = temporary.parent / f"{work.name}.printed"

    def child(send: Callable[[Any], None]) -> None:
        moments = 0

        def noticed(function: Callable[..., Any]) -> Callable[..., Any]:
            def at(*arguments: Any, **options: Any) -> Any:
                nonlocal moments
                moments += 1
                if moments == moment:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*arguments, **options)

            return at

        os.fsync, os.replace, os.rename = noticed(os.fsync), noticed(os.replace), noticed(os.rename)
        os.environ["TMPDIR"], tempfile.tempdir = str(temporary), None
        os.chdir(work)
        if seconds:
            killer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL))
            killer.daemon = True
            killer.start()
        with time_limit(limit):
            outcome = call(argv, printed)
        if counted is not None:
            counted.write_text(str(moments))
        send(outcome.code)
        os._exit(0 if outcome.code == 0 else outcome.code or 1)

    ended = list(in_child(child))[-1]["ended"]
    return int(ended), printed.read_text(errors="replace") if printed.exists() else ""
