"""Settings of a source are checked as they are made, before any file is opened."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from timediff import cli
from timediff.errors import TimeDiffError
from timediff.sources.mimic4_extended import extended_settings
from timediff.sources.registry import SOURCES, resolve, source

GRIDS = ("mimic3", "mimic4", "eicu", "physionet2012", "physionet2019", "meds", "table")


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("steps", [-1, 0, 10**6 + 1, 2**63, pytest.param(10**5000, id="5,001 digits")])
def test_steps_have_a_range(name: str, steps: int) -> None:
    with pytest.raises(TimeDiffError, match="steps is"):
        resolve(name, changes={"steps": steps})


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("step", ["x", "", "-1h", "1e300d", "nan", "99999d", "1e9999h", "h" * 10_000])
def test_a_step_is_a_duration(name: str, step: str) -> None:
    with pytest.raises(TimeDiffError, match="step is") as caught:
        resolve(name, changes={"step": step})
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("test", [0.0, 1.0, -1.0, 2.0])
def test_a_fraction_is_a_fraction(name: str, test: float) -> None:
    with pytest.raises(TimeDiffError, match=r"split\.test is"):
        resolve(name, changes={"test": test})


@pytest.mark.parametrize("name", [name for name in GRIDS if name != "table"])
def test_a_source_has_variables(name: str) -> None:
    with pytest.raises(TimeDiffError, match="there is no variable"):
        resolve(name, changes={"variable": []})


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("mimic4", {"hours": -1}),
        ("mimic4", {"hours": 1e300}),
        ("mimic3", {"age": -1}),
        ("mimic3", {"variable": [{"name": "a", "items": []}]}),
        ("mimic3", {"variable": [{"name": "a", "items": [{"ids": [2**63]}]}]}),
        ("mimic3", {"variable": [{"name": "a", "items": [{"ids": [1]}]}] * 2}),
        ("eicu", {"start_minutes": 2**62}),
        ("eicu", {"variable": [{"name": "a", "column": "patientunitstayid"}]}),
        ("physionet2012", {"step": "90s"}),
        ("physionet2012", {"variable": [{"name": "a", "parameters": []}]}),
        ("physionet2019", {"step": "30min"}),
        ("physionet2019", {"hours": -1}),
        ("physionet2019", {"variable": [{"name": "ICULOS"}]}),
        ("meds", {"grace": -1}),
        ("meds", {"value": []}),
        ("meds", {"start": []}),
        ("table", {"separator": '"'}),
        ("table", {"separator": "ab"}),
        ("table", {"hours": -1}),
        ("table", {"feature": []}),
        ("stocks", {"window": 0}),
        ("stocks", {"window": 2**63}),
        ("stocks", {"step": "??"}),
        ("stocks", {"file": "../../etc/passwd"}),
    ],
)
def test_what_cannot_be_is_said_when_it_is_given(name: str, changes: dict[str, Any]) -> None:
    with pytest.raises(TimeDiffError):
        resolve(name, changes=changes)


def test_a_variable_may_have_any_name_that_a_feature_may_have(tmp_path: Path) -> None:
    from timediff.sources.raw import write_raw
    from timediff.sources.registry import source

    write_raw("eicu", tmp_path / "eicu", 6, seed=0)
    changes = {"variable": [{"name": "time", "column": "heartrate"}, {"name": 'a"b', "column": "sao2"}]}
    found = source("eicu").extract(str(tmp_path / "eicu" / "raw"), resolve("eicu", changes=changes))
    assert set(found.cohort.series) == {"time", 'a"b'}


@pytest.mark.parametrize("line", ["codes = -1", "antibiotics = 99999999", "codes = " + "9" * 5000])
def test_the_supplement_has_ranges_too(line: str, tmp_path: Path) -> None:
    from timediff.sources.mimic4_extended import DEFAULTS

    key = line.split()[0]
    text = "\n".join(line if row.startswith(f"{key} =") else row for row in DEFAULTS.splitlines())
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(TimeDiffError):
        extended_settings(tmp_path / "x.toml")


@pytest.mark.parametrize("name", SOURCES.names())
def test_a_number_of_thousands_of_digits_in_a_file_is_a_sentence(name: str, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(f"steps = {'9' * 5000}\n")
    with pytest.raises(TimeDiffError) as caught:
        resolve(name, tmp_path / "x.toml")
    assert len(str(caught.value)) < 400


def test_every_column_left_out_is_a_sentence(tmp_path: Path) -> None:
    from timediff.sources.registry import source

    (tmp_path / "stock_data.csv").write_text("Open,Close\n" + "1,2\n" * 40)
    with pytest.raises(TimeDiffError, match="every column is left out"):
        source("stocks").extract(str(tmp_path), resolve("stocks", changes={"leave_out": ["Open", "Close"]}))


@pytest.mark.parametrize(
    "arguments", [("--set", "steps=-1"), ("--set", "step=x"), ("--set", "nonsense=1"), ("--config", "nowhere.toml")]
)
def test_the_command_checks_its_settings_before_it_opens_anything(
    arguments: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("timediff.sources.mimic.connect", opened)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["timediff", "extract", "mimic4", "raw", "out", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    (tmp_path / "out").mkdir()
    monkeypatch.setattr("sys.argv", ["timediff", "extract", "mimic4", "raw", "out"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2


def test_as_published_is_whole_settings_that_are_read_back(tmp_path: Path) -> None:
    for name in ("mimic3", "mimic4", "eicu", "stocks", "energy"):
        published = resolve(name, as_published=True)
        (tmp_path / f"{name}.toml").write_text(source(name).default_toml(as_published=True))
        assert resolve(name, tmp_path / f"{name}.toml") == published
        assert (published == resolve(name)) == (name in ("stocks", "energy"))
        assert resolve(name, changes={"test": 0.5}, as_published=True) == replace(published, test=0.5)


def test_a_source_that_the_paper_has_not_cannot_be_read_as_published(tmp_path: Path) -> None:
    with pytest.raises(TimeDiffError, match="the paper does not use this source"):
        resolve("physionet2012", as_published=True)
    (tmp_path / "mine.toml").write_text(source("mimic3").default_toml())
    with pytest.raises(TimeDiffError, match="give one of them"):
        resolve("mimic3", tmp_path / "mine.toml", as_published=True)


def test_the_command_reads_as_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from timediff.sources.raw import write_raw

    write_raw("eicu", tmp_path / "eicu", 12, seed=0)
    for arguments in (["--print-config"], [str(tmp_path / "eicu" / "raw"), str(tmp_path / "out")]):
        monkeypatch.setattr("sys.argv", ["timediff", "extract", "eicu", *arguments, "--as-published"])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert not end.value.code
    assert "unbroken = true" in capsys.readouterr().out
    assert "unbroken = true" in (tmp_path / "out" / "extraction.toml").read_text()
    report = json.loads((tmp_path / "out" / "extraction.json").read_text())
    assert report["stays_dropped"]["an unbroken row every 5min"] > 0
    assert 0 < report["stays"] < 12
