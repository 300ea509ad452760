"""Pages that can be read in any editor, and links that lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_line_is_longer_than_a_screen(page: Path) -> None:
    assert [line for line in page.read_text().splitlines() if len(line) > 120] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    files = [link for link in links if "://" not in link]
    assert [file for file in files if not (page.parent / file).exists()] == []
