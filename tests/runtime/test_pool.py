"""Tasks by worker processes: each ends for itself, and none is begun that may not be."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from helpers.pooled import Small, work
from timediff.errors import Stopped
from timediff.runtime.pool import can_be_sent, carry_out_all, carry_out_here
from timediff.runtime.progress import Progress, Say, Watch, unheard, unwatched
from timediff.runtime.worker import Ended


def ended(
    tasks: Sequence[Small],
    folder: Path,
    jobs: int,
    *,
    say: Say = unheard,
    may_begin: Callable[[int], bool] | None = None,
) -> dict[str, Ended]:
    found: dict[str, Ended] = {}
    options = {"may_begin": may_begin} if may_begin else {}

    def on_end(task: Small, end: Ended) -> None:
        found[task.name] = end

    if jobs:
        carry_out_all(work, tasks, folder, jobs, unwatched, say, on_end, **options)
    else:
        carry_out_here(work, tasks, folder, unwatched, say, on_end, **options)
    return found


def test_all_are_done_by_no_more_processes_than_asked_for(tmp_path: Path) -> None:
    said: list[str] = []
    found = ended([Small(name) for name in "abcdef"], tmp_path, 2, say=said.append)
    assert [end.failure for end in found.values()] == [""] * 6
    processes = {path.read_text() for path in tmp_path.iterdir()}
    assert 1 <= len(processes) <= 2
    assert str(os.getpid()) not in processes
    assert sorted(said) == [f"{name}: written" for name in "abcdef"]


@pytest.mark.parametrize(
    ("ends", "why", "here"),
    [
        ("failing", "it is not to its taste.", True),
        ("raising", "it raised ValueError.", True),
        ("leaving", "its process ended with exit code 3.", False),
        ("killed", "its process was ended by signal 9 (SIGKILL), as a system does where memory is short.", False),
        ("asked", "its process was ended by signal 15 (SIGTERM).", False),
    ],
)
def test_who_fails_says_why_and_the_others_go_on(ends: str, why: str, here: bool, tmp_path: Path) -> None:
    for jobs in (0, 2) if here else (2,):
        found = ended([Small("a"), Small("b", ends), Small("c"), Small("d")], tmp_path, jobs)
        assert {name: end.failure for name, end in found.items()} == {"a": "", "b": why, "c": "", "d": ""}
        assert found["b"].seconds >= 0


def test_who_says_nothing_any_more_and_lives_on_is_stopped_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timediff.runtime.pool.SLOWEST_END", 0.2)
    found = ended([Small("a"), Small("b", "silent"), Small("c")], tmp_path, 1)
    why = "its process said nothing any more and did not end, so it was stopped."
    assert {name: end.failure for name, end in found.items()} == {"a": "", "b": why, "c": ""}


@pytest.mark.parametrize("jobs", [0, 1, 3])
def test_what_may_not_be_begun_is_left(jobs: int, tmp_path: Path) -> None:
    begun: list[int] = []

    def three(busy: int) -> bool:
        if len(begun) < 3:
            begun.append(busy)
            return True
        return False

    found = ended([Small(name) for name in "abcdef"], tmp_path, jobs, may_begin=three)
    assert sorted(found) == ["a", "b", "c"]
    assert max(begun) <= max(jobs - 1, 0)


def test_whether_one_may_be_begun_is_asked_again_when_another_has_ended(tmp_path: Path) -> None:
    found = ended([Small(name) for name in "abc"], tmp_path, 3, may_begin=lambda busy: busy == 0)
    assert sorted(found) == ["a", "b", "c"]
    assert len({path.read_text() for path in tmp_path.iterdir()}) <= 3


def test_a_stop_in_this_process_is_no_failure(tmp_path: Path) -> None:
    def stopping(task: Small, folder: Path, watch: Watch, say: Say) -> None:
        raise Stopped("stopped")

    with pytest.raises(Stopped):
        carry_out_here(stopping, [Small("a")], tmp_path, unwatched, unheard, lambda task, end: None)


def test_progress_of_a_worker_is_seen_by_its_name(tmp_path: Path) -> None:
    seen: dict[str, tuple[int, int]] = {}

    def watch(what: str) -> Progress:
        def show(done: int, total: int, **values: float) -> None:
            seen[what] = done, total

        return show

    carry_out_all(work, [Small("a"), Small("b")], tmp_path, 2, watch, unheard, lambda task, end: None)
    assert seen == {"a": (1, 2), "b": (1, 2)}


@dataclass(frozen=True)
class Holding:
    name: str
    what: object


def test_what_another_process_would_not_find_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "__main__.py").touch()  # a folder that is run, which is no module of a worker's
    monkeypatch.syspath_prepend(str(tmp_path))

    class Inside:
        pass

    assert can_be_sent(Holding("a", Small("b")))
    assert can_be_sent(Holding("a", (Path("x"), 1, complex(1, 2), slice)))
    assert not can_be_sent(Holding("a", Inside))
    assert not can_be_sent(Holding("a", lambda: None))
    of_a_script = type("OfAScript", (), {"__module__": "__main__"})
    import __main__

    __main__.OfAScript = of_a_script  # type: ignore[attr-defined]
    try:
        assert not can_be_sent(Holding("a", of_a_script))
    finally:
        del __main__.OfAScript  # type: ignore[attr-defined]
