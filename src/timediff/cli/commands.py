"""The command line: parses, calls, shows. Everything it does can be done from Python too."""

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, cast, get_args

import typer

from timediff.data.schema import MOST_STEPS
from timediff.runtime import devices
from timediff.runtime.seeding import MAX_SEED
from timediff.settings.checks import MOST_STEPS as MOST_CALLS

app = typer.Typer(
    help="Synthetic intensive-care records: vital signs, missingness and outcome together.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

LEAK = 3  # the exit code of an evaluation that found copies or a leak
KEEP_THE_RUN = "A run folder knows more of the training stays than what is sampled from it: share cohorts, not runs."
FEW_STAYS = 1000
REMEMBERED = (  # the figure is cited in docs/privacy.md
    "{:,} training stays are few, and a model remembers each of them more: with 500, an attack on the run folder of "
    "`fast` told them from others with an AUC of .91. See timediff audit."
)
STOPPED = 130  # the exit code of what was interrupted
MOST_STAYS = MOST_LENGTH = 10**15  # that are read as numbers; memory and disk say no long before
MOST_REPETITIONS = 10_000

CohortPath = Annotated[Path, typer.Argument(metavar="COHORT", help="A cohort folder.", show_default=False)]
AllowEdited = Annotated[
    bool, typer.Option("--allow-edited", help="Go on with a folder that was edited since it was written.")
]
NewPath = Annotated[Path, typer.Argument(metavar="OUT", help="A folder that does not exist yet.", show_default=False)]
Seed = Annotated[int, typer.Option(min=0, max=MAX_SEED, help="The same seed gives the same numbers.")]
Horizon = Annotated[
    int | None, typer.Option(min=1, max=MOST_STEPS, help="Use the first N steps; shorter stays are dropped.")
]
ShowValues = Annotated[
    bool, typer.Option("--show-values", help="Messages show cell values, which are patient data, on the screen.")
]


def main() -> None:
    """The entry point: every mistake that a user can put right is one sentence and exit code 2."""
    from timediff.errors import Stopped, TimeDiffError

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a file's name may hold what no encoding can show
    try:
        app()
    except BrokenPipeError:  # whoever was reading, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise SystemExit(1) from None
    except Stopped as stop:
        _complain(str(stop), STOPPED)
    except TimeDiffError as error:
        _complain(f"error: {error}", 2)
    except KeyboardInterrupt:
        _complain("stopped", STOPPED)
    except RecursionError:
        _complain("error: something in what was given is nested too deeply to be read.", 2)
    except UnicodeError as error:
        _complain(f"error: a text or a name could not be read or written as {_encoding(error)}.", 2)
    except (MemoryError, RuntimeError) as error:
        if not _out_of_memory(error):
            raise
        _complain(
            "error: there is not enough memory for this: lower training.batch or model.hidden when fitting, "
            "--batch when sampling, or use fewer stays.",
            2,
        )
    except OSError as error:
        _complain(f"error: {error.filename or 'a file'}: {error.strerror or error}", 2)


def _out_of_memory(error: Exception) -> bool:
    """Python's, the GPU's (torch.OutOfMemoryError) and that of PyTorch's CPU allocator, a plain RuntimeError."""
    return isinstance(error, MemoryError) or "memory" in f"{type(error).__name__} {error}".lower()


def _encoding(error: UnicodeError) -> str:
    return str(getattr(error, "encoding", "text"))  # and not the text itself, which may be a patient's


def _complain(message: str, code: int) -> None:
    who = f"process {devices.rank()}: " if devices.rank() else ""  # of many; each may have a reason of its own
    if not who or code != STOPPED:
        print(who + message, file=sys.stderr)
    raise SystemExit(code)


def _version(show: bool) -> None:
    if show:
        from timediff import __version__

        typer.echo(f"timediff {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None: ...


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where to put it; a demo's own folder is replaced.")] = Path("demo"),
    seed: Seed = 0,
) -> None:
    """Simulated ICU → fit → sample → a report with pictures, in a few minutes."""
    from timediff.cli.demo import demo as run

    run(out, seed=seed)


@app.command()
def simulate(
    out: NewPath,
    stays: Annotated[int, typer.Option(min=1, max=MOST_STAYS, help="How many.")] = 1000,
    steps: Annotated[
        int, typer.Option(min=1, max=MOST_LENGTH, help="Hours of each stay; the raw layouts have their own.")
    ] = 48,
    raw: Annotated[str | None, typer.Option(metavar="mimic3|mimic4|eicu", help="Write that database's tables.")] = None,
    seed: Seed = 0,
) -> None:
    """Write a simulated ICU as a cohort, or as a database's raw tables with the true cohort beside them."""
    from timediff.cli.console import bar, say
    from timediff.runtime.files import require_new

    require_new(out)
    if raw is None:
        from timediff.sources.simulated import simulate_to

        with bar("simulating") as progress:
            simulate_to(out, stays, steps=steps, seed=seed, progress=progress)
        say(f"{out}: {stays:,} stays of {steps} hours")
    else:
        from timediff.sources.raw import write_raw

        with bar(f"writing {raw} tables") as progress:
            write_raw(raw, out, stays, seed=seed, progress=progress)
        say(f"{out / 'raw'}: {raw} tables; {out / 'cohort'}: the {stays:,} stays that a correct extraction finds")


@app.command()
def extract(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="mimic3, mimic4, eicu, physionet2012, …", show_default=False)
    ],
    source: Annotated[
        str | None, typer.Argument(metavar="SOURCE", help="Folder, file, duckdb:///…, postgresql://… or spark://….")
    ] = None,
    out: Annotated[Path | None, typer.Argument(metavar="OUT", help="A folder that does not exist yet.")] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file of settings, instead of the source's own.")] = None,
    assignments: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One setting.")] = None,
    extended: Annotated[
        bool, typer.Option("--extended", help="mimic4: with the paper's supplementary channels.")
    ] = False,
    as_published: Annotated[
        bool, typer.Option("--as-published", help="As the paper's authors did it, with --extended the supplement too.")
    ] = False,
    print_config: Annotated[bool, typer.Option("--print-config", help="Show the source's own settings.")] = False,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Write also where more than 5 % of the measurements are lost.")
    ] = False,
    shown: ShowValues = False,
) -> None:
    """Raw tables → a cohort, from files, DuckDB, PostgreSQL or Spark."""
    from timediff.cli.console import bar, say
    from timediff.errors import TimeDiffError
    from timediff.runtime.cell_values import show_values
    from timediff.settings.resolve import parse_assignment
    from timediff.sources.extract import extract as read
    from timediff.sources.registry import source as lookup

    kind = lookup(name)
    if print_config:
        typer.echo(kind.default_toml(as_published=as_published), nl=False)
        return
    if source is None or out is None:
        raise TimeDiffError(f"expected timediff extract {name} SOURCE OUT, or --print-config.")
    changes = dict(parse_assignment(text) for text in assignments or []) | ({"extended": True} if extended else {})
    with show_values(shown), bar(f"extracting {name}") as progress:
        extraction = read(
            name, source, out, config=config, changes=changes, as_published=as_published, accept_loss=accept_loss,
            progress=progress,
        )  # fmt: skip
    for line in extraction.lines():
        say(line)
    say(f"{out}: {len(extraction.cohort):,} of {extraction.found:,} stays. Next: timediff describe {out}")


@app.command()
def describe(
    cohort: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="A cohort, a run, results, an audit or a comparison.", show_default=False),
    ],
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with a picture a feature.", show_default=False)
    ] = None,
    shown: ShowValues = False,
) -> None:
    """Show what is in a cohort and where it came from; or what a run, results, an audit or a comparison is."""
    from timediff.cli.describing import described

    if described(cohort, html):
        return

    from rich.table import Table
    from rich.text import Text

    from timediff.cli.console import console, say, waiting
    from timediff.data.cohort import read_cohort
    from timediff.data.describe import describe as records
    from timediff.data.describe import missing_rate, read_extraction, statistics
    from timediff.report.page import require_plotly
    from timediff.runtime.cell_values import show_values
    from timediff.runtime.files import require_new

    if html is not None:
        require_new(html)
        require_plotly()
    with waiting(f"reading {cohort}"), show_values(shown):
        data, extraction = read_cohort(cohort), read_extraction(cohort)
    schema, lengths = data.schema, data.lengths
    length = f"{schema.steps}" if data.length is None else f"{lengths.min()} to {lengths.max()}"
    if data.provenance is not None:
        say(str(data.provenance))
    say(f"{len(data):,} stays of {length} steps of {schema.step}; {missing_rate(data):.1%} of temporal values missing")
    table = Table("feature", "kind", "missing", "mean ± SD (range), or rate of each class")
    for record in records(data):
        feature = record.feature
        kind = f"{feature.kind}, {feature.role or feature.scope}"
        values = f"{record.mean:.4g} ± {record.sd:.3g} ({record.low:.4g} to {record.high:.4g}) {feature.unit or ''}"
        if feature.discrete:
            rates = [f"{name}: {rate:.1%}" for name, rate in record.class_rates.items()]
            values = ", ".join(rates[:6]) + (f" and {len(rates) - 6} more" if len(rates) > 6 else "")
        if names := feature.step_names:
            values += f"; a step each: {', '.join(names[:3])}" + (f" and {len(names) - 3} more" if names[3:] else "")
        # Text, not markup: a unit such as "[min]" is a unit.
        table.add_row(*map(Text, (feature.name, kind, f"{record.missing:.1%}", values)))
    console.print(table)
    numbers = statistics(data)
    row = Table()
    for heading in numbers:
        row.add_column(Text(heading), justify="right")
    row.add_row(*map(Text, numbers.values()))
    console.print(row)
    if extraction is not None:
        say(f"extracted by {extraction.facts.get('engine', 'an engine that is not named')}")
        rules = Table("rule")
        rules.add_column("stays", justify="right")
        for step in extraction.rows():
            rules.add_row(*map(Text, step))
        console.print(rules)
        for line in extraction.losses():
            say(line)
    if html is not None:
        from timediff.report.cohort_page import write_cohort_page

        with waiting(f"drawing {html}"):
            title = os.fsencode(cohort.resolve().name).decode("utf-8", "replace")
            write_cohort_page(html, data, title=title, extraction=extraction)
        say(f"{html}: open it in a browser")


@app.command()
def export(
    cohort: CohortPath,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="A folder, or an .xlsx file, that does not exist.", show_default=False)
    ],
    to: Annotated[str, typer.Option(metavar="NAME", help="csv, csv.gz, parquet-wide, parquet-long, meds or xlsx.")],
) -> None:
    """Write a cohort in a form that other tools read."""
    from timediff.cli.console import bar, say
    from timediff.exports.export import export as write
    from timediff.runtime.files import require_new

    require_new(out)
    with bar("exporting") as progress:
        write(cohort, out, to=to, progress=progress)
    say(f"{out}: {cohort} as {to}")


@app.command()
def split(
    cohort: CohortPath,
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="Folder for the training stays.", show_default=False)],
    test: Annotated[Path, typer.Argument(metavar="TEST", help="Folder for the test stays.", show_default=False)],
    fraction: Annotated[
        float | None, typer.Option("--test", help="Fraction of stays for testing; the schema's if not given.")
    ] = None,
    seed: Seed = 0,
    stratify: Annotated[
        str | None, typer.Option(help="Keep this feature's rates alike; the label if not given.")
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="Keep stays with the same value together; the patient if not given.")
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="random|time|blocks", help="How; as the schema says if not given.")
    ] = None,
) -> None:
    """Split a cohort into training and test stays, by patient and stratified by the label."""
    from timediff.cli.console import say, waiting
    from timediff.data.cohort import read_cohort
    from timediff.data.schema import SplitBy
    from timediff.errors import TimeDiffError
    from timediff.runtime.files import new_folder, require_new

    if train.resolve() == test.resolve():
        raise TimeDiffError("TRAIN and TEST are the same folder; give them two names.")
    require_new(train, test)
    if by is not None and by not in get_args(SplitBy):
        raise TimeDiffError(f"--by is {by!r}; expected one of {', '.join(get_args(SplitBy))}.")
    chosen = cast(SplitBy | None, by)
    with waiting(f"splitting {cohort}"):
        parts = read_cohort(cohort).split(fraction, seed=seed, stratify=stratify, group=group, by=chosen)
        with new_folder(train) as train_folder, new_folder(test) as test_folder:  # both, or neither
            parts[0].write_into(train_folder)
            parts[1].write_into(test_folder)
    say(f"{train}: {len(parts[0]):,} stays; {test}: {len(parts[1]):,} stays")


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
        from timediff.evaluation.audit import Audit
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


if __name__ == "__main__":
    main()
