"""The dossier's folder: the page that is signed and, for machines, model card, datasheet and Croissant metadata."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from timediff import __version__
from timediff.documents.about import About
from timediff.documents.answers import answers, hashes
from timediff.documents.croissant import croissant
from timediff.documents.datasheet import datasheet
from timediff.documents.known import GivenFolders, Known, known
from timediff.documents.model_card import card_markdown, card_table
from timediff.runtime.files import new_folder, refuse_existing
from timediff.runtime.manifest import write_manifest
from timediff.runtime.progress import Say, unheard

FORMAT = 1
PAGE, NAME = "dossier.html", "dossier.json"
SIGNED = (PAGE, "model_card.md", "datasheet.md")  # hashed too, though no program reads them again


def dossier(
    path: str | Path,
    *,
    run: str | Path,
    synthetic: str | Path,
    train: str | Path,
    test: str | Path,
    results: str | Path | None = None,
    audit: str | Path | Sequence[str | Path] = (),
    about: About | str | Path | None = None,
    horizon: int | None = None,
    allow_edited: bool = False,
    say: Say = unheard,
) -> Known:
    """Writes the folder `path`; trains and attacks nothing. What was not evaluated or audited, it says.

    `audit` may be several: one of the synthetic cohort and one of the run.
    """
    refuse_existing(Path(path))
    given = [audit] if isinstance(audit, str | Path) else audit
    places = GivenFolders(
        Path(run), Path(synthetic), Path(train), Path(test), None if results is None else Path(results),
        tuple(map(Path, given)), horizon,
    )  # fmt: skip
    people = About.read(Path(about)) if isinstance(about, str | Path) else about
    found = known(places, people, allow_edited=allow_edited, say=say)
    write_dossier(path, found)
    return found


def write_dossier(path: str | Path, found: Known) -> None:
    """Writes what is known as a folder with a manifest."""
    from timediff.report.dossier_page import write_dossier_page

    card = card_table(found)
    tables = {NAME: _table(found), "model_card.json": card, "croissant.json": croissant(found)}
    with new_folder(Path(path)) as folder:
        for name, table in tables.items():
            (folder / name).write_text(json.dumps(table, indent=2, ensure_ascii=False), encoding="utf-8")
        (folder / "model_card.md").write_text(card_markdown(found, card), encoding="utf-8")
        (folder / "datasheet.md").write_text(datasheet(found), encoding="utf-8")
        write_dossier_page(folder / PAGE, found)
        write_manifest(folder, "dossier", also=SIGNED)


def _table(found: Known) -> dict[str, Any]:
    """dossier.json: what was answered, and of what."""
    return {
        "format": FORMAT,
        "title": found.title,
        "version": __version__,
        "date": found.date,
        "hashes": hashes(found),
        "answers": [
            {"question": one.question, "word": one.word, "sentence": one.sentence, "reasons": list(one.reasons)}
            for one in answers(found)
        ],
    }
