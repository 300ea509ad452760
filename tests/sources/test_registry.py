"""A source of another package: registered by decorator or entry point, it is one of `timediff extract`."""

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from timediff import cli
from timediff.data.cohort import Cohort, read_cohort
from timediff.data.schema import Feature, Schema
from timediff.errors import TimeDiffError
from timediff.runtime import registry
from timediff.runtime.progress import Progress, silent
from timediff.sources.base import Source
from timediff.sources.extraction import Extraction
from timediff.sources.registry import SOURCES, resolve, source

Command = Callable[..., int]


@dataclass(frozen=True)
class RowsSettings:
    column: str = "pulse"
    steps: int = 2


class Rows(Source[RowsSettings]):
    """A CSV file with a row a step: stay, step, and columns of values."""

    settings = RowsSettings

    def extract(self, source: str, settings: RowsSettings, progress: Progress = silent) -> Extraction:
        with Path(source).open() as file:
            rows = list(csv.DictReader(file))
        stay_id = np.unique([int(row["stay"]) for row in rows])
        grid = np.full((len(stay_id), settings.steps), np.nan)
        for row in rows:
            grid[np.searchsorted(stay_id, int(row["stay"])), int(row["step"])] = float(row[settings.column])
        schema = Schema((Feature(settings.column, "continuous"),), settings.steps)
        return Extraction(Cohort(schema, stay_id, {settings.column: grid}, {}), len(stay_id), {})


class Commented(Rows):
    defaults = 'column = "pulse"  # which one is read\n'


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test registers is gone after it."""
    with monkeypatch.context() as patch:
        patch.setattr(SOURCES, "_parts", dict(SOURCES._parts))
        yield
    assert "rows" not in SOURCES


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text("stay,step,pulse,lactate\n7,0,80,1.5\n7,1,82,1.25\n9,1,64,2\n")
    return path


@pytest.fixture
def timediff(monkeypatch: pytest.MonkeyPatch) -> Command:
    def run(*arguments: object) -> int:
        monkeypatch.setattr("sys.argv", ["timediff", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return int(end.value.code or 0)

    return run


def test_a_registered_source_is_extracted(timediff: Command, table: Path, tmp_path: Path) -> None:
    SOURCES.register("rows")(Rows)
    assert timediff("extract", "rows", table, tmp_path / "out") == 0
    cohort = read_cohort(tmp_path / "out")
    assert cohort.stay_id.tolist() == [7, 9]
    assert np.array_equal(cohort.series["pulse"], [[80, 82], [np.nan, 64]], equal_nan=True)
    assert (tmp_path / "out" / "extraction.toml").read_text() == 'column = "pulse"\nsteps = 2\n'


def test_an_entry_point_is_a_source(
    timediff: Command, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        entry = EntryPoint("rows", f"{__name__}:Rows", "timediff.sources")
        patch.setattr(registry, "_entry_points", lambda group: {"rows": entry} if group == entry.group else {})
        assert "rows" in SOURCES.names()
        assert timediff("extract", "rows", table, tmp_path / "out") == 0
        SOURCES._parts.pop("rows")
    assert len(read_cohort(tmp_path / "out")) == 2


def test_its_settings_can_be_printed_edited_and_set(
    timediff: Command, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    SOURCES.register("rows")(Rows)
    assert timediff("extract", "rows", "--print-config") == 0
    printed = capsys.readouterr().out
    assert printed == 'column = "pulse"\nsteps = 2\n'
    (tmp_path / "mine.toml").write_text(printed.replace("pulse", "lactate"))
    options = ["--config", tmp_path / "mine.toml", "--set", "steps=3"]
    assert timediff("extract", "rows", table, tmp_path / "out", *options) == 0
    cohort = read_cohort(tmp_path / "out")
    assert np.array_equal(cohort.series["lactate"], [[1.5, 1.25, np.nan], [np.nan, 2, np.nan]], equal_nan=True)


def test_comments_of_its_defaults_are_shown(timediff: Command, capsys: pytest.CaptureFixture[str]) -> None:
    SOURCES.register("rows")(Commented)
    assert timediff("extract", "rows", "--print-config") == 0
    assert capsys.readouterr().out == Commented.defaults
    assert resolve("rows") == RowsSettings()


def test_a_mistake_in_its_settings_is_named(timediff: Command, table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    SOURCES.register("rows")(Rows)
    assert timediff("extract", "rows", table, table.parent / "out", "--set", "colum=x") == 2
    assert "there is no setting colum; did you mean column?" in capsys.readouterr().err


def test_an_unknown_name_is_answered_with_the_nearest(timediff: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert timediff("extract", "mimc3", "--print-config") == 2
    assert "there is no source 'mimc3'; did you mean mimic3?" in capsys.readouterr().err


def test_our_own_names_cannot_be_taken() -> None:
    with pytest.raises(TimeDiffError, match="there is a source 'eicu' already"):
        SOURCES.add("eicu", Rows)


def test_without_ibis_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name="ibis")

    monkeypatch.setattr(registry, "import_module", missing)
    monkeypatch.delitem(SOURCES._parts, "meds", raising=False)
    with pytest.raises(TimeDiffError, match=r"pip install 'timediff-icu\[extract\]'"):
        source("meds")
