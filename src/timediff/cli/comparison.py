"""`timediff compare`: several generators on one cohort by one command."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from timediff.cli.program import LEAK, MOST_REPETITIONS, MOST_STAYS, Horizon, app
from timediff.runtime.seeding import MAX_SEED

if TYPE_CHECKING:
    from rich.table import Table

    from timediff.comparison.compare import Comparison

FAILED = 1  # the exit code of a comparison of which a training failed

SIZES = ("parameters", "updates", "stays an update")  # of a neural generator's plan


@app.command()
def compare(
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="The cohort to train on.", show_default=False)],
    test: Annotated[Path, typer.Argument(metavar="TEST", help="Real stays to evaluate with.", show_default=False)],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write.", show_default=False)],
    generators: Annotated[
        list[str] | None,
        typer.Option("--generator", metavar="[NAME=]GENERATOR", help="A row, with the generator's own preset."),
    ] = None,
    presets: Annotated[
        list[str] | None,
        typer.Option("--preset", metavar="[NAME=]PRESET", help="The preset of row NAME, or a row of its own."),
    ] = None,
    configs: Annotated[
        list[str] | None,
        typer.Option("--config", metavar="[NAME=]FILE", help="A TOML file of settings, of row NAME or of all."),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="[NAME:]KEY=VALUE", help="One setting, of row NAME or of all."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Trainings of each row: seeds 0, 1, ….")] = 3,
    n: Annotated[
        int | None, typer.Option("-n", min=1, max=MOST_STAYS, help="Stays to sample; as many as in TRAIN if not given.")
    ] = None,
    protocol: Annotated[
        str, typer.Option(metavar="strict|paper", help="How classifiers are trained and tested.")
    ] = "strict",
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="METRIC", help="Only this metric; may be given again.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Three repetitions, and the quick metrics alone.")] = False,
    repetitions: Annotated[
        int | None, typer.Option(min=1, max=MOST_REPETITIONS, help="Of each classifier; 10, or 3 with --quick.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Of the classifiers.")] = 0,
    horizon: Horizon = None,
    jobs: Annotated[int, typer.Option(min=1, max=1000, help="Trainings at once, each a process.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on, also with more seeds or generators.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check, show what would be done, and stop.")] = False,
) -> None:
    """Compare generators: fit, sample and evaluate each with several training seeds, and write one report.

    Exit code 1: all else was written, and a training failed. 3: none failed, and a cohort shows signs of a leak.
    """
    from timediff.cli.console import bars, console, say, shortened, waiting
    from timediff.report.page import require_plotly

    require_plotly()
    with waiting("reading the cohorts and loading PyTorch"):
        from timediff.comparison.compare import Comparison
        from timediff.comparison.rows import parsed_rows
        from timediff.data.cohort import Cohort, read_cohort
        from timediff.evaluation.settings import EvaluationSettings
        from timediff.report.summary import scores_table, verdict_lines
        from timediff.report.training_time import times_table
        from timediff.report.verdicts import leaks

        rows = parsed_rows(generators or [], presets or [], configs or [], assignments or [])
        start = EvaluationSettings.quick() if quick else EvaluationSettings()
        settings = replace(
            start,
            protocol=cast(Literal["paper", "strict"], protocol),
            seed=seed,
            repetitions=repetitions or start.repetitions,
            only=tuple(only or ()),
            skip=() if only else start.skip,
        )
        settings.check()

        def read(path: Path) -> Cohort:
            return shortened(read_cohort(path), horizon, path)

        comparison = Comparison.of(
            read(train), read(test), out, rows, seeds=seeds, stays=n, settings=settings, jobs=jobs, resume=resume
        )
    console.print(_plan(comparison))
    if dry_run:
        return
    with bars() as watch:
        results = comparison.run(watch, say)
    if results.generators:
        console.print(scores_table(results))
        console.print(times_table(results))
        for line in verdict_lines(results):
            say(line)
        say(f"{out / 'results' / 'report.html'}: open it in a browser")
    failed = [one for one in results.trainings if one.failure]
    if failed:
        say(f"{len(failed)} of {len(results.trainings)} trainings failed: this ends with exit code {FAILED}")
        raise typer.Exit(FAILED)
    if leaking := leaks(results):
        say(f"signs of a leak in {', '.join(leaking)}: this ends with exit code {LEAK}")
        raise typer.Exit(LEAK)


def _plan(comparison: "Comparison") -> "Table":
    """What is to be done, a line a row."""
    from rich.table import Table
    from rich.text import Text

    table = Table("row", "generator")
    for heading in SIZES:
        table.add_column(heading, justify="right")
    table.add_column("to do", overflow="fold")
    for one in comparison.rows:
        sizes = [f"{one.sizes[key]:,}" if key in one.sizes else "–" for key in SIZES]
        table.add_row(*map(Text, (one.row.name, one.row.kind.name, *sizes, comparison.to_do(one))))
    return table
