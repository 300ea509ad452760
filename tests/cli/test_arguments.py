"""What no command can do is said before anything is created: the corrected command then finds its place free."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.command_line import SMALL, Run
from timediff.cli import program
from timediff.data.cohort import Cohort, read_cohort
from timediff.errors import TimeDiffError

BEYOND = 2**63
IMPOSSIBLE = {
    "nested test": (["split", "icu", "out", "out/in"], "out/in is inside out"),
    "nested train": (["split", "icu", "out/in", "out"], "out/in is inside out"),
    "the same, roundabout": (["split", "icu", "out", "icu/../out"], "the same folder"),
    "parent is a file": (["sample", "run", "icu/schema.toml/out"], "part of the path is a file"),
    "parent of fit": (["fit", "icu", "icu/schema.toml/a/run", *SMALL], "part of the path is a file"),
    "parent of simulate": (["simulate", "icu/schema.toml/out"], "part of the path is a file"),
    "unknown database": (["simulate", "out", "--raw", "mimic9"], "'mimic9' is no database"),
    "fit seed": (["fit", "icu", "out", *SMALL, "--seed", BEYOND], "--seed"),
    "fit seed of settings": (["fit", "icu", "out", *SMALL, "--set", f"training.seed={2 * BEYOND}"], "training.seed"),
    "sample seed": (["sample", "run", "out", "--seed", 2 * BEYOND], "--seed"),
    "negative seed": (["sample", "run", "out", "--seed", -1], "--seed"),
    "simulate seed": (["simulate", "out", "--seed", BEYOND], "--seed"),
    "split seed": (["split", "icu", "out", "out2", "--seed", BEYOND], "--seed"),
    "length": (["sample", "run", "out", "--length", 10**9], "TB of memory"),
    "length beyond all": (["sample", "run", "out", "--length", 10**30], "--length"),
    "no length": (["sample", "run", "out", "--length", 0], "--length"),
    "long stays": (["sample", "run", "out", "--length", 10**6], "GB of memory"),
    "many samples": (["sample", "run", "out", "-n", 10**30], "'-n'"),
    "samples for no disk": (["sample", "run", "out", "-n", 10**9, "--length", 10**4], "PB|TB|the disk of out"),
    "calls": (["sample", "run", "out", "--steps", 10**30], "--steps"),
    "no calls": (["sample", "run", "out", "--steps", 0], "--steps"),
    "batch": (["sample", "run", "out", "--batch", 10**30], "--batch"),
    "horizon": (["fit", "icu", "out", *SMALL, "--horizon", 10**30], "--horizon"),
    "many stays": (["simulate", "out", "--stays", 10**12], "84 TB, and the disk of out has"),
    "stays beyond all": (["simulate", "out", "--stays", 10**30], "--stays"),
    "stays for no disk": (["simulate", "out", "--stays", 10**9, "--steps", 5000], "the disk of out|of memory"),
    "steps for no memory": (["simulate", "out", "--stays", 10**9, "--steps", 10**6], "1.04 TB of memory"),
    "steps": (["simulate", "out", "--steps", 10**9], "TB of memory"),
    "steps beyond all": (["simulate", "out", "--steps", 10**30], "--steps"),
    "raw stays for no memory": (["simulate", "out", "--raw", "mimic3", "--stays", 10**9], "TB of memory"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", IMPOSSIBLE)
def test_the_impossible_is_said_and_nothing_created(
    mistake: str, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, said = IMPOSSIBLE[mistake]
    before = sorted(home.rglob("*"))
    monkeypatch.chdir(home)
    code, _, err = run(*arguments)
    assert code == 2
    assert any(words in err for words in said.split("|")), err
    assert "Traceback" not in err
    assert sorted(home.rglob("*")) == before


def test_the_corrected_command_finds_its_place_free(run: Run, home: Path, tmp_path: Path) -> None:
    for wrong in (["--seed", BEYOND], ["--length", 10**9], ["--sampler", "none"]):
        assert run("sample", home / "run", tmp_path / "out", "-n", 5, *wrong)[0] == 2
    assert run("sample", home / "run", tmp_path / "out" / ".." / "out", "-n", 5)[0] == 0
    assert len(read_cohort(tmp_path / "out")) == 5
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


NAMES = {
    "reserved": (["real against real=icu"], "a name that the report itself uses"),
    "reserved fact": (["training data=icu"], "a name that the report itself uses"),
    "path": (["../x=icu"], "looks like a path"),
    "empty": (["=icu"], "cannot be the name"),
    "control": (["a\x1b[31m=icu"], "cannot be the name"),
    "half a character": (["a\udcff=icu"], "cannot be the name"),
    "long": (["a" * 101 + "=icu"], "expected 1 to 100 printable"),
    "twice": (["a=icu", "a=./icu"], "is given twice"),
}


@pytest.mark.parametrize("mistake", NAMES)
def test_names_that_synthetic_cohorts_cannot_have(
    mistake: str, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, said = NAMES[mistake]
    before = sorted(home.rglob("*"))
    monkeypatch.chdir(home)
    given = [f"--synthetic={name}" for name in names]
    code, _, err = run("evaluate", "--train=icu", "--test=icu", *given, "--out=out", "--only=copies")
    assert code == 2
    assert said in err
    assert sorted(home.rglob("*")) == before


def test_names_may_hold_markup(run: Run, home: Path, tmp_path: Path) -> None:
    icu = home / "icu"
    given = [f"--train={icu}", f"--test={icu}", f"--synthetic=<b>[red]&={icu}"]
    code, out, _ = run("evaluate", *given, f"--out={tmp_path / 'out'}", "--only=copies", "--protocol=paper")
    assert code == 0
    assert "<b>[red]&" in out
    page = (tmp_path / "out" / "report.html").read_text()
    assert "&lt;b&gt;[red]&amp;" in page
    assert "<b>[red]" not in page


def test_a_report_may_lie_in_a_new_folder(run: Run, tmp_path: Path) -> None:
    golden = Path(__file__).parents[1] / "golden" / "results-0.1.0"
    code, _, err = run("report", golden, "--out", tmp_path / "new" / ".." / "pages" / "a.html")
    assert (code, err) == (0, "")
    assert [p.name for p in tmp_path.rglob("*")] == ["pages", "a.html"]


def test_a_name_that_is_no_text_is_printed_escaped(run: Run, icu: Cohort, tmp_path: Path) -> None:
    cohort = tmp_path / os.fsdecode(b"icu-\xff")
    icu.write(cohort)
    page = tmp_path / "page.html"
    code, out, err = run("describe", cohort, "--html", page)
    assert (code, err) == (0, "")
    assert "icu-�" in page.read_text()
    code, out, _ = run("split", cohort, tmp_path / os.fsdecode(b"\xfe"), tmp_path / "test")
    assert code == 0
    assert "\\udcfe: 15" in out  # and so many stays, of 200
    assert "\\udcff" in run("describe", cohort / "nothing")[2]


def test_describe_shows_values_only_on_request(run: Run, icu: Cohort, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    icu.write(tmp_path / "icu")
    static = pq.read_table(tmp_path / "icu" / "static.parquet")
    place = static.column_names.index("sex")
    pq.write_table(static.set_column(place, "sex", pa.array(["Xq"] * len(icu))), tmp_path / "icu" / "static.parquet")
    code, _, err = run("describe", tmp_path / "icu")
    assert code == 2
    assert "1 different value (a text" in err
    assert "Xq" not in err
    assert "'Xq'" in run("describe", tmp_path / "icu", "--show-values")[2]


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (OSError(5, "Input/output error", "there"), "error: there: Input/output error"),
        (OSError("nothing more is known"), "error: a file: nothing more is known"),
        (RecursionError("maximum recursion depth exceeded"), "nested too deeply"),
        (UnicodeDecodeError("utf-8", b"Jane Doe\xff", 8, 9, "invalid start byte"), "as utf-8"),
        (UnicodeEncodeError("utf-8", "Jane Doe\ud800", 8, 9, "surrogates not allowed"), "as utf-8"),
        (MemoryError(), "not enough memory"),
        (TimeDiffError("a file named \udcff"), "error: a file named \\udcff"),
    ],
)
def test_what_the_system_says_is_one_sentence(
    raised: Exception, said: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise raised

    monkeypatch.setattr(program, "app", fail)
    code, _, err = run("describe", "icu")
    assert code == 2
    assert said in err
    assert "Jane" not in err
    assert err.count("\n") == 1


def test_our_own_mistakes_are_not_hidden(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(program, "app", fail)
    with pytest.raises(KeyError):
        run("describe", "icu")


def test_whoever_reads_only_the_first_line_hears_no_complaint(home: Path) -> None:
    command = [sys.executable, "-m", "timediff", "describe", home / "icu"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
