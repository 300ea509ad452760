"""`timediff reproduce`: the paper's tables and figures by one command."""

from pathlib import Path
from typing import Annotated

import typer

from timediff.cli.program import app

FAILED = 1  # the exit code of a reproduction of which something failed


@app.command()
def reproduce(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write.", show_default=False)],
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="FOLDER", help="Where the data sets lie; or the variable TIMEDIFF_DATA."),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="Only this experiment; may be given again.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(metavar="MINUTES", min=0, help="For all of it: what does not fit is cut, and said.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Trainings at once; 1 on the CPU, and on a GPU 8.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what was stopped, or add to it.")] = False,
) -> None:
    """Reproduce the paper: run its experiments on the data at hand, and show its numbers beside ours.

    Exit code 1: all else was written, and something failed; the report says what.
    """
    from timediff.cli.console import bars, say, waiting
    from timediff.report.page import require_plotly

    require_plotly()
    with waiting("loading PyTorch"):
        from timediff.reproduction.reproduce import reproduce as run
    with bars() as watch:
        results = run(out, data, only=only or (), budget=budget, jobs=jobs, resume=resume, watch=watch, say=say)
    for cut in results.cuts:
        say(f"cut: {cut}")
    say(f"{out / 'report.html'}: open it in a browser")
    if results.failures:
        say(f"{len(results.failures)} of {len(results.lines)} rows failed: this ends with exit code {FAILED}")
        raise typer.Exit(FAILED)
