"""Who knows whom: the rules of ARCHITECTURE.md, read from the imports."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "timediff"


def imports(path: Path) -> set[str]:
    """Of modules of ours, also those inside of functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return {name.removeprefix("timediff.") for name in found if name.startswith("timediff.")}


def importers(package: str) -> set[str]:
    """The files outside of a package that import something of it."""
    return {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] != package and any(name.split(".")[0] == package for name in imports(path))
    }


@pytest.mark.parametrize(
    ("package", "unknown"),
    [
        ("diffusion", {"networks", "kernels", "training", "generators", "sources", "report", "evaluation"}),
        ("networks", {"kernels", "training", "generators", "sources", "report", "evaluation", "diffusion"}),
        ("training", {"sources", "report", "evaluation", "generators", "kernels", "networks", "diffusion"}),
        ("runtime", {path.name for path in SOURCE.iterdir() if path.is_dir()} - {"runtime"}),
        (
            "data",
            {
                "generators",
                "training",
                "networks",
                "kernels",
                "diffusion",
                "sources",
                "exports",
                "report",
                "evaluation",
            },
        ),
    ],
)
def test_a_package_knows_only_what_it_needs(package: str, unknown: set[str]) -> None:
    known = {
        f"{path.relative_to(SOURCE)} imports {name}"
        for path in (SOURCE / package).rglob("*.py")
        for name in imports(path)
        if name.split(".")[0] in unknown
    }
    assert known == set()


def test_kernels_are_applied_by_what_fits_and_what_samples_and_known_to_no_network_or_generator() -> None:
    assert importers("kernels") == {"generators/fitting.py", "generators/sampling.py"}


def test_the_paper_s_network_is_known_by_name_alone() -> None:
    known = {
        str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if "networks.brnn" in " ".join(imports(path))
    }
    assert {path for path in known if not path.startswith("kernels/")} == {"networks/settings.py"}
