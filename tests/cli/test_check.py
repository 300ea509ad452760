"""`timediff check`: what a folder is, and whether it is as it was written."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import timediff as td
from helpers.small_generators import PAPER
from timediff.cli.check import Checked
from timediff.data.cohort import Cohort, read_cohort
from timediff.errors import TimeDiffError
from timediff.evaluation.results import Results
from timediff.generators.run import Run
from timediff.generators.streaming import sample_to
from timediff.generators.timediff.generator import TimeDiff
from timediff.sources.extraction import Extraction
from timediff.sources.simulated import simulate_to

GOLDEN = Path(__file__).parents[1] / "golden" / "results-0.1.0"


@pytest.fixture(scope="module")
def made(mixed: Cohort, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of each folder; only read by tests."""
    home = tmp_path_factory.mktemp("made")
    mixed.write(home / "cohort")
    simulate_to(home / "simulated", 20, steps=3)
    Extraction(mixed, 150, {"too short": 30}).write(home / "extracted", "steps = 6\n")
    model = TimeDiff(settings=PAPER).fit(mixed, seed=0, run=home / "run")
    sample_to(model, home / "synthetic", 30)

    def stop(done: int, total: int, **values: float) -> None:
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample_to(model, home / "part", 1000, progress=stop, batch=500)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Results, "report", lambda self, path: None)
        Results.read(GOLDEN).write(home / "results")
    return home


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    """A copy to be edited."""
    return Path(shutil.copytree(made, tmp_path / "home"))


KINDS = {
    "cohort": "a cohort", "simulated": "a cohort", "extracted": "a cohort", "synthetic": "a cohort", "run": "a run",
    "results": "results",
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_what_was_just_written_is_intact(name: str, made: Path) -> None:
    before = sorted(made.rglob("*"))
    checked = td.check(made / name)
    assert (checked.kind, checked.intact, checked.hashed) == (KINDS[name], True, True)
    assert checked.lines()[0] == f"{made / name}: {KINDS[name]}, as it was written"
    assert sorted(made.rglob("*")) == before


def test_an_unfinished_sampling_says_how_far_it_came(home: Path) -> None:
    checked = td.check(home / ".part.parts")
    assert (checked.kind, checked.intact) == ("an unfinished sampling", True)
    assert "500 of 1,000 stays so far" in checked.notes[0]
    (home / ".part.parts" / "series-000000000000.parquet").write_bytes(b"")
    assert "static-000000000000.parquet is damaged" in td.check(home / ".part.parts").problems[0]


@pytest.mark.parametrize("what", ["file", "nothing", "an empty folder"])
def test_what_is_none_of_these_says_so(what: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    if what != "nothing":
        path.touch() if what == "file" else path.mkdir()
    with pytest.raises(TimeDiffError, match=r"not a folder|none of the folders"):
        td.check(path)


def _rewritten(folder: Path) -> None:
    """As pandas would."""
    table = pq.read_table(folder / "series.parquet").to_pandas()
    table.to_parquet(folder / "series.parquet")


def _bounds(folder: Path) -> None:
    """As a user adds bounds by hand."""
    text = (folder / "schema.toml").read_text()
    (folder / "schema.toml").write_text(text.replace('name = "lactate"', 'name = "lactate"\nbounds = [0.0, 99.0]'))


def _nan_weights(run: Path) -> None:
    content = bytearray((run / "weights.safetensors").read_bytes())
    content[-4:] = np.float32(np.nan).tobytes()
    (run / "weights.safetensors").write_bytes(bytes(content))


EDITS: dict[str, tuple[str, Callable[[Path], Any], str]] = {
    "a rewritten table": ("cohort", _rewritten, "changed: 'series.parquet'"),
    "bounds": ("cohort", _bounds, "changed: 'schema.toml'"),
    "no static table": ("synthetic", lambda f: (f / "static.parquet").unlink(), "missing: 'static.parquet'"),
    "another table": ("cohort", lambda f: (f / "more.csv").write_text("a"), "added: 'more.csv'"),
    "the extraction": ("extracted", lambda f: (f / "extraction.json").write_text("{}"), "changed: 'extraction.json'"),
    "a manifest": ("cohort", lambda f: (f / "manifest.json").write_text("{"), "not valid JSON"),
    "no cohort": ("cohort", lambda f: (f / "series.parquet").write_bytes(b"PAR1"), "not a readable Parquet file"),
    "settings": ("run", lambda f: (f / "settings.toml").write_text(""), "changed: 'settings.toml'"),
    "weights": ("run", _nan_weights, "not finite"),
    "a checkpoint": (
        "run", lambda f: (f / "checkpoints" / "step-000000006" / "ema.safetensors").write_bytes(b""), "step-000000006",
    ),
    "a score": ("results", lambda f: (f / "scores.csv").write_text(""), "changed: 'scores.csv'"),
    "no results": ("results", lambda f: (f / "results.json").write_text("{}"), "changed: 'results.json'"),
    "a figure": ("results", lambda f: next((f / "figures").iterdir()).unlink(), "missing: 'figures/"),
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
def test_what_differs_is_named(edit: str, home: Path) -> None:
    name, change, said = EDITS[edit]
    change(home / name)
    checked = td.check(home / name)
    assert not checked.intact
    assert said in " ".join(checked.problems)
    assert "not intact" in checked.lines()[0]


@pytest.mark.parametrize("change", [_rewritten, _bounds, lambda f: (f / "manifest.json").unlink()])
def test_a_cohort_that_its_owner_has_edited_is_read_as_before(change: Callable[[Path], Any], home: Path) -> None:
    before = read_cohort(home / "cohort")
    change(home / "cohort")
    after = read_cohort(home / "cohort")
    assert np.array_equal(before.series["lactate"], after.series["lactate"], equal_nan=True)


def test_without_hashes_it_says_that_it_cannot_know(home: Path) -> None:
    for name in ("cohort", "results"):
        (home / name / "manifest.json").unlink()
    table = json.loads((home / "run" / "provenance.json").read_text())
    (home / "run" / "provenance.json").write_text(json.dumps({**table, "format": 2}))
    for name in ("cohort", "results", "run"):
        checked = td.check(home / name)
        assert (checked.intact, checked.hashed) == (True, False)
        assert "it cannot be known whether it was edited" in " ".join(checked.lines())


def test_edited_results_are_refused_unless_that_is_allowed(home: Path) -> None:
    (home / "results" / "figures" / "mine.json").write_text("{}")
    with pytest.raises(TimeDiffError, match=r"added: 'figures/mine\.json'.*--allow-edited"):
        Results.read(home / "results")
    (home / "results" / "figures" / "mine.json").unlink()
    text = (home / "results" / "results.json").read_text()
    (home / "results" / "results.json").write_text(text.replace('"value": 0', '"value": 1', 1))
    with pytest.raises(TimeDiffError, match=r"changed: 'results\.json'.*--allow-edited"):
        Results.read(home / "results")
    said: list[str] = []
    Results.read(home / "results", allow_edited=True, say=said.append)
    assert "changed: 'results.json'" in said[0]


def test_a_run_that_has_no_weights_yet_is_intact(home: Path) -> None:
    shutil.rmtree(home / "run" / "checkpoints")
    Run.open(home / "run").note(weights_sha256=None)
    checked = td.check(home / "run")
    assert checked.intact
    assert "no weights yet" in checked.notes[0]


def test_the_command_ends_with_2_where_something_differs(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from timediff import cli

    def code(*words: object) -> object:
        monkeypatch.setattr("sys.argv", ["timediff", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code or 0

    assert code("check", home / "cohort") == 0
    _bounds(home / "cohort")
    assert code("check", home / "cohort") == 2
    assert "changed: 'schema.toml'" in capsys.readouterr().out
    settings = (home / "run" / "settings.toml").read_text()
    (home / "run" / "settings.toml").write_text(f"{settings}# mine\n")
    assert code("sample", home / "run", home / "out", "-n", 3) == 2
    assert "--allow-edited" in capsys.readouterr().err
    assert code("sample", home / "run", home / "out", "-n", 3, "--allow-edited") == 0
    assert "not as it was written" in capsys.readouterr().out
    assert code("fit", home / "cohort", home / "run", "--resume") == 2
    assert "--allow-edited" in capsys.readouterr().err


def test_lines_tell_of_problems_first() -> None:
    checked = Checked(Path("x"), "a run", hashed=True, problems=["a"], notes=["b"])
    assert checked.lines() == ["x: a run, not intact", "  a", "  b"]
