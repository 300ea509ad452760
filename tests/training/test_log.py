"""The log of a run: nothing that was written to it is ever lost."""

import json
import signal
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.small_runs import signal_at, small_settings
from timediff.data.cohort import Cohort
from timediff.errors import Stopped
from timediff.generators.timediff.generator import TimeDiff
from timediff.training.log import Log, read_log


class NoBoard:
    """In place of TensorBoard, which is slow to start."""

    def __init__(self, *_: object, **__: object) -> None: ...
    def add_scalar(self, *_: object) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...


@pytest.fixture
def _no_board(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.utils.tensorboard.SummaryWriter", NoBoard)


def test_the_log_tells_of_every_loss(whole: Path) -> None:
    lines = [json.loads(line) for line in (whole / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [2, 4, 6, 8, 10, 12]
    assert not any("resumed_from" in line for line in lines)
    assert read_log(whole / "log.jsonl") == lines
    for line in lines:
        assert abs(line["total"] - (0.01 * line["discrete"] + line["continuous"])) < 1e-4 * line["total"]


def test_the_names_of_its_files_do_not_tell_of_the_machine(whole: Path) -> None:
    assert [socket.gethostname() in file.name for file in (whole / "tensorboard").iterdir()] == [False]


def test_a_resumed_run_appends_and_names_the_update_it_went_on_from(icu: Cohort, whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(Stopped):
        TimeDiff(settings=small_settings()).fit(icu, seed=5, run=run, progress=signal_at(7, signal.SIGTERM))
    before = (run / "log.jsonl").read_bytes()
    for _ in range(2):  # the second time there is nothing left to do
        TimeDiff(settings=small_settings()).fit(icu, seed=5, run=run, resume=True)
    assert (run / "log.jsonl").read_bytes().startswith(before)
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert [(line["step"], line.get("resumed_from")) for line in lines] == [
        (2, None), (4, None), (6, None), (8, 7), (10, None), (12, None),
    ]  # fmt: skip
    losses = [line["total"] for line in read_log(whole / "log.jsonl")]
    assert [line["total"] for line in read_log(run / "log.jsonl")][-2:] == losses[-2:]


@st.composite
def lives(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Of a run that is killed and resumed: from which update, to which, and how many bytes of its last line are there.

    Each life begins at or before the end of the one before, since what follows a checkpoint is done again.
    """
    found, reached = [], 0
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, reached))
        reached = draw(st.integers(start, start + 4))
        found.append((start, reached, draw(st.integers(0, 60))))
    return found


@given(lives())
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.usefixtures("_no_board")
def test_killed_at_any_byte_and_resumed_the_log_keeps_all_that_was_written(
    tmp_path_factory: pytest.TempPathFactory, many: list[tuple[int, int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    path, expected = folder / "log.jsonl", dict[int, int]()
    for life, (start, reached, cut) in enumerate(many):
        before = path.read_bytes() if path.exists() else b""
        if reached > start:
            expected = {step: value for step, value in expected.items() if step <= start}
        with Log(folder, start) as log:
            for step in range(start + 1, reached + 1):
                log.write(step, {"total": life})
                expected[step] = life
        written = path.read_bytes()
        assert written.startswith(before)
        last = written[len(before) :].splitlines()[-1:]
        if cut and last and reached > start + 1:  # killed while it wrote its last line
            path.write_bytes(written[: -min(cut, len(last[0]) + 1)])
            if cut > 1:  # all but the newline is a whole line still
                del expected[reached]
    lines = read_log(path)
    assert {line["step"]: line["total"] for line in lines} == expected
    assert len(lines) == len(expected)


@pytest.mark.usefixtures("_no_board")
def test_half_a_line_is_ended_first(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"step": 1, "total": 2}\n{"step": 2, "to')
    with Log(tmp_path, 1) as log:
        log.write(2, {"total": 3.0})
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    assert lines[1:] == ['{"step": 2, "to', '{"step": 2, "resumed_from": 1, "total": 3.0}']
    assert [line["total"] for line in read_log(tmp_path / "log.jsonl")] == [2, 3]


def test_what_is_no_line_of_a_log_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('[]\n{"step": "x"}\n' + "[" * 10_000 + '\n9\n{"step": 3}\n')
    assert read_log(tmp_path / "log.jsonl") == [{"step": 3}]
