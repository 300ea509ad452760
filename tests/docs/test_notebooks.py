"""Notebooks of the docs are executed from their first cell to their last, on tiny settings, and hold no output."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))
TINY = "stays, updates = 240, 3"


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: path.stem)
def executed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    notebook = nbformat.read(request.param, as_version=4)
    given = [n for n, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", [])]
    assert len(given) == 1
    notebook.cells.insert(given[0] + 1, nbformat.v4.new_code_cell(TINY))
    folder = {"metadata": {"path": str(tmp_path_factory.mktemp("notebook"))}}
    return NotebookClient(notebook, timeout=120, kernel_name="python3", resources=folder).execute()


def outputs(notebook: Any, kind: str) -> list[str]:
    """What the cells show, of one kind."""
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return ["".join(output.data[kind]) for output in shown if kind in output.get("data", {})]


def test_it_runs_to_its_end_with_a_bar_and_readable_objects(executed: Any) -> None:
    pages = "".join(outputs(executed, "text/html"))
    assert '<progress value="3" max="3">' in pages  # of fit: it stands where it was drawn first
    assert "<b>Results of synthetic: strict protocol" in pages
    assert not [cell for cell in executed.cells if any(one.output_type == "error" for one in cell.get("outputs", []))]


def test_a_figure_of_losses_is_shown() -> None:
    assert any("plot_history" in path.read_text() for path in NOTEBOOKS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_committed_without_outputs(path: Path) -> None:
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert len(cells) >= 4
    assert [cell.outputs for cell in cells if cell.outputs or cell.execution_count is not None] == []
