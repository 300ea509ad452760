"""`timediff evaluate`, `report` and `check`: what a synthetic cohort is worth, and whether a folder is whole."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from timediff.cli.program import LEAK, MOST_REPETITIONS, AllowEdited, Horizon, app
from timediff.runtime.seeding import MAX_SEED


@app.command()
def evaluate(
    train: Annotated[Path, typer.Option("--train", metavar="TRAIN", help="What the generator was trained on.")],
    test: Annotated[Path, typer.Option("--test", metavar="TEST", help="Real stays that it has not seen.")],
    synthetic: Annotated[
        list[str],
        typer.Option(
            "--synthetic",
            metavar="[NAME=]PATH",
            help="A synthetic cohort. May be given again: another name is another column, the same name another seed.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="RESULTS", help="Folder to write; it must not exist.")],
    protocol: Annotated[
        str, typer.Option(metavar="strict|paper", help="How classifiers are trained and tested.")
    ] = "strict",
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="Only this metric; may be given again.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Three repetitions, and the quick metrics alone.")] = False,
    repetitions: Annotated[
        int | None, typer.Option(min=1, max=MOST_REPETITIONS, help="Of each classifier; 10, or 3 with --quick.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Of the classifiers.")] = 0,
    horizon: Horizon = None,
    mir_threshold: Annotated[float, typer.Option(min=0, help="Distance below which MIR calls a stay a member.")] = 0.08,
    internal: Annotated[
        bool, typer.Option("--internal", help="Draw single points of real stays: not for sharing.")
    ] = False,
    audits: Annotated[
        list[Path] | None,
        typer.Option("--audit", metavar="AUDIT", help="The audit of a synthetic cohort; its verdict is shown."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an evaluation that was stopped.")] = False,
) -> None:
    """Evaluate synthetic cohorts: do they look real, are they useful, whom could they expose?

    Exit code 3: all was written, and a cohort shows signs of a leak (copies of training stays, or a successful attack).
    """
    from timediff.cli.console import bar, console, say, shortened, waiting
    from timediff.errors import Stopped
    from timediff.report.page import require_plotly
    from timediff.runtime.files import require_new

    given = _named_paths(synthetic)
    if not resume:
        require_new(out)
    require_plotly()
    with waiting("reading the cohorts and loading PyTorch"):
        from timediff.data.cohort import Cohort, read_cohort
        from timediff.evaluation.audit_results import Audit
        from timediff.evaluation.evaluate import evaluate_to, require_names
        from timediff.evaluation.settings import EvaluationSettings
        from timediff.report.summary import scores_table, verdict_lines
        from timediff.report.verdicts import leaks

        start = EvaluationSettings.quick() if quick else EvaluationSettings()
        settings = replace(
            start,
            protocol=cast(Literal["paper", "strict"], protocol),
            seed=seed,
            repetitions=repetitions or start.repetitions,
            only=tuple(only or ()),
            skip=() if only else start.skip,
            mir_threshold=mir_threshold,
            internal=internal,
        )
        settings.check()
        require_names(given)

        def read(path: Path) -> Cohort:
            return shortened(read_cohort(path), horizon, path)

        seen, unseen = read(train), read(test)
        cohorts = {name: [read(path) for path in paths] for name, paths in given.items()}
        audited = [Audit.read(path) for path in audits or ()]
    try:
        with bar("evaluating") as progress:
            results = evaluate_to(
                out, seen, unseen, cohorts, settings=settings, audits=audited, resume=resume, progress=progress, say=say
            )
    except KeyboardInterrupt as stop:
        raise Stopped("stopped; the metrics so far are kept. Go on with the same command and --resume.") from stop
    console.print(scores_table(results))
    for line in verdict_lines(results):
        say(line)
    say(f"{out / 'report.html'}: open it in a browser")
    if leaking := leaks(results):
        say(f"signs of a leak in {', '.join(leaking)}: this ends with exit code {LEAK}")
        raise typer.Exit(LEAK)


def _named_paths(texts: list[str]) -> dict[str, list[Path]]:
    """The folders of each name, as [NAME=]PATH gives them."""
    from timediff.errors import TimeDiffError

    given: dict[str, list[Path]] = {}
    for text in texts:
        name, separator, rest = text.partition("=")
        path = Path(rest if separator else text)
        paths = given.setdefault(name if separator else path.resolve().name, [])
        if path.resolve() in [known.resolve() for known in paths]:
            raise TimeDiffError(f"--synthetic {text} is given twice: another seed of a generator is another folder.")
        paths.append(path)
    return given


@app.command()
def report(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="What evaluate wrote.", show_default=False)],
    out: Annotated[Path | None, typer.Option("--out", help="Where to write it; RESULTS/report.html.")] = None,
    allow_edited: AllowEdited = False,
) -> None:
    """Draw the report of an evaluation again."""
    from timediff.cli.console import say, waiting
    from timediff.errors import TimeDiffError
    from timediff.evaluation.results import Results
    from timediff.report.page import require_plotly
    from timediff.runtime.files import require_new

    require_plotly()
    if out is not None:
        if out.suffix.lower() not in (".html", ".htm"):
            raise TimeDiffError(
                f"{out} would not be what its name says: a report is an HTML file, such as {out.stem}.html. To have "
                "it on paper or as PDF, open it in a browser and print it."
            )
        require_new(out)
    path = out or results / "report.html"
    with waiting(f"drawing {path}"):
        Results.read(results, allow_edited=allow_edited, say=say).report(path)
    say(f"{path}: open it in a browser")


@app.command()
def check(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="A cohort, a run, results, a comparison or .OUT.parts.", show_default=False
        ),
    ],
) -> None:
    """Tell what a folder is, and whether it is as it was written."""
    from timediff.cli.check import check as look
    from timediff.cli.console import say, waiting

    with waiting(f"checking {path}"):
        checked = look(path)
    for line in checked.lines():
        say(line)
    if not checked.intact:
        raise typer.Exit(2)
