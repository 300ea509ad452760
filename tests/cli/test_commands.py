"""The command line as its users meet it: what works, and one clear sentence for what does not."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import same
from helpers.command_line import SMALL, Run
from timediff.data.cohort import Cohort, read_cohort


def test_help_imports_nothing_heavy() -> None:
    heavy = "{'torch', 'pyarrow', 'plotly', 'numpy'}"
    watch = f"import sys, timediff.cli, timediff; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", watch], capture_output=True, text=True, check=True).stdout == "[]\n"
    shown = subprocess.run([sys.executable, "-m", "timediff", "--help"], capture_output=True, text=True, check=True)
    assert all(command in shown.stdout for command in ("demo", "simulate", "describe", "split", "fit", "sample"))


def test_the_way_from_simulation_to_synthetic_stays(run: Run, tmp_path: Path) -> None:
    icu, train, test, fitted, made = (tmp_path / name for name in ("icu", "train", "test", "run", "made"))
    assert run("simulate", icu, "--stays", 120, "--steps", 6, "--seed", 3)[0] == 0
    code, out, _ = run("describe", icu)
    assert code == 0
    assert "120 stays of 6 steps of 1h" in out
    assert "heart_rate" in out
    code, out, _ = run("split", icu, train, test, "--test", 0.25, "--seed", 0, "--stratify", "died")
    assert code == 0
    assert len(read_cohort(train)) + len(read_cohort(test)) == 120
    code, out, err = run("fit", train, fitted, *SMALL)
    assert (code, err) == (0, "")
    code, out, err = run("sample", fitted, made, "-n", 25, "--seed", 1)
    assert (code, err) == (0, "")
    assert len(read_cohort(made)) == 25


def test_python_gives_what_the_command_gives(run: Run, home: Path, tmp_path: Path) -> None:
    import timediff as td

    assert run("sample", home / "run", tmp_path / "made", "-n", 12, "--seed", 4)[0] == 0
    assert same(read_cohort(tmp_path / "made"), td.load(home / "run").sample(12, seed=4))
    assert run("split", home / "icu", tmp_path / "a", tmp_path / "b", "--seed", 7)[0] == 0
    assert same(read_cohort(tmp_path / "b"), td.read_cohort(home / "icu").split(seed=7)[1])


def test_dry_run_shows_the_settings_and_writes_nothing(run: Run, home: Path, tmp_path: Path) -> None:
    import tomllib

    code, out, _ = run("fit", home / "icu", tmp_path / "run", *SMALL, "--dry-run")
    assert code == 0
    assert tomllib.loads(out)["model"]["hidden"] == 8
    assert "# parameters:" in out
    assert list(tmp_path.iterdir()) == []


def test_raw_tables(run: Run, tmp_path: Path) -> None:
    assert run("simulate", tmp_path / "m3", "--raw", "mimic3", "--stays", 5)[0] == 0
    assert (tmp_path / "m3" / "raw" / "CHARTEVENTS.csv.gz").is_file()
    assert len(read_cohort(tmp_path / "m3" / "cohort")) == 5


def _with(cohort: Cohort, name: str, values: np.ndarray) -> Cohort:
    return replace(cohort, series={**cohort.series, name: values})


def _tables(folder: Path, series: Callable[[pa.Table], pa.Table] | None = None, static: Callable | None = None) -> None:
    for name, change in (("series", series), ("static", static)):
        if change:
            path = folder / f"{name}.parquet"
            pq.write_table(change(pq.read_table(path)), path)


def _set(name: str, row: int, value: object) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        values = table[name].to_pylist()
        values[row] = value
        return table.set_column(table.column_names.index(name), name, pa.array(values, table[name].type))

    return change


DATA = {
    "empty": (lambda f: _tables(f, lambda t: t[:0], lambda t: t[:0]), "the cohort is empty"),
    "infinite": (lambda f: _tables(f, _set("sbp", 0, float("inf"))), "1 infinite values"),
    "class": (lambda f: _tables(f, None, _set("sex", 0, "X")), "none of its classes"),
    "duplicate": (lambda f: _tables(f, lambda t: pa.concat_tables([t, t[:1]])), "repeat the same stay_id and step"),
    "steps": (lambda f: _tables(f, _set("step", 0, 12)), "step outside 0 to 11"),
    "label": (lambda f: _tables(f, None, _set("died", 0, None)), "label is missing for 1"),
    "label column": (lambda f: _tables(f, None, lambda t: t.drop_columns(["died"])), "no column 'died'"),
    "null column": (
        lambda f: _tables(f, lambda t: t.set_column(3, "sbp", pa.nulls(len(t), pa.float64()))),
        "'sbp' has no value at all",
    ),
    "constant": (
        lambda f: _tables(f, lambda t: t.set_column(3, "sbp", pa.array([120.0] * len(t)))), "'sbp' is always 120",
    ),
    "no schema": (lambda f: (f / "schema.toml").unlink(), "is not a cohort"),
    "few": (
        lambda f: _tables(f, lambda t: t.filter(pa.compute.less_equal(t["stay_id"], 9)), lambda t: t[:9]),
        "9 stays, fewer than one batch of 16",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", DATA)
def test_bad_data_is_one_sentence_and_nothing_written(mistake: str, run: Run, home: Path, tmp_path: Path) -> None:
    shutil.copytree(home / "icu", tmp_path / "icu")
    change, said = DATA[mistake]
    change(tmp_path / "icu")
    code, _, err = run("fit", tmp_path / "icu", tmp_path / "run", *SMALL)
    assert code == 2
    assert said in err
    assert "Traceback" not in err
    assert err.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["icu"]


@pytest.mark.parametrize("mistake", ["null column", "constant"])
def test_a_column_with_nothing_to_learn_is_survived_with_a_flag(
    mistake: str, run: Run, home: Path, tmp_path: Path
) -> None:
    shutil.copytree(home / "icu", tmp_path / "icu")
    DATA[mistake][0](tmp_path / "icu")
    assert run("fit", tmp_path / "icu", tmp_path / "run", *SMALL, "--allow-constant")[0] == 0
    assert run("sample", tmp_path / "run", tmp_path / "made", "-n", 10)[0] == 0
    made = read_cohort(tmp_path / "made").series["sbp"]
    expected = np.nan if mistake == "null column" else 120.0
    assert np.array_equal(made, np.full_like(made, expected), equal_nan=True)


COMMANDS = {
    "renamed setting": (
        ["fit", "icu", "new", "--set", "model.early=true", "--set", "diffusion.cells=joint"],
        "model.early is model.noise_level_input now",
    ),
    "unknown setting": (["fit", "icu", "new", *SMALL, "--set", "training.stepz=3"], "did you mean training.steps?"),
    "wrong type": (["fit", "icu", "new", *SMALL, "--set", "training.steps=soon"], "expected a whole number"),
    "no value": (["fit", "icu", "new", *SMALL, "--set", "training.steps"], "expected key=value"),
    "unknown preset": (["fit", "icu", "new", "--preset", "papper"], "there is no preset 'papper'"),
    "unknown generator": (["fit", "icu", "new", *SMALL, "--generator", "gan"], "there is no generator 'gan'"),
    "no config": (["fit", "icu", "new", "--config", "none.toml"], "could not be read"),
    "run exists": (["fit", "icu", "run", *SMALL], "exists already"),
    "out exists": (["sample", "run", "icu", "-n", "5"], "exists already"),
    "not a run": (["sample", "icu", "new", "-n", "5"], "is not a run folder"),
    "not a cohort": (["fit", "run", "new", *SMALL], "is not a cohort"),
    "no cohort": (["describe", "nowhere"], "is not a folder"),
    "too many calls": (["sample", "run", "new", "--steps", "11"], "at most diffusion.steps"),
    "unknown sampler": (["sample", "run", "new", "--sampler", "euler"], "has ancestral, ddim"),
    "long horizon": (["fit", "icu", "new", *SMALL, "--horizon", "99"], "expected 1 to 12"),
    "bad fraction": (["split", "icu", "new", "new2", "--test", "3"], "between 0 and 1"),
    "bad stratum": (["split", "icu", "new", "new2", "--stratify", "dead"], "'dead'"),
    "same folder": (["split", "icu", "new", "new"], "the same folder"),
    "unknown database": (["simulate", "new", "--raw", "mimic9", "--stays", "5"], "mimic9"),
    "resume elsewhere": (["fit", "icu", "run", *SMALL, "--resume", "--seed", "8"], "another seed"),
}


@pytest.mark.parametrize("mistake", COMMANDS)
def test_a_mistaken_command_is_one_sentence(
    mistake: str, run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, said = COMMANDS[mistake]
    before = sorted(home.rglob("*"))
    monkeypatch.chdir(home)
    code, _, err = run(*arguments)
    assert code == 2
    assert said in err
    assert "Traceback" not in err
    assert sorted(home.rglob("*")) == before


def test_a_full_disk_is_one_sentence(run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    code, _, err = run("split", home / "icu", tmp_path / "a", tmp_path / "b")
    assert code == 2
    assert "the disk is full" in err
    assert list(tmp_path.iterdir()) == []


def test_a_split_writes_both_or_neither(run: Run, home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, _, err = run("split", home / "icu", tmp_path / "train", tmp_path / "file" / "test")
    assert code == 2
    assert "not a folder" in err
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_names_and_units_are_no_markup(run: Run, icu: Cohort, tmp_path: Path) -> None:
    first, *others = icu.schema.features
    replace(icu, schema=replace(icu.schema, features=(replace(first, unit="{beats}/[/min]"), *others))).write(
        tmp_path / "icu"
    )
    code, out, err = run("describe", tmp_path / "icu")
    assert (code, err) == (0, "")
    assert "{beats}/[/min]" in out


def test_too_little_memory_is_one_sentence(
    run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("timediff.data.cohort.read_cohort", full)
    code, _, err = run("fit", home / "icu", tmp_path / "run", *SMALL)
    assert code == 2
    assert "not enough memory" in err
    assert list(tmp_path.iterdir()) == []


def test_settings_are_checked_together_whatever_their_order(run: Run, home: Path, tmp_path: Path) -> None:
    few = ["--set", "diffusion.steps=10", "--set", "sampling.steps=5"]
    for given in (few, few[2:] + few[:2]):
        assert run("fit", home / "icu", tmp_path / "run", "--preset", "paper", *given, "--dry-run")[0] == 0


def test_a_setting_of_another_process_is_answered_with_the_process(run: Run, home: Path, tmp_path: Path) -> None:
    code, _, err = run("fit", home / "icu", tmp_path / "run", "--set", "diffusion.steps=10", "--dry-run")
    assert code == 2
    assert "no setting diffusion.steps where diffusion.process is cascade" in err


def test_ragged_stays_need_a_horizon(run: Run, icu: Cohort, tmp_path: Path) -> None:
    length = np.where(np.arange(len(icu)) % 2, 12, 8)
    inside = np.arange(12) < length[:, None]
    ragged = replace(icu, series={k: np.where(inside, v, np.nan) for k, v in icu.series.items()}, length=length)
    ragged.write(tmp_path / "icu")
    code, _, err = run("fit", tmp_path / "icu", tmp_path / "run", *SMALL)
    assert code == 2
    assert "--horizon 8" in err
    assert run("fit", tmp_path / "icu", tmp_path / "run", *SMALL, "--horizon", 8)[0] == 0


def test_ctrl_c_saves_and_says_how_to_go_on(home: Path, tmp_path: Path) -> None:
    many = ["--set", "training.steps=100000", "--set", "training.log_every=5"]
    command = [sys.executable, "-m", "timediff", "fit", home / "icu", tmp_path / "run", *SMALL, *many]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "run" / "log.jsonl").exists() or not (tmp_path / "run" / "log.jsonl").stat().st_size:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped at update" in err
    assert "--resume" in err
    assert "Traceback" not in err
    assert len(list((tmp_path / "run" / "checkpoints").glob("step-*"))) == 1


def test_resuming_needs_no_word_about_settings_or_seed(run: Run, home: Path, tmp_path: Path) -> None:
    assert run("fit", home / "icu", tmp_path / "run", *SMALL, "--seed", 9)[0] == 0
    before = (tmp_path / "run" / "weights.safetensors").read_bytes()
    code, out, _ = run("fit", home / "icu", tmp_path / "run", "--resume")
    assert code == 0
    assert "4 updates" in out
    assert (tmp_path / "run" / "weights.safetensors").read_bytes() == before


def test_the_demo_replaces_only_its_own_folder(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from timediff.cli import demo

    (tmp_path / "mine").mkdir()
    code, _, err = run("demo", "--out", tmp_path / "mine")
    assert code == 2
    assert "not a demo's folder" in err
    small = {"training.steps": 4, "training.batch": 16, "model.hidden": 8, "training.warmup": 0}
    monkeypatch.setattr(demo, "STAYS", 240)
    monkeypatch.setattr(demo, "SKIPPED", (*demo.SKIPPED, "tstr", "discriminative"))
    monkeypatch.setattr(demo, "SETTINGS", small)
    for _ in range(2):
        code, out, _ = run("demo", "--out", tmp_path / "demo")
        assert code == 0
        assert "report.html" in out
        assert "Whom could it expose?" in out
    assert (tmp_path / "demo" / "results" / "report.html").stat().st_size > 100_000


def test_a_synthetic_cohort_is_described_as_one(run: Run, home: Path, tmp_path: Path) -> None:
    assert run("sample", home / "run", tmp_path / "made", "-n", 12, "--seed", 4)[0] == 0
    first = run("describe", tmp_path / "made")[1].splitlines()[0]
    assert first.startswith("synthetic: by timediff, 12 stays sampled with seed 4, run ")
    assert not run("describe", home / "icu")[1].startswith("synthetic")
    assert run("split", tmp_path / "made", tmp_path / "a", tmp_path / "b")[0] == 0
    assert run("describe", tmp_path / "a")[1].startswith("synthetic (derived): by timediff")
    code, _, err = run("sample", tmp_path / "made", tmp_path / "again")
    assert (code, "not a run folder but a synthetic cohort" in err) == (2, True)


def test_a_cohort_is_exported(run: Run, home: Path, tmp_path: Path) -> None:
    code, _, err = run("export", home / "icu", tmp_path / "csv", "--to", "csv")
    assert (code, err) == (0, "")
    assert (tmp_path / "csv" / "series.csv").is_file()
    code, _, err = run("export", home / "icu", tmp_path / "csv", "--to", "csv")
    assert (code, "exists already" in err) == (2, True)
    code, _, err = run("export", home / "icu", tmp_path / "out", "--to", "sas")
    assert (code, "there is no export 'sas'" in err) == (2, True)
