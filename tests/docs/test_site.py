"""The pages as a site: built with warnings as errors, complete, and readable without a network."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import timediff as td

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")
    return folder


def test_every_page_of_the_menu_is_there(site: Path) -> None:
    menu = re.findall(r": (\S+)\.md$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert len(menu) > 15
    assert [name for name in menu if not (site / f"{name.replace('README', 'index')}.html").is_file()] == []


def test_the_reference_has_every_public_name(site: Path) -> None:
    page = (site / "reference" / "python.html").read_text()
    headings = set(re.findall(r'id="timediff\.[\w.]*?(\w+)"', page))
    described = headings | {"Generator", "Split", "Settings"}  # described by what is made of them
    assert [name for name in td.__all__ if name not in described] == []


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?://[^"]+)"', (site / "index.html").read_text())
    assert loaded == []


def test_links_out_of_the_pages_are_paths(site: Path) -> None:
    page = (site / "index.html").read_text()
    assert "<code>ARCHITECTURE.md</code>" in page
    assert 'href="../' not in page


@pytest.mark.parametrize("wrong", ["[a](../nowhere.md)", "[a](nowhere.md)", "[a](cohort.md#nowhere)"])
def test_a_wrong_link_ends_the_build(wrong: str, tmp_path: Path) -> None:
    configured = (ROOT / "mkdocs.yml").read_text().partition("nav:")[0]
    settings = re.sub(r"plugins:.*?(?=^hooks)", "plugins: []\n", configured, flags=re.DOTALL | re.MULTILINE)
    settings = settings.replace("docs/hooks", str(ROOT / "docs" / "hooks"))
    assert yaml.safe_load(settings.replace("!", ""))["plugins"] == []
    (tmp_path / "mkdocs.yml").write_text(settings)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "cohort.md").write_text("# Cohort\n")
    (tmp_path / "docs" / "index.md").write_text(f"# Pages\n\n{wrong}\n")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode != 0
