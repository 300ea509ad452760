"""Manifests: what was written is known again, and every difference is named."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timediff.errors import TimeDiffError
from timediff.runtime.manifest import NAME, Differences, Manifest, compared, differences, read_manifest, write_manifest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "figures").mkdir()
    for name in ("a.json", "b.toml", "figures/c.json", "page.html"):
        (tmp_path / name).write_text(name)
    write_manifest(tmp_path, "results")
    return tmp_path


def _found(folder: Path) -> Differences:
    manifest = read_manifest(folder)
    assert manifest is not None
    return differences(folder, manifest)


def test_what_was_written_does_not_differ(folder: Path) -> None:
    assert not _found(folder)
    manifest = read_manifest(folder)
    assert manifest is not None
    assert (manifest.kind, list(manifest.files)) == ("results", ["a.json", "b.toml", "figures/c.json"])


def test_changed_missing_and_added_files_are_named(folder: Path) -> None:
    (folder / "a.json").write_text("other")
    (folder / "b.toml").unlink()
    (folder / "figures" / "d.json").write_text("")
    found = _found(folder)
    assert str(found) == "changed: 'a.json'; missing: 'b.toml'; added: 'figures/d.json'"


def test_a_page_or_a_note_may_come_and_go(folder: Path) -> None:
    (folder / "page.html").unlink()
    (folder / "notes.txt").write_text("mine")
    (folder / ".a.json.partial-3").write_text("half")
    assert not _found(folder)


def test_a_folder_with_a_manifest_of_its_own_answers_for_itself(folder: Path) -> None:
    (folder / "inner").mkdir()
    (folder / "inner" / "d.json").write_text("")
    assert _found(folder).added == ("inner/d.json",)
    write_manifest(folder / "inner", "results")
    assert not _found(folder)


def test_a_folder_without_one_has_none(tmp_path: Path) -> None:
    assert read_manifest(tmp_path) is None


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", "{}", "[" * 100_000, '{"format": ' + "9" * 5000 + "}",
     '{"format": 2, "kind": "x", "files": {}}',
     '{"format": 1, "kind": "x", "files": []}', '{"format": 1, "kind": "x", "files": {"a": 3}}',
     '{"format": "1", "kind": "x", "files": {}}'],
)  # fmt: skip
def test_what_is_no_manifest_is_refused_in_a_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(TimeDiffError, match=r"manifest\.json"):
        read_manifest(tmp_path)


def test_no_name_leads_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "outside.json").write_text("x")
    (tmp_path / "in").mkdir()
    names = ["../outside.json", str(tmp_path / "outside.json")]
    assert compared(tmp_path / "in", dict.fromkeys(names, "0")).missing == tuple(sorted(names))


@given(st.binary(min_size=1, max_size=40), st.integers(0, 39), st.integers(1, 255))
def test_any_changed_byte_is_seen(tmp_path_factory: pytest.TempPathFactory, data: bytes, at: int, flip: int) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    (folder / "x.parquet").write_bytes(data)
    write_manifest(folder, "cohort")
    changed = bytearray(data)
    changed[at % len(data)] ^= flip
    (folder / "x.parquet").write_bytes(changed)
    assert _found(folder).changed == ("x.parquet",)


def test_long_lists_are_cut() -> None:
    assert str(Differences(added=tuple(f"{i}.json" for i in range(3000)))).endswith("and 2,996 more")


def test_it_is_plain_json(folder: Path) -> None:
    table = json.loads((folder / NAME).read_text())
    assert Manifest(**table) == read_manifest(folder)
