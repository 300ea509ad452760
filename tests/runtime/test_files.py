"""An output is whole or not there, whoever else writes it and whenever a process ends."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from timediff.errors import TimeDiffError
from timediff.runtime import files
from timediff.runtime.files import locked, new_file, new_folder, require_new, write_atomically

SLEEP = "import sys, time; from pathlib import Path; from timediff.runtime.files import locked, new_folder\n"
WRITE = """
import os, sys, time
from pathlib import Path
from timediff.errors import TimeDiffError
from timediff.runtime.files import new_folder
print(flush=True)
sys.stdin.read()
for out in map(Path, sys.argv[1:]):
    try:
        with new_folder(out) as folder:
            (folder / "a").write_text(str(os.getpid()))
            (folder / "b").write_text(str(os.getpid()))
        print("wrote", out)
    except TimeDiffError as error:
        assert str(out) in str(error)
"""


def start(program: str, *arguments: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def gone() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen(["true"]) as process:
        pass
    return process.pid


@pytest.fixture
def at_work(tmp_path: Path) -> Iterator[int]:
    """A process that is writing `out`."""
    program = SLEEP + "with new_folder(Path(sys.argv[1])) as f: (f / 'begun').touch(); time.sleep(60)"
    with start(program, tmp_path / "out") as process:
        while not list(tmp_path.glob(".out.partial-*/begun")):
            time.sleep(0.01)
        yield process.pid
        process.kill()


def test_of_two_that_write_at_once_the_second_is_refused_at_once(at_work: int, tmp_path: Path) -> None:
    with pytest.raises(TimeDiffError, match="another process is writing"), new_folder(tmp_path / "out"):
        pass
    assert [p.name for p in tmp_path.iterdir()] == [f".out.partial-{at_work}"]


def test_what_a_killed_process_has_left_is_removed(tmp_path: Path) -> None:
    for name in (f".out.partial-{gone()}", f".other.partial-{gone()}"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "half").touch()
    with new_folder(tmp_path / "out") as folder:
        (folder / "whole").touch()
    assert {p.name.partition("-")[0] for p in tmp_path.iterdir()} == {"out", ".other.partial"}
    (tmp_path / f".page.html.partial-{gone()}").touch()
    write_atomically(tmp_path / "page.html", "whole")
    assert not list(tmp_path.glob(".page*"))


def test_of_many_one_wins_whole_and_the_others_say_so(tmp_path: Path) -> None:
    outs = [tmp_path / f"out-{number}" for number in range(50)]
    writers = [start(WRITE, *outs) for _ in range(3)]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdin is not None
        writer.stdout.readline()  # it is ready
    for writer in writers:
        writer.stdin.close()
    said = [line for writer in writers for line in writer.stdout.read().splitlines()]
    for writer in writers:
        writer.stdout.close()
        assert writer.wait() == 0
    assert sorted(said) == sorted(f"wrote {out}" for out in outs)
    assert all((out / "a").read_text() == (out / "b").read_text() for out in outs)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("there", ["full", "empty", "file"])
def test_what_appears_meanwhile_is_kept(there: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"

    def appear() -> None:
        if there == "file":
            out.write_text("theirs")
        else:
            out.mkdir()
            _ = (out / "theirs").touch() if there == "full" else None

    with pytest.raises(TimeDiffError, match="exists already"), new_folder(out):
        appear()
    assert out.exists()
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    if there == "full":  # in the last instant: after the question, before the renaming
        monkeypatch.setattr(files, "refuse_existing", lambda path: None)
        with pytest.raises(TimeDiffError, match="written by another process meanwhile"), new_folder(out):
            pass
        assert [p.name for p in out.iterdir()] == ["theirs"]


def test_a_path_that_goes_up_again_makes_no_folder_on_its_way(tmp_path: Path) -> None:
    with new_folder(tmp_path / "out" / ".." / "out") as folder:
        (folder / "a").touch()
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["a"]
    write_atomically(tmp_path / "no" / ".." / "page", "text")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "page"]


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    program = SLEEP + "with locked(Path(sys.argv[1]), Path('out')): print(flush=True); time.sleep(60)"
    with start(program, tmp_path / "parts") as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(TimeDiffError, match="another process"), locked(tmp_path / "parts", tmp_path / "out"):
            pass
        process.kill()
    with locked(tmp_path / "parts", tmp_path / "out"):
        pass


def test_outputs_are_new_and_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("read").mkdir()
    Path("file").touch()
    Path("link").symlink_to("read")
    for outputs, said in (
        (["read"], "exists already"),
        (["link"], "exists already"),
        (["file/out"], "part of the path is a file"),
        (["file/a/b/out"], "part of the path is a file"),
        (["out", "out/in"], "is inside out"),
        (["out/in", "out"], "is inside out"),
        (["out", "a/../out"], "is inside"),
    ):
        with pytest.raises(TimeDiffError, match=said):
            require_new(*map(Path, outputs))
    require_new(Path("a/b/out"), Path("a/b/outer"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "link", "read"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_said_before_work(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir(mode=0o500)
    with pytest.raises(TimeDiffError, match="you may not write there"):
        require_new(tmp_path / "theirs" / "out")


def test_a_new_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    def write(meanwhile: Callable[[], None]) -> None:
        with new_file(tmp_path / "out") as partial:
            partial.write_text("half")
            meanwhile()

    def fail() -> None:
        raise KeyboardInterrupt

    def another() -> None:
        (tmp_path / "out").write_text("another's")

    with pytest.raises(KeyboardInterrupt):
        write(fail)
    assert list(tmp_path.iterdir()) == []
    write(lambda: None)
    assert (tmp_path / "out").read_text() == "half"
    with pytest.raises(TimeDiffError, match="exists already"):
        write(lambda: None)
    (tmp_path / "out").unlink()
    with pytest.raises(TimeDiffError, match="exists already"):
        write(another)
    assert (tmp_path / "out").read_text() == "another's"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
