"""`timediff dossier`: the documents that go with a synthetic cohort, by one command."""

from pathlib import Path
from typing import Annotated

import typer

from timediff.cli.program import AllowEdited, Horizon, NewPath, app


@app.command()
def dossier(
    out: NewPath,
    run: Annotated[Path, typer.Option("--run", metavar="RUN", help="The run that the stays were sampled from.")],
    synthetic: Annotated[Path, typer.Option("--synthetic", metavar="SYN", help="The synthetic cohort.")],
    train: Annotated[Path, typer.Option("--train", metavar="TRAIN", help="What the run was trained on.")],
    test: Annotated[Path, typer.Option("--test", metavar="TEST", help="Real stays that it has not seen.")],
    results: Annotated[
        Path | None, typer.Option("--results", metavar="RESULTS", help="What timediff evaluate wrote of SYN.")
    ] = None,
    audits: Annotated[
        list[Path] | None,
        typer.Option("--audit", metavar="AUDIT", help="What timediff audit wrote of SYN or RUN; may be given again."),
    ] = None,
    about: Annotated[
        Path | None, typer.Option("--about", metavar="FILE", help="A TOML file of names, source, purpose, uses.")
    ] = None,
    horizon: Horizon = None,
    allow_edited: AllowEdited = False,
) -> None:
    """Write what a data steward signs: a page to print, model card, datasheet and Croissant metadata."""
    from timediff.cli.console import say, waiting
    from timediff.runtime.files import require_new

    require_new(out)
    with waiting("reading the folders and loading PyTorch"):
        from timediff.documents.answers import answers
        from timediff.documents.dossier import PAGE
        from timediff.documents.dossier import dossier as write

        found = write(
            out, run=run, synthetic=synthetic, train=train, test=test, results=results, audit=audits or (), about=about,
            horizon=horizon, allow_edited=allow_edited, say=say,
        )  # fmt: skip
    for one in answers(found):
        say(f"{one.question} {one.sentence}")
    for what, command in found.missing.items():
        say(f"{what[:1].upper()}{what[1:]}. Give what this writes: {command}")
    say(f"{out / PAGE}: open it in a browser, and print it to sign it")
