"""`timediff reproduce`, as it is called."""

import json
import sys
from pathlib import Path

import pytest

import helpers.reproduced as small
from timediff import cli


def called(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["timediff", "reproduce", *map(str, arguments)])
    try:
        cli.main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_a_folder_is_written_by_worker_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small.make_small(monkeypatch)
    data, out = small.write_data(tmp_path / "data"), tmp_path / "out"
    assert called(monkeypatch, out, "--data", data, "--only", "datasets", "--budget", 5) == 0
    assert "open it in a browser" in capsys.readouterr().out
    table = json.loads((out / "results.json").read_text())
    assert {row["dataset"] for row in table["rows"]} == {"Stocks", "PhysioNet 2019"}
    assert str(tmp_path) not in (out / "results.json").read_text()
    (data / "mimic").mkdir()
    for name in ("icustays", "chartevents", "patients", "admissions"):
        (data / "mimic" / f"{name}.csv").write_text("odd\n1\n")
    assert called(monkeypatch, out, "--data", data, "--only", "datasets", "--budget", 5, "--resume") == 1
    assert "rows failed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--data", "nowhere"], "is no folder"),
        (["--only", "scors"], "Did you mean scores?"),
        (["--budget", "0"], "budget is 0"),
        (["--budget", "inf"], "budget is inf"),
    ],
)
def test_a_mistake_is_a_sentence(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, tmp_path / "out", "--data", tmp_path, *arguments) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert said in told
    assert "Traceback" not in told
    assert not (tmp_path / "out").exists()
