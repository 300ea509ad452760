"""A package of one's own adds a generator, network, sampler, metric, attack and source, and touches nothing of ours."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import timediff as td
from timediff.evaluation.audit_results import Audit

PACKAGE = Path(__file__).parent / "example_package"
PAGE = Path(__file__).parents[1] / "docs" / "extending.md"
FILES = sorted(path for path in (PACKAGE / "timediff_example").glob("*.py") if path.name != "__init__.py")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pip would write of the package: its entry points, beside its code."""
    folder = tmp_path_factory.mktemp("site")
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    about = folder / "timediff_example-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {place}" for name, place in points.items()), ""]
    (about / "entry_points.txt").write_text("\n".join(lines))
    (folder / "timediff_example").symlink_to(PACKAGE / "timediff_example")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Training and test stays."""
    path = tmp_path_factory.mktemp("work")
    train, test = td.simulate(160, steps=6, seed=0).split(0.4, seed=0)
    train.write(path / "train")
    test.write(path / "test")
    return path


@pytest.fixture
def timediff(installed: Path, folder: Path):
    def run(*arguments: object, code: int = 0) -> str:
        environment = {**os.environ, "PYTHONPATH": f"{installed}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
        command = [sys.executable, "-m", "timediff", *map(str, arguments)]
        ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == code, ended.stderr
        return ended.stdout

    return run


def test_a_generator_is_fitted_sampled_and_its_run_folder_is_loaded(timediff, folder: Path) -> None:
    timediff("fit", "train", "boot", "--generator", "example-bootstrap", "--set", "stays=30", "--seed", 4)
    assert "stays = 30" in (folder / "boot" / "settings.toml").read_text()
    timediff("sample", "boot", "copies", "-n", 600, "--seed", 1)
    copies = td.read_cohort(folder / "copies")
    assert (len(copies), copies.schema.steps) == (600, 6)
    timediff("sample", "boot", "again", "-n", 40, "--seed", 1)
    few = td.read_cohort(folder / "again")
    assert few.tables()[0].equals(copies.take(range(40)).tables()[0])


def test_a_generator_is_compared_by_a_metric_of_its_own_package(timediff, folder: Path) -> None:
    given = ["--generator", "boot=example-bootstrap", "--set", "boot:stays=30", "--seeds", 1, "-n", 60]
    timediff("compare", "train", "test", "compared", *given, "--only", "example-mean-gap")
    assert "boot,example-mean-gap,gap," in (folder / "compared" / "scores.csv").read_text()
    assert "stays = 30" in (folder / "compared" / "runs" / "boot" / "seed-0" / "settings.toml").read_text()


def test_a_network_is_trained_and_a_sampler_samples_from_it(timediff, folder: Path) -> None:
    settings = ["training.steps=3", "model.network=example-conv", "model.channels=8"]
    given = [part for setting in settings for part in ("--set", setting)]
    timediff("fit", "train", "conv", *given)
    assert 'network = "example-conv"\nchannels = 8' in (folder / "conv" / "settings.toml").read_text()
    timediff("sample", "conv", "conved", "-n", 10, "--sampler", "example-midpoint", "--steps", 9)
    assert len(td.read_cohort(folder / "conved")) == 10


def test_a_metric_is_in_the_results_the_terminal_and_the_report(timediff, folder: Path) -> None:
    shown = timediff(
        "evaluate", "--train", "train", "--test", "test", "--synthetic", "train", "--out", "results",
        "--only", "example-mean-gap",
    )  # fmt: skip
    (generator,) = json.loads((folder / "results" / "results.json").read_text())["generators"]
    (score,) = [score for score in generator["scores"] if score["metric"] == "example-mean-gap"]
    assert 0 < score["value"] < 1
    page = (folder / "results" / "report.html").read_text()
    assert "largest gap between means" in page
    assert "example-mean-gap" in shown or "largest gap between means" in shown


def test_an_attack_finds_what_a_cohort_gives_away(timediff, folder: Path) -> None:
    """Copies of training stays; exit code 3 says that an attack succeeded."""
    train, held_out = td.simulate(300, steps=6, seed=1).split(0.5, seed=0)
    train.write(folder / "patients")
    held_out.write(folder / "held-out")
    timediff("fit", "patients", "copier", "--generator", "example-bootstrap")
    timediff("sample", "copier", "of-patients", "-n", 300)
    given = ["patients", "held-out", "audited", "--synthetic", "of-patients", "--attack", "example-equal-numbers"]
    timediff("audit", *given, code=3)
    found = Audit.read(folder / "audited")
    (area,) = [score for score in found.scores if score.what == "auc" and score.group is None]
    assert area.classifier == "example-equal-numbers"
    assert area.value > 0.9
    assert {one.attack for one in found.power} == {"example-equal-numbers"}  # leaks are planted for it too
    page = (folder / "audited" / "audit.html").read_text()
    assert "if a synthetic stay has many of its numbers, to the last digit." in page


def test_a_source_is_extracted(timediff, folder: Path) -> None:
    (folder / "rows.csv").write_text("stay,step,value\n3,0,80\n3,1,81\n7,2,65\n")
    timediff("extract", "example-csv", "rows.csv", "cohort", "--set", "steps=3")
    cohort = td.read_cohort(folder / "cohort")
    assert cohort.stay_id.tolist() == [3, 7]
    assert cohort.series["pulse"][1, 2] == 65


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_page_shows_the_same_six_files(path: Path) -> None:
    assert path.read_text().strip() in PAGE.read_text()


def test_without_the_package_its_names_are_unknown() -> None:
    with pytest.raises(td.TimeDiffError, match="there is no generator 'example-bootstrap'"):
        td.generator("example-bootstrap")
