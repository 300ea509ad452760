"""`timediff audit`: attacks on a synthetic cohort or a run folder by one command."""

from pathlib import Path
from typing import Annotated

import typer

from timediff.cli.program import LEAK, Horizon, NewPath, Seed, app

MOST_MODELS = 1_000


@app.command()
def audit(
    train: Annotated[
        Path, typer.Argument(metavar="TRAIN", help="What the generator was trained on.", show_default=False)
    ],
    held_out: Annotated[
        Path, typer.Argument(metavar="HELD_OUT", help="Real stays that it has not seen.", show_default=False)
    ],
    out: NewPath,
    run: Annotated[Path | None, typer.Option("--run", metavar="RUN", help="The run folder, to attack it.")] = None,
    synthetic: Annotated[
        Path | None, typer.Option("--synthetic", metavar="SYN", help="A synthetic cohort, to attack it.")
    ] = None,
    attack: Annotated[
        list[str] | None, typer.Option("--attack", metavar="NAME", help="Only this attack; may be given again.")
    ] = None,
    models: Annotated[int, typer.Option(min=2, max=MOST_MODELS, help="Shadow models that the attacker trains.")] = 8,
    budget: Annotated[
        float | None, typer.Option(metavar="MINUTES", min=0, help="For shadow models: fewer, if they take longer.")
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the shadow models, such as model.hidden=64."),
    ] = None,
    seed: Seed = 0,
    power: Annotated[bool, typer.Option(help="Plant leaks too, to see what the attacks would find.")] = True,
    horizon: Horizon = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Shadow models at once; 1 on the CPU, and on a GPU 4.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an audit that was stopped.")] = False,
) -> None:
    """Attack a synthetic cohort or a run folder: whom could it expose?

    Exit code 3: all was written, and an attack succeeded.
    """
    from timediff.cli.console import bar, say, shortened, waiting
    from timediff.errors import Stopped
    from timediff.runtime.files import require_new
    from timediff.settings.resolve import parse_assignment

    require_new(out)
    with waiting("reading the cohorts and loading PyTorch"):
        from timediff.data.cohort import Cohort, read_cohort
        from timediff.evaluation.audit import audit_to
        from timediff.evaluation.audit_work import AuditSettings
        from timediff.generators.registry import load
        from timediff.report.audit_verdicts import audit_verdicts, leaking

        changes = dict(map(parse_assignment, assignments or ()))
        settings = AuditSettings(tuple(attack or ()), models, budget, changes, seed, power, jobs)
        settings.check()

        def read(path: Path) -> Cohort:
            return shortened(read_cohort(path), horizon, path)

        seen, unseen = read(train), read(held_out)
        cohort = None if synthetic is None else read(synthetic)
        model = None if run is None else load(run, say)
    try:
        with bar("training shadow models") as progress:
            found = audit_to(
                out, seen, unseen, run=model, synthetic=cohort, settings=settings, resume=resume, progress=progress,
                say=say,
            )  # fmt: skip
    except KeyboardInterrupt as stop:
        raise Stopped("stopped. The shadow models so far are kept, and --resume goes on from there") from stop
    for verdict in audit_verdicts(found):
        say(f"{verdict.question} {verdict.word}. {' '.join(verdict.sentences)}")
    say(f"{out / 'audit.html'}: open it in a browser")
    if leaking(found):
        say(f"an attack succeeded: this ends with exit code {LEAK}")
        raise typer.Exit(LEAK)
