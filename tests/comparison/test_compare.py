"""Comparisons: one command for all, whatever stops, fails or is added."""

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import helpers.compared
import timediff as td
from helpers.small_baselines import baseline
from timediff import cli
from timediff.comparison.folder import Folder, read_record
from timediff.comparison.rows import Row
from timediff.comparison.training import TrainingTask, timed
from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.evaluation.results import Results
from timediff.generators.registry import GENERATORS
from timediff.runtime.progress import silent
from timediff.runtime.registry import PLUGINS

CHOSEN = ["copies", "near_copies", "nnaa"]
ODD = "né_[1]%&<b>"  # the name of a row
SETTINGS = {"training.steps": 6, "model.hidden": 4, "training.batch": 16, "training.checkpoint_every": 2}
COMMAND = [
    "--generator", f"{ODD}=rcgan", "--generator", "noisy", "--seeds", "2", "-n", "60",
    *(f"--set={ODD}:{key}={value}" for key, value in SETTINGS.items()), *(f"--only={name}" for name in CHOSEN),
]  # fmt: skip
SAME = ["scores.csv", "table.tex"]  # of which every byte follows from cohorts, settings and seeds


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    icu = td.simulate(180, steps=4, seed=0)
    for name, start, end in (("train", 0, 120), ("test", 120, 180)):
        icu.take(np.arange(start, end)).write(folder / name)
    return folder


@pytest.fixture(scope="module")
def train(home: Path) -> Cohort:
    return td.read_cohort(home / "train")


@pytest.fixture(scope="module")
def test(home: Path) -> Cohort:
    return td.read_cohort(home / "test")


def called(home: Path, *arguments: object) -> list[str]:
    return ["compare", str(home / "train"), str(home / "test"), *map(str, arguments)]


def run(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> int:
    """The command in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["timediff", *arguments])
    try:
        cli.main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.fixture(scope="module")
def whole(home: Path) -> Path:
    """A comparison by the command, never stopped."""
    with pytest.MonkeyPatch.context() as patched:
        assert run(patched, called(home, home / "whole", *COMMAND)) == 3  # noise on training stays is a leak
    return home / "whole"


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text())))


def contents(out: Path) -> dict[str, bytes]:
    """The files that must not depend on stops, order or jobs."""
    files = [
        *out.glob("runs/*/*/weights.safetensors"),
        *out.glob("cohorts/*/*/*.parquet"),
        *(out / one for one in SAME),
    ]
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


def odd_folder(out: Path) -> Path:
    (found,) = [path for path in (out / "runs").iterdir() if path.name != "noisy"]
    return found


def test_a_row_is_what_fit_and_sample_would_have_made(whole: Path, train: Cohort, tmp_path: Path) -> None:
    settings = GENERATORS("rcgan")(assignments=SETTINGS)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OMP_NUM_THREADS", "1")
        alone = settings.fit(train, seed=1, run=tmp_path / "run")
    td.sample_to(alone, tmp_path / "cohort", 60, seed=1)
    folder = odd_folder(whole).name
    written = (whole / "runs" / folder / "seed-1" / "weights.safetensors").read_bytes()
    assert written == (tmp_path / "run" / "weights.safetensors").read_bytes()
    assert (
        td.read_cohort(whole / "cohorts" / folder / "seed-1").digest() == td.read_cohort(tmp_path / "cohort").digest()
    )


def test_all_is_in_one_report_and_tables_that_programs_read(whole: Path) -> None:
    results = Results.read(whole / "results")
    assert results.generators == (ODD, "noisy")
    scores = rows(whole / "scores.csv")
    assert {row["generator"] for row in scores} == {ODD, "noisy"}
    assert any(row["what"] == "aa_test" and float(row["spread_cohort"]) >= 0 for row in scores)
    times = rows(whole / "runtime.csv")
    assert [(row["generator"], row["seed"]) for row in times] == [
        (ODD, "0"),
        (ODD, "1"),
        ("noisy", "0"),
        ("noisy", "1"),
    ]
    assert all(float(row["seconds"]) > 0 and float(row["sampling"]) > 0 for row in times)
    assert [row["updates"] for row in times] == ["6", "6", "", ""]
    page = (whole / "results" / "report.html").read_text()
    assert "Quality against training time" in page
    assert "&lt;b&gt;" in page
    assert "%&<b>" not in page


def test_the_function_is_the_command_and_jobs_beside_each_other_change_no_number(
    whole: Path, train: Cohort, test: Cohort, tmp_path: Path
) -> None:
    compared = {ODD: GENERATORS("rcgan")(assignments=SETTINGS), "noisy": "noisy"}
    out = tmp_path / "out"
    results = td.compare(train, test, out, compared, seeds=2, stays=60, only=CHOSEN, jobs=2)
    assert contents(out) == contents(whole)
    assert all(one.at_once == 2 for one in results.trainings)
    assert "{*}" in (out / "runtime.tex").read_text()
    assert "{*}" not in (whole / "runtime.tex").read_text()


def test_killed_and_resumed_it_is_as_if_it_never_was(home: Path, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "timediff", *called(home, out, *COMMAND)]
    environment = os.environ | {PLUGINS: "helpers.compared", "PYTHONPATH": os.pathsep.join(sys.path)}
    first = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    while not list(out.glob("cohorts/*/seed-0")) and first.poll() is None:
        time.sleep(0.02)
    first.kill()
    first.wait()
    finished = {path: path.stat().st_mtime_ns for path in out.glob("runs/*/seed-0/weights.safetensors")}
    assert finished
    assert not (out / "results").exists()
    left = out / "cohorts" / odd_folder(out).name / ".seed-0.parts"  # by a sampling that was killed after its end
    left.mkdir(exist_ok=True)
    again = subprocess.run([*command, "--resume"], env=environment, capture_output=True, text=True, check=False)
    assert again.returncode == 3, again.stderr
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    assert not left.exists()
    assert contents(out) == contents(whole)


def works(process: int) -> bool:
    """One that has ended may wait for someone to ask how, and is there until then."""
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False).stdout
    return told.strip()[:1] not in ("", "Z")


def test_no_worker_outlives_a_comparison_that_is_killed(home: Path, tmp_path: Path) -> None:
    place = tmp_path / "process"
    environment = os.environ | {PLUGINS: "helpers.compared", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "timediff", *called(home, tmp_path / "out", "--generator", "sleeping")]
    working = subprocess.Popen(command, env=environment | {"SLEEPING": str(place)}, stdout=subprocess.DEVNULL)
    while not (place.exists() and place.read_text()) and working.poll() is None:
        time.sleep(0.05)
    worker = int(place.read_text())
    working.kill()
    working.wait()
    until = time.monotonic() + 20
    while works(worker) and time.monotonic() < until:
        time.sleep(0.02)
    assert not works(worker)


def test_an_interrupt_saves_and_says_how_to_go_on(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    long = ["--generator", "rcgan", "--set", "training.steps=1000000", "--set", "model.hidden=4", "--set"]
    command = [sys.executable, "-m", "timediff", *called(home, out, *long, "training.batch=16")]
    working = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not list(out.glob("runs/rcgan/seed-0/log.jsonl")) and working.poll() is None:
        time.sleep(0.05)
    time.sleep(0.5)
    working.send_signal(signal.SIGINT)
    _, err = working.communicate(timeout=30)
    assert working.returncode == 130
    assert err.strip() == "stopped. What is finished is kept, and --resume goes on from there"
    assert list(out.glob("runs/rcgan/seed-0/checkpoints/step-*"))
    assert json.loads((out / "records" / "rcgan" / "seed-0.json").read_text())["fit_seconds"] > 0


def test_who_fails_says_why_and_the_others_go_on(train: Cohort, test: Cohort, tmp_path: Path) -> None:
    said: list[str] = []
    big = baseline("rcgan", training__batch=10_000)
    compared = {"big": big, "refusing": "refusing", "raising": "raising", "dying": "dying", "noisy": "noisy"}
    out = tmp_path / "out"
    results = td.compare(train, test, out, compared, seeds=1, stays=60, only=["copies"], say=said.append)
    why = {one.generator: one.failure for one in results.trainings}
    assert why["noisy"] == ""
    assert why["big"].startswith("the cohort has 120 stays, fewer than one batch of 10000")
    assert why["refusing"] == "this cohort is not to its taste."
    assert why["raising"] == "it raised ValueError."  # and not the cell that its message holds
    assert "SIGKILL" in why["dying"]
    assert "out of luck" in (out / "records" / "dying" / "seed-0.txt").read_text()
    assert results.generators == ("noisy",)
    assert [line.split(",")[0] for line in said if "fitted in" in line] == ["noisy"]
    assert "refusing failed, seed 0: this cohort is not to its taste." in results.warnings
    assert {row["generator"] for row in rows(out / "runtime.csv") if row["failure"]} == set(compared) - {"noisy"}
    assert not list(out.glob("runs/refusing/*"))


def test_only_what_is_added_is_done(train: Cohort, test: Cohort, tmp_path: Path) -> None:
    class Here(helpers.compared.Noisy):  # no other process finds it
        name = "here"

    GENERATORS.add("here", Here)
    try:
        out, asked = tmp_path / "out", {"stays": 60, "only": ["copies"]}
        td.compare(train, test, out, ["noisy"], seeds=1, **asked)
        before = {
            path: path.stat().st_mtime_ns for part in ("runs", "cohorts", "measured") for path in files(out / part)
        }
        with pytest.raises(TimeDiffError, match="add --resume to go on"):
            td.compare(train, test, out, ["noisy", "here"], seeds=2, **asked)
        results = td.compare(train, test, out, ["noisy", "here"], seeds=2, resume=True, **asked)
        assert results.generators == ("noisy", "here")
        assert [(one.generator, one.seed) for one in results.trainings] == [
            (name, seed) for name in ("noisy", "here") for seed in (0, 1)
        ]
        kept = {path: path.stat().st_mtime_ns for path in before if path.name not in ("scores.csv", "results.key")}
        assert kept.items() <= before.items()
        page = (out / "results" / "report.html").stat().st_mtime_ns
        said: list[str] = []
        again = td.compare(train, test, out, ["noisy", "here"], seeds=2, resume=True, say=said.append, **asked)
        assert said == []
        assert (out / "results" / "report.html").stat().st_mtime_ns == page
        assert again.to_json() == results.to_json()
    finally:
        del GENERATORS._parts["here"]


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_what_has_changed_is_said(whole: Path, train: Cohort, test: Cohort) -> None:
    asked = {"seeds": 2, "stays": 60, "only": CHOSEN, "resume": True}
    changes = {
        "noise was 0.1, now 0.5": (train, {"noisy": GENERATORS("noisy")(assignments={"noise": 0.5})}, {}),
        "the generator was noisy, now refusing": (train, {"noisy": "refusing"}, {}),
        "other training stays": (train.take(np.arange(100)), ["noisy"], {}),
        "it was 60, now 70": (train, ["noisy"], {"stays": 70}),
    }
    before = {path: path.stat().st_mtime_ns for path in files(whole)}
    for words, (cohort, compared, changed) in changes.items():
        with pytest.raises(TimeDiffError, match=words):
            td.compare(cohort, test, whole, compared, **{**asked, **changed})
    assert {path: path.stat().st_mtime_ns for path in files(whole)} == before


BAD = {
    "unknown": (["--generator", "timegang"], "did you mean timegan"),
    "nothing": ([], "there is nothing to compare"),
    "preset of another": (["--generator", "timegan", "--preset", "timegan=paper"], "is for the generator timediff"),
    "unknown preset": (["--preset", "papr"], "there is no preset"),
    "twice": (["--generator", "rcgan", "--generator", "rcgan"], "NAME=rcgan"),
    "setting of nobody": (["--generator", "rcgan", "--set", "timegan:training.steps=5"], "there is no row 'timegan'"),
    "unknown setting": (["--generator", "rcgan", "--set", "training.stepz=5"], "rcgan: "),
    "config of nobody": (["--generator", "rcgan", "--config", "x=y.toml"], "there is no row 'x'"),
    "reserved": (["--generator", "real against real=rcgan"], "a name that the report itself uses"),
    "path": (["--generator", "../x=rcgan"], "looks like a path"),
    "metric": (["--generator", "rcgan", "--only", "copy"], "there is no metric"),
    "few": (["--generator", "rcgan", "-n", "10"], "expected a whole number from 50"),
    "no seeds": (["--generator", "rcgan", "--seeds", "0"], "--seeds"),
    "no jobs": (["--generator", "rcgan", "--jobs", "0"], "--jobs"),
}


@pytest.mark.parametrize("mistake", BAD)
def test_a_mistake_is_a_sentence_before_anything_is_written(
    mistake: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments, words = BAD[mistake]
    assert run(monkeypatch, called(home, tmp_path / "out", *arguments)) == 2
    assert words in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_what_else_is_there_is_left_alone(
    home: Path, train: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    assert run(monkeypatch, called(home, tmp_path / "mine", "--generator", "noisy", "--resume")) == 2
    assert "exists and is no comparison" in capfd.readouterr().err
    shared = ["compare", str(home / "train"), str(home / "train"), str(tmp_path / "out"), "--generator", "noisy"]
    assert run(monkeypatch, shared) == 2
    assert "in the training cohort too" in capfd.readouterr().err
    with pytest.raises(TimeDiffError, match="needs at least 50"):
        td.compare(train.take(np.arange(40)), train.take(np.arange(40, 120)), tmp_path / "out", ["noisy"])
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_dry_run_shows_rows_and_updates_and_does_nothing(
    home: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, called(home, tmp_path / "out", *COMMAND, "--dry-run")) == 0
    shown = capfd.readouterr().out
    assert "fit 2" in shown
    assert "noisy" in shown
    assert list(tmp_path.iterdir()) == []
    assert run(monkeypatch, called(home, whole, *COMMAND, "--resume", "--dry-run")) == 0
    lines = capfd.readouterr().out.splitlines()
    assert all("done" in line for line in lines if "rcgan" in line or "noisy" in line)


def test_check_looks_at_all_that_is_in_it(whole: Path, tmp_path: Path) -> None:
    checked = td.check(whole)
    assert (checked.kind, checked.intact, checked.hashed) == ("a comparison", True, True)
    copy = tmp_path / "copy"
    shutil.copytree(whole, copy)
    (copy / "cohorts" / "noisy" / "seed-1" / "schema.toml").write_text("format = 1")
    assert any(problem.startswith("cohorts/noisy/seed-1: edited") for problem in td.check(copy).problems)


def test_the_clock_adds_up_tries_and_knows_whether_the_last_one_ended(tmp_path: Path) -> None:
    place = Folder(tmp_path)
    task = TrainingTask(Row("noisy", GENERATORS("noisy"), GENERATORS("noisy").Settings()), 0, 60, place)
    with pytest.raises(KeyboardInterrupt), timed(task, "fit", silent):
        raise KeyboardInterrupt
    assert not read_record(task.record).fit_ended
    spent = read_record(task.record).fit_seconds
    with timed(task, "fit", silent):
        time.sleep(0.01)
    record = read_record(task.record)
    assert record.fit_ended
    assert record.fit_tries == 2
    assert record.fit_seconds >= spent + 0.01
