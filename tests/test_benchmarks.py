"""Benchmarks are run seldom; that they still fit the code is seen every time."""

import ast
import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import timediff as td

FOLDER = Path(__file__).parent.parent / "benchmarks"


OURS = ("data", "classifier", "run_timediff")  # of benchmarks/peers; the other scripts need other tools


def says_how_it_is_run(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> bool:
    monkeypatch.syspath_prepend(str(path.parent))
    monkeypatch.setattr(sys, "argv", [path.name, "--help"])
    with pytest.raises(SystemExit, match="0"):
        importlib.import_module(path.stem).main()
    return f"python {path.relative_to(FOLDER.parent)}" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_every_benchmark_can_be_loaded_and_says_how_it_is_run(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says_how_it_is_run(FOLDER / f"{name}.py", monkeypatch, capsys)


@pytest.mark.parametrize("name", OURS)
def test_our_scripts_of_the_comparison_can_be_loaded(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says_how_it_is_run(FOLDER / "peers" / f"{name}.py", monkeypatch, capsys)


@pytest.mark.parametrize("path", sorted((FOLDER / "peers").glob("run_*.py")), ids=lambda path: path.stem)
def test_a_script_for_another_tool_says_how_it_is_installed_and_run(path: Path) -> None:
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    assert "pip install" in text
    assert f"python benchmarks/peers/{path.name}" in text


def test_the_stays_of_the_comparison_are_two_thousand_different_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER / "peers"))
    chosen = importlib.import_module("data").chosen
    assert len(set(chosen("train"))) == len(set(chosen("test"))) == 1000
    assert not set(chosen("train")) & set(chosen("test"))


def test_stays_of_other_lengths_are_put_on_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER / "peers"))
    common = importlib.import_module("common")
    train = common.Stays(pd.DataFrame({"RecordID": 1, "hour": range(48), "HR": 70.0, "Age": 50.0, "died": 0}))
    assert (train.vitals, train.static, train.hours, len(train)) == (["HR"], ["Age", "died"], 48, 1)
    found, right = train.on_the_grid(pd.DataFrame({"RecordID": [1] * 50 + [2], "HR": 1.0}))
    assert found.groupby("RecordID").size().tolist() == [48, 48]
    assert found.HR.notna().groupby(found.RecordID).sum().tolist() == [48, 1]
    assert right == 0


def test_the_paper_preset_is_timed_at_the_authors_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    gpu = importlib.import_module("gpu")
    found = gpu.paper("mimic3", seconds=0.01, batches=(2,))
    assert found["training"]["stays_an_update"] == 2 * 32
    assert found["sampling"]["batch 2"]["calls"] == 1000
    ratios = gpu.ratios(2 * found["training"]["stays_per_second"], 1.0, found)
    assert ratios["training"] == pytest.approx(2)
    assert ratios["sampling, batch 2"] > 0


def test_two_versions_evaluate_the_same_stays_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    evaluation = importlib.import_module("evaluation")
    before, now, asked = Path("before"), evaluation.ROOT, []

    def printed(tree: Path, code: str, *paths: str) -> str:
        asked.append((tree, [len(td.read_cohort(path)) for path in paths], paths))
        assert not td.read_cohort(paths[0]).schema.relations  # which version 0.1.0 does not know
        work = (10 if tree == before else 12) + len(asked)  # 11 then 14; 16 then 13
        return json.dumps({"a": {"clock": 50, "processor": work - 1}, "b": {"clock": 7, "processor": 1}})

    monkeypatch.setattr(evaluation, "printed", printed)
    found = evaluation.compared(before, stays=60, rounds=2)
    assert [tree for tree, *_ in asked] == [before, now, now, before]
    assert len({paths for *_, paths in asked}) == 1
    assert asked[0][1] == [60, 15, 60]
    assert found["earlier"]["in_all"] == {"clock": 57, "processor": 12.5}
    assert found["now"]["metrics"]["a"] == {"clock": 50, "processor": 13.5}
    assert found["ratio"] == pytest.approx((14 / 11 + 15 / 14) / 2)


@pytest.mark.parametrize(("shape", "batches"), [("mimic3", ["batch 100", "batch 2,000"]), ("eicu", ["batch 100"])])
def test_the_cited_ratios_to_the_authors_code_are_those_of_the_cited_rates(
    shape: str, batches: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    gpu = importlib.import_module("gpu")
    cited = json.loads(gpu.CITED.read_text())["shapes"][shape]
    found = gpu.ratios(cited["training"]["fast"], cited["sampling"]["fast"], gpu.authors(shape))
    assert found["training"] == pytest.approx(cited["training"]["ratio"], rel=0.01)
    for batch in batches:
        assert found[f"sampling, {batch}"] == pytest.approx(cited["sampling"][f"ratio, {batch}"], rel=0.01)


def test_targets_are_attacked_one_after_the_other_and_each_attack_is_a_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    whole = td.simulate(300, steps=4, seed=0)
    for name, start, end in (("train", 0, 120), ("held-out", 120, 300)):
        whole.take(np.arange(start, end)).write(tmp_path / name)
    out = tmp_path / "out.json"
    small = ["model.hidden=4", "training.steps=4", "training.batch=16"]
    command = ["audit.py", str(tmp_path / "train"), str(tmp_path / "held-out"), "--stays", "100", "--models", "4"]
    command += [word for one in small for word in ("--set", one)] + ["--variant", "short", "--out", str(out)]
    command += [
        "--jobs",
        "2",
        "--variant",
        "longer; training.steps=8",
        "--synthetic",
        "100",
        "--attack",
        "lira",
        "--attack",
        "domias",
    ]
    monkeypatch.setattr(sys, "argv", command)
    importlib.import_module("audit").main()
    found = json.loads(out.read_text())
    assert found["command"].startswith("python benchmarks/audit.py train held-out --stays 100")
    assert (found["models"], found["jobs"]) == (4, 2)
    assert {name: row["updates"] for name, row in found["rows"].items()} == {"short": 4, "longer": 8}
    said = capsys.readouterr().out
    for name, row in found["rows"].items():
        assert (row["training_stays"], row["shadow_models"]) == (100, 4)
        assert 0 < row["shadow_seconds"] < row["seconds"]
        assert row["lira"]["auc_low"] <= row["lira"]["auc"] <= row["lira"]["auc_high"]
        assert "too few for a rate of 0.1%" in row["lira"]["tpr_at_0.001_note"]
        assert {"auc", "tpr_at_0.1", "epsilon"} <= set(row["domias"])
        assert f"{name}, lira: auc" in said
