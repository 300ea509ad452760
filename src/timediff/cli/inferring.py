"""`timediff infer`: settings for any table, to look over and edit."""

from pathlib import Path
from typing import Annotated

import typer

from timediff.cli.program import ShowValues, app
from timediff.data.schema import MOST_STEPS


@app.command()
def infer(
    tables: Annotated[
        list[Path],
        typer.Argument(
            metavar="TABLE...", help="Files with measurements: CSV, TSV, Parquet, Excel.", show_default=False
        ),
    ],
    static: Annotated[
        list[Path] | None,
        typer.Option("--static", metavar="FILE", help="A row a stay or a patient; may be given again."),
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", metavar="[FILE:]COLUMN", help="The outcome, maybe in a file of its own.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the settings; shown if not given.")
    ] = None,
    stay: Annotated[str | None, typer.Option(metavar="COLUMN", help="Whose row it is.")] = None,
    time: Annotated[str | None, typer.Option(metavar="COLUMN", help="When.")] = None,
    patient: Annotated[str | None, typer.Option(metavar="COLUMN", help="Of several stays of one patient.")] = None,
    variable: Annotated[str | None, typer.Option(metavar="COLUMN", help="Long: what was measured.")] = None,
    value: Annotated[str | None, typer.Option(metavar="COLUMN", help="Long: its value.")] = None,
    step: Annotated[str | None, typer.Option(metavar="DURATION", help="Of the grid, such as 1h.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, max=MOST_STEPS, help="Of the grid.")] = None,
    time_unit: Annotated[
        str | None, typer.Option(metavar="UNIT", help="timestamp, duration, d, h, min, s, step")
    ] = None,
    date_order: Annotated[str | None, typer.Option(metavar="dmy|mdy|ymd", help="Of dates.")] = None,
    shown: ShowValues = False,
) -> None:
    """Infer settings from any tables: columns, kinds, units, classes, the grid."""
    from contextlib import nullcontext

    from timediff.cli.console import bar, say
    from timediff.runtime.cell_values import show_values
    from timediff.runtime.files import new_file, require_new
    from timediff.runtime.progress import silent
    from timediff.sources.infer import infer as look

    if out is not None:
        require_new(out)
    shows = bar("looking at the tables") if out is not None else nullcontext(silent)  # the settings alone, to redirect
    with show_values(shown), shows as progress:
        found = look(
            *tables, static=static or (), label=label, stay=stay, time=time, patient=patient, variable=variable,
            value=value, step=step, steps=steps, time_unit=time_unit, date_order=date_order, progress=progress,
        )  # fmt: skip
    if out is None:
        typer.echo(found.to_toml(), nl=False)
        return
    with new_file(out) as path:
        path.write_text(found.to_toml(), encoding="utf-8")
    say(str(found))
    say(f"{out}: look it over. Next: timediff extract table {tables[0]} OUT --config {out}")
