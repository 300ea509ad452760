"""Benchmarks are run seldom; that they still fit the code is seen every time."""

import importlib
import json
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_every_benchmark_can_be_loaded_and_says_how_it_is_run(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--help"])
    with pytest.raises(SystemExit, match="0"):
        importlib.import_module(name).main()
    assert f"python benchmarks/{name}.py" in capsys.readouterr().out


def test_the_paper_preset_is_timed_at_the_authors_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    gpu = importlib.import_module("gpu")
    found = gpu.paper("mimic3", seconds=0.01, batches=(2,))
    assert found["training"]["stays_an_update"] == 2 * 32
    assert found["sampling"]["batch 2"]["calls"] == 1000
    ratios = gpu.ratios(2 * found["training"]["stays_per_second"], 1.0, found)
    assert ratios["training"] == pytest.approx(2)
    assert ratios["sampling, batch 2"] > 0


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
