"""Every block of code of a tutorial runs, in order, in an empty folder, on tiny settings."""

import sys
from pathlib import Path

import pytest

from helpers.page_blocks import BLOCK, run_page
from timediff.cli import main

DOCS = Path(__file__).parents[2] / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))


@pytest.fixture(autouse=True)
def _small(one_thread: None) -> None:
    """Every network here is small."""


@pytest.mark.filterwarnings("ignore:Mean of empty slice:RuntimeWarning")  # three updates teach nothing
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_code_of_a_tutorial_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def call(arguments: list[str]) -> int:
        monkeypatch.setattr(sys, "argv", ["timediff", *arguments])
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0)
        return 0

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIMEDIFF_PLUGINS", "")
    monkeypatch.setattr(sys, "path", [*sys.path])
    run_page(page, call)


def test_the_pages_have_code() -> None:
    assert {page.stem for page in TUTORIALS} == {"own-table", "mimic4", "comparing", "extending"}
    assert all(len(BLOCK.findall(page.read_text())) >= 2 for page in TUTORIALS)


def test_the_page_on_notebooks_says_what_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "notebooks.md").read_text()
    blocks = [text for language, text in BLOCK.findall(page) if language == "python"]
    names: dict[str, object] = {}
    for text in blocks:
        exec(compile(text, "notebooks.md", "exec"), names)
    assert (tmp_path / "losses.html").exists()
    assert len(names["again"]) == len(names["batch"])  # type: ignore[arg-type]
