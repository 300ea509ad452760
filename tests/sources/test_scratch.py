"""Scratch folders end with the extraction: when it ends, when it is stopped, and, killed, when the next one begins."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from timediff.sources.scratch import PREFIX, remove_abandoned, scratch

WAITING = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where tests run in the background of a script
from timediff.sources.scratch import scratch
with scratch() as folder:
    (folder / "rows").write_text("patients")
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def started() -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_it_is_gone_at_the_end_whatever_the_end_is(temporary: Path) -> None:
    with scratch() as folder:
        assert folder.parent == temporary
        (folder / "rows").write_text("patients")
    with pytest.raises(KeyError), scratch():
        raise KeyError
    assert not list(temporary.iterdir())


def test_what_a_killed_process_left_goes_and_what_a_living_one_uses_stays(temporary: Path) -> None:
    (killed, left), (living, used) = started(), started()
    try:
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        assert (left / "rows").exists()
        with scratch():
            assert not left.exists()
            assert (used / "rows").exists()
    finally:
        living.send_signal(signal.SIGTERM)
        living.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_removes_it(number: signal.Signals, temporary: Path) -> None:
    process, folder = started()
    assert folder.is_dir()
    process.send_signal(number)
    process.communicate(timeout=20)
    assert process.returncode != 0
    assert not folder.exists()


def test_other_folders_and_links_are_left_alone(temporary: Path) -> None:
    (temporary / "timediff-notes").mkdir()
    (temporary / "elsewhere").mkdir()
    (temporary / "elsewhere" / "notes").touch()
    (temporary / f"{PREFIX}link").symlink_to(temporary / "elsewhere")
    remove_abandoned()
    assert len(list(temporary.iterdir())) == 3
    assert (temporary / "elsewhere" / "notes").exists()


def test_one_that_was_killed_before_it_held_its_lock_goes_too(temporary: Path) -> None:
    (temporary / f"{PREFIX}new").mkdir()
    remove_abandoned()
    assert not list(temporary.iterdir())


def test_a_folder_taken_for_abandoned_before_it_was_locked_is_not_used(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tempfile.mkdtemp

    def removed_at_once(**options: str) -> str:
        folder = made(**options)
        monkeypatch.setattr(tempfile, "mkdtemp", made)
        remove_abandoned()
        return folder

    monkeypatch.setattr(tempfile, "mkdtemp", removed_at_once)
    with scratch() as folder:
        assert folder.is_dir()


def test_sigterm_is_what_it_was_afterwards(temporary: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with scratch():
        pass
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_running_extraction_ends_at_sigterm_and_leaves_nothing(temporary: Path) -> None:
    code = f"""
from pathlib import Path
from timediff.sources.duckdb_process import duckdb_process
with duckdb_process() as process:
    Path({str(temporary / "begun")!r}).touch()
    process.run("CREATE TEMP TABLE t AS SELECT count(*) FROM range(100000000) a, range(100000000) b")
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    while not (temporary / "begun").exists():
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert [path.name for path in temporary.iterdir()] == ["begun"]
