"""The paper by one command, on data and with methods that take no time."""

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import helpers.reproduced as small
from timediff.errors import TimeDiffError
from timediff.evaluation.score import Score
from timediff.reproduction import budget, fits, measures
from timediff.reproduction import reproduce as module
from timediff.reproduction.budget import Machine
from timediff.reproduction.cells import ReproductionCell
from timediff.reproduction.reproduce import OUT_OF_BUDGET, Plan, reproduce
from timediff.reproduction.results import Reproduction
from timediff.reproduction.tasks import GPU_LOST, carry_out, carry_out_in_process, is_lost
from timediff.runtime.progress import unheard, unwatched

TIMES = {"seconds", "fit_seconds"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small.write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(autouse=True)
def small_experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    small.make_small(monkeypatch)


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> tuple[Path, Reproduction]:
    """A reproduction that nothing stopped."""
    out = tmp_path_factory.mktemp("whole") / "out"
    with pytest.MonkeyPatch.context() as patched:
        small.make_small(patched)
        return out, reproduce(out, data, jobs=0)


def rows(out: Path) -> list[dict[str, Any]]:
    """results.json's, without the clock."""
    table = json.loads((out / "results.json").read_text())
    return [{key: value for key, value in row.items() if key not in TIMES} for row in table["rows"]]


def contents(out: Path) -> dict[str, bytes]:
    """What must not depend on stops."""
    files = [*out.glob("runs/*/*/weights.safetensors"), *out.glob("cohorts/*/*/*.parquet"), *out.glob("figures/*")]
    return {str(path.relative_to(out)): path.read_bytes() for path in [*files, out / "reproduction.json"]}


def test_the_paper_stands_beside_ours(whole: tuple[Path, Reproduction]) -> None:
    lines = whole[1].lines
    found = {(line.dataset, line.method, line.metric): line for line in lines if line.experiment == "privacy"}
    one = found["PhysioNet 2019", "TimeDiff", "AA_test"]
    assert (one.published, one.published_std) == (0.574, 0.002)  # of MIMIC-III, for which it stands in
    assert one.stands_in_for == "MIMIC-III"
    assert 0 <= one.value <= 1
    assert one.seeds == (2023, 2024, 2025)
    assert (one.updates, one.repetitions) == (6, 10)
    assert one.fit_seconds > 0
    assert one.seconds >= 0
    assert found["PhysioNet 2019", "RCGAN", "AA_test"].published == 0.983
    assert found["PhysioNet 2019", "Real data", "NNAA"].published == 0.267
    stocks = found["Stocks", "TimeDiff", "AA_test"]
    assert stocks.stands_in_for == ""
    assert stocks.published != stocks.published  # the paper has no privacy scores of Stocks
    assert not [line for line in lines if line.hole and line.metric != "label"]


def test_statistics_are_counted_as_the_paper_does(whole: tuple[Path, Reproduction]) -> None:
    found = {(line.dataset, line.metric): line for line in whole[1].lines if line.experiment == "datasets"}
    assert found["Stocks", "stays"].value == 306
    assert found["Stocks", "stays"].published == 3773
    assert found["Stocks", "features"].value == 6
    assert found["PhysioNet 2019", "features"].value == 15  # seven vital signs, their masks, the label
    assert found["PhysioNet 2019", "steps"].value == 24
    assert 0.15 < found["PhysioNet 2019", "missing"].value < 0.25
    assert found["Stocks", "label"].hole == "it has no label"


def test_programs_read_the_same(whole: tuple[Path, Reproduction]) -> None:
    out, results = whole
    read = list(csv.DictReader(io.StringIO((out / "rows.csv").read_text())))
    assert len(read) == len(results.lines) == len(rows(out))
    assert read[0]["experiment"] == "datasets"
    first = next(row for row in read if row["metric"] == "AA_test" and row["method"] == "TimeDiff")
    assert first["seeds"] == "2023 2024 2025"
    assert float(first["std_cohort"]) >= 0


def test_the_page_says_what_stands_in_and_what_differs(whole: tuple[Path, Reproduction]) -> None:
    page = (whole[0] / "report.html").read_text()
    assert "stands in for MIMIC-III" in page
    assert "in place of MIMIC-III" in page
    assert "Nothing is as in the paper." in page
    assert "0.574 ± 0.002" in page
    assert "seed 2023, 2024, 2025" in page
    assert "Figures of Stocks" in page
    assert "there was no budget" in page


def test_killed_between_tasks_and_resumed_the_numbers_are_the_same(
    data: Path, whole: tuple[Path, Reproduction], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    killed = subprocess.run([sys.executable, small.__file__, data, out, "6"], env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not (out / "results.json").exists()
    with pytest.raises(TimeDiffError, match="add --resume"):
        reproduce(out, data, jobs=0)
    before = {path: path.stat().st_mtime_ns for path in out.glob("runs/*/*/weights.safetensors")}
    assert before
    reproduce(out, data, jobs=0, resume=True)
    assert rows(out) == rows(whole[0])
    assert contents(out) == contents(whole[0])
    assert all(path.stat().st_mtime_ns == when for path, when in before.items())  # nothing was trained again


def test_what_is_finished_is_not_measured_again(data: Path, whole: tuple[Path, Reproduction]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ReproductionCell, "carry_out", pytest.fail)
        again = reproduce(whole[0], data, jobs=0, resume=True)
    assert [line.value for line in again.lines if not line.hole] == [
        line.value for line in whole[1].lines if not line.hole
    ]


def test_what_fails_leaves_a_hole_and_the_rest_goes_on(
    data: Path, whole: tuple[Path, Reproduction], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(whole[0], tmp_path / "out", ignore=shutil.ignore_patterns("cells", "stocks"))
    fitting = fits.carry_out

    def failing(task: Any, *arguments: Any) -> None:
        if task.folder.dataset == "stocks":
            raise TimeDiffError(f"{task.run} is not to its taste.")
        fitting(task, *arguments)

    def raising(asked: measures.Asked) -> measures.MeasuredScores:
        raise ValueError(f"a cell holds {asked.test.series}")

    monkeypatch.setattr(fits, "carry_out", failing)
    monkeypatch.setitem(measures.MEASURES, "courses", measures.Measure(raising))  # type: ignore[arg-type]
    results = reproduce(tmp_path / "out", data, only=["privacy", "trajectories"], jobs=0, resume=True)
    found = {(line.dataset, line.method, line.metric): line for line in results.lines}
    hole = found["Stocks", "TimeDiff", "AA_test"]
    assert hole.hole.startswith("its training failed: runs/stocks/rcgan-")
    assert hole.failed
    assert str(tmp_path) not in (tmp_path / "out" / "report.html").read_text()
    assert found["Stocks", "Real data", "AA_test"].value >= 0
    assert found["PhysioNet 2019", "TimeDiff", "AA_test"].value >= 0
    assert found["PhysioNet 2019", "TimeDiff", "courses"].hole == "it raised ValueError."
    assert len(results.failures) >= 3
    assert "its training failed" in (tmp_path / "out" / "report.html").read_text()
    assert "could not be had" in (tmp_path / "out" / "report.html").read_text()


def linked(data: Path, folder: Path) -> Path:
    """The data, and beside them a database that cannot be read."""
    for name in ("timegan", "challenge"):
        (folder / name).mkdir(parents=True)
        for file in (data / name).iterdir():
            (folder / name / file.name).hardlink_to(file)
    (folder / "mimic").mkdir()
    for name in ("icustays", "chartevents", "patients", "admissions"):
        (folder / "mimic" / f"{name}.csv").write_text("odd\n1\n")
    return folder


def test_a_data_set_that_cannot_be_read_says_why(data: Path, tmp_path: Path) -> None:
    results = reproduce(tmp_path / "out", linked(data, tmp_path / "linked"), only=["datasets"], jobs=0)
    (broken,) = [one for one in results.datasets if one.hole]
    assert broken.name == "mimic3-demo"
    assert "column" in broken.hole
    found = {(line.dataset, line.metric): line for line in results.lines}
    assert found["MIMIC-III demo", "stays"].hole == broken.hole
    assert found["Stocks", "stays"].value == 306


def test_a_budget_cuts_and_says_so(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "probe", lambda: Machine(1e6))  # on such a machine nothing fits
    results = reproduce(tmp_path / "out", data, only=["privacy", "datasets"], budget=1, jobs=0)
    assert any("1 repetition of each classifier instead of 10" in cut for cut in results.cuts)
    assert any("cells, shown as left out" in cut for cut in results.cuts)
    privacy = [line for line in results.lines if line.experiment == "privacy"]
    assert {line.hole for line in privacy} == {OUT_OF_BUDGET}
    assert not results.failures
    assert [line for line in results.lines if line.experiment == "datasets" and line.value > 0]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "1 training seed instead of 3" in page
    assert OUT_OF_BUDGET in page
    stored = json.loads((tmp_path / "out" / "reproduction.json").read_text())
    assert stored["scale"]["stays"] == budget.SCALES[-1].stays


def test_when_the_time_is_up_nothing_more_is_begun(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRACE", 1e-9)
    monkeypatch.setattr(module._Work, "_plan", lambda self, study: Plan(1, "", [], None, {}))
    extracted = module._Work._extracted

    def in_time(self: Any) -> Any:
        late, module.GRACE = module.GRACE, 100.0
        try:
            return extracted(self)
        finally:
            module.GRACE = late

    monkeypatch.setattr(module._Work, "_extracted", in_time)
    results = reproduce(tmp_path / "out", data, only=["privacy"], budget=1, jobs=0)
    assert {line.hole for line in results.lines} == {module.OUT_OF_TIME}
    assert any("when the time was up" in cut for cut in results.cuts)


def test_a_gpu_that_is_gone_ends_its_process_and_no_training_goes_on_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Training:
        name, stage, on_gpu, done = "training", "training", True, False

        def __init__(self, error: Exception | None) -> None:
            self.error = error

        def carry_out(self, watch: Any, say: Any) -> None:
            if self.error:
                raise self.error

    lost = RuntimeError("CUDA error: the launch timed out")
    told = TimeDiffError("the GPU failed or is gone")
    told.__cause__ = lost
    for error in (lost, told):
        with pytest.raises(SystemExit, match="GPU could not be used"):
            carry_out(Training(error), "cpu", unwatched, unheard)
    with pytest.raises(ValueError, match="another"):
        carry_out(Training(ValueError("another")), "cpu", unwatched, unheard)
    assert not is_lost(RuntimeError("CUDA error: out of memory"))
    monkeypatch.setattr("timediff.reproduction.tasks.device", lambda: "cpu")
    with pytest.raises(TimeDiffError, match=GPU_LOST[:20]):
        carry_out_in_process(Training(None), "cuda", unwatched, unheard)
    carry_out_in_process(Training(None), "cpu", unwatched, unheard)


def test_what_is_given_is_checked_before_anything_is_written(data: Path, tmp_path: Path) -> None:
    for changes, said in (
        ({"only": ["nothing"]}, "there is no experiment"),
        ({"budget": 0}, "budget is 0"),
        ({"budget": float("nan")}, "budget is nan"),
        ({"jobs": -1}, "jobs is -1"),
        ({"data": tmp_path / "nowhere"}, "is no folder"),
    ):
        with pytest.raises(TimeDiffError, match=said):
            reproduce(tmp_path / "out", **({"data": data} | changes))  # type: ignore[arg-type]
        assert not (tmp_path / "out").exists()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    for resume in (False, True):
        with pytest.raises(TimeDiffError, match="is no reproduction"):
            reproduce(tmp_path / "out", data, resume=resume)


def test_a_score_without_a_value_is_a_hole_with_its_note(
    data: Path, whole: tuple[Path, Reproduction], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(whole[0], tmp_path / "out", ignore=shutil.ignore_patterns("cells"))
    none = measures.MeasuredScores([Score("nnaa", "aa_test", float("nan"), note="too few stays.")])
    monkeypatch.setitem(measures.MEASURES, "nnaa", measures.Measure(lambda asked: none))  # type: ignore[arg-type]
    results = reproduce(tmp_path / "out", data, only=["privacy"], jobs=0, resume=True)
    assert {line.hole for line in results.lines} == {"too few stays."}
    assert not results.failures
