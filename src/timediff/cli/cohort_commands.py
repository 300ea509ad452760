"""`timediff simulate`, `extract`, `describe`, `export` and `split`: cohorts, before there is a model."""

import os
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from timediff.cli.program import MOST_LENGTH, MOST_STAYS, CohortPath, NewPath, Seed, ShowValues, app


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
