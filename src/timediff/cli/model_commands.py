"""`timediff demo`, `fit` and `sample`: models, and what they generate."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from timediff.cli.program import MOST_LENGTH, MOST_STAYS, AllowEdited, Horizon, NewPath, Seed, app
from timediff.runtime import devices
from timediff.runtime.seeding import MAX_SEED
from timediff.settings.checks import MOST_STEPS as MOST_CALLS

KEEP_THE_RUN = "A run folder knows more of the training stays than what is sampled from it: share cohorts, not runs."
FEW_STAYS = 1000
REMEMBERED = (  # the figure is cited in docs/privacy.md
    "{:,} training stays are few, and a model remembers each of them more: with 500, an attack on the run folder of "
    "`fast` told them from others with an AUC of .91. See timediff audit."
)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where to put it; a demo's own folder is replaced.")] = Path("demo"),
    seed: Seed = 0,
) -> None:
    """Simulated ICU → fit → sample → a report with pictures, in a few minutes."""
    from timediff.cli.demo import demo as run

    run(out, seed=seed)


@app.command()
def fit(
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="The cohort to train on.", show_default=False)],
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder to write.", show_default=False)],
    preset: Annotated[
        str | None, typer.Option(help="Settings to start from; fast, or the generator's own, if not given.")
    ] = None,
    generator: Annotated[
        str | None, typer.Option(metavar="NAME", help="What to fit; the preset's, or timediff, if not given.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings; goes before the preset.")] = None,
    assignments: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One setting.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, max=MAX_SEED, help="training.seed if not given.")] = None,
    horizon: Horizon = None,
    allow_constant: Annotated[
        bool, typer.Option("--allow-constant", help="Carry constant or empty columns through.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a run that was stopped.")] = False,
    allow_edited: AllowEdited = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check, show the settings, and stop.")] = False,
) -> None:
    """Train on a cohort; Ctrl-C saves, and --resume goes on."""
    from timediff.cli.console import bar, say, shortened, waiting
    from timediff.errors import Stopped, TimeDiffError
    from timediff.generators.registry import GENERATORS, choose
    from timediff.runtime.files import require_new
    from timediff.settings.resolve import parse_assignment, resolve

    if not (dry_run or (resume and run.exists())) and devices.rank() == 0:
        require_new(run)
    given = dict(parse_assignment(text) for text in assignments or [])
    if allow_constant:
        given["codec.allow_constant"] = True
    begun = resume and run.exists() and preset is None  # then the run's own settings are where to start from
    with waiting(f"reading {train} and loading PyTorch"):
        from timediff.data.cohort import read_cohort
        from timediff.generators.run import Run

        name, start = choose(generator, preset)
        settings = None if begun else resolve(start or GENERATORS(name).Settings(), config, given)
        if begun:
            found = Run.open(run, allow_edited=allow_edited)
            if generator not in (None, found.generator):
                raise TimeDiffError(
                    f"{run} is a run of {found.generator}, not of {generator}: resume it as what it is."
                )
            name, settings = found.generator, resolve(found.settings, config, given)
        model = GENERATORS(name)(settings=settings)
        cohort = shortened(read_cohort(train), horizon, train)
        plan = model.plan(cohort)
    if dry_run:
        say("".join(f"# {name}: {value:,}\n" for name, value in plan.items()) + model.settings.to_toml().strip())
        return
    size = "".join(f", {plan[key]:,} {key}" for key in ("parameters", "updates") if key in plan)
    say(f"{plan['stays']:,} stays × {plan['steps']} steps{size}")
    try:
        with bar("fitting") as progress:
            edited = {"allow_edited": True} if allow_edited else {}
            model.fit(cohort, seed=seed, run=run, resume=resume, progress=progress, say=say, **edited)
    except Stopped as stop:
        again = ["timediff", "fit", str(train), str(run), "--resume"]
        again += [] if horizon is None else ["--horizon", str(horizon)]
        raise Stopped(f"{stop}; saved. Go on with: {shlex.join(again)}") from stop
    say(f"{run}: fitted. Next: timediff sample {run} OUT -n 1000")
    say(KEEP_THE_RUN)
    if plan["stays"] < FEW_STAYS:
        say(REMEMBERED.format(plan["stays"]))


@app.command()
def sample(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder of a fit.", show_default=False)],
    out: NewPath,
    n: Annotated[int, typer.Option("-n", min=1, max=MOST_STAYS, help="How many stays.")] = 1000,
    seed: Seed = 0,
    sampler: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Such as ddim or heun; the run's if not given."),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, max=MOST_CALLS, help="Network calls; the run's if not given.")
    ] = None,
    length: Annotated[
        int | None, typer.Option(min=1, max=MOST_LENGTH, help="Steps of each stay; as trained if not given.")
    ] = None,
    batch: Annotated[int | None, typer.Option(min=1, max=MOST_STAYS, help="Stays computed at once.")] = None,
    precision: Annotated[
        str | None, typer.Option(metavar="float32|tf32|float16|bfloat16", help="Of a GPU; the run's if not given.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a sampling that was stopped.")] = False,
    allow_edited: AllowEdited = False,
) -> None:
    """Generate a synthetic cohort; the same seed gives the same stays."""
    from timediff.cli.console import bar, say, waiting
    from timediff.errors import Stopped
    from timediff.runtime.files import require_new

    if devices.rank() == 0:
        require_new(out)
    with waiting(f"loading {run}"):
        from timediff.generators.registry import load
        from timediff.generators.streaming import sample_to

        model = load(run, say=say, allow_edited=allow_edited)
    options = {"sampler": sampler, "steps": steps, "batch": batch, "precision": precision}
    try:
        with bar("sampling") as progress:
            sample_to(model, out, n, seed=seed, length=length, resume=resume, progress=progress, say=say, **options)
    except KeyboardInterrupt as stop:
        raise Stopped("stopped; the stays so far are kept. Go on with the same command and --resume.") from stop
    say(f"{out}: {n:,} synthetic stays")
    say(KEEP_THE_RUN)
