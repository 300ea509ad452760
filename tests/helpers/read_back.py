"""Exports read back, as a user of them would, into the cohort that they are of."""

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from timediff.data.cohort import Cohort
from timediff.data.schema import Feature, Schema


def column_types(schema: Schema, ids: pa.DataType) -> dict[str, pa.DataType]:
    def of(feature: Feature) -> pa.DataType:
        if feature.discrete and feature.role != "patient":
            return pa.string() if isinstance(feature.classes[0], str) else pa.int64()
        return pa.int64() if feature.role == "patient" else pa.float64()

    return {"stay_id": ids, "step": pa.int32(), "length": pa.int64()} | {f.name: of(f) for f in schema.features}


def unmarked(text: str | None) -> str | None:
    """Without the apostrophe that keeps it from being a formula."""
    return text[1:] if text and text.startswith("'") else text


def from_csv(folder: Path, schema: Schema, ids: pa.DataType) -> Cohort:
    def table(name: str) -> pa.Table:
        (path,) = folder.glob(f"{name}.csv*")
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        every = column_types(schema, ids)
        first = pacsv.open_csv(pa.BufferReader(content), parse_options=pacsv.ParseOptions(newlines_in_values=True))
        types = {name: every[str(unmarked(name))] for name in first.schema.names}
        options = pacsv.ConvertOptions(
            column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        )
        parse = pacsv.ParseOptions(newlines_in_values=True)
        found = pacsv.read_csv(pa.BufferReader(content), convert_options=options, parse_options=parse)
        columns = [
            pa.array(map(unmarked, c.to_pylist()), pa.string()) if pa.types.is_string(c.type) else c
            for c in found.columns
        ]
        return pa.Table.from_arrays(columns, names=[str(unmarked(name)) for name in found.column_names])

    return Cohort.from_tables(schema, table("series"), table("static"))


def from_wide(folder: Path, schema: Schema) -> Cohort:
    table = pq.read_table(folder / "cohort.parquet")
    static = [name for name in table.column_names if name == "length" or name in {f.name for f in schema.static}]
    step = table["step"].to_numpy()
    return Cohort.from_tables(schema, table.drop_columns(static), table.select(["stay_id", *static]).filter(step == 0))


def from_long(folder: Path, schema: Schema, ids: pa.DataType) -> Cohort:
    rows = pq.read_table(folder / "cohort.parquet").to_pylist()
    length = {row["stay_id"]: int(row["value"]) for row in rows if row["feature"] == "length"}
    types = column_types(schema, ids)
    series: dict[tuple[Any, int], dict[str, Any]] = {
        (stay, step): {"stay_id": stay, "step": step} for stay, steps in length.items() for step in range(steps)
    }
    static = {stay: {"stay_id": stay, "length": steps} for stay, steps in length.items()}
    for row in rows:
        if row["feature"] != "length":
            seen = row["text"] if row["text"] is not None else row["value"]
            home = static[row["stay_id"]] if row["step"] is None else series[row["stay_id"], row["step"]]
            home[row["feature"]] = int(seen) if types[row["feature"]] == pa.int64() else seen
    return Cohort.from_tables(
        schema,
        _table([*series.values()], ["stay_id", "step", *(f.name for f in schema.temporal)], types),
        _table([*static.values()], ["stay_id", "length", *(f.name for f in schema.static)], types),
    )


def from_xlsx(path: Path, schema: Schema, ids: pa.DataType) -> Cohort:
    from openpyxl import load_workbook

    book, types = load_workbook(path), column_types(schema, ids)

    def table(name: str) -> pa.Table:
        header, *rows = book[name].iter_rows(values_only=True)
        found = [dict(zip(header, row, strict=True)) for row in rows]
        for row in found:
            row.update({key: float(v) for key, v in row.items() if types[str(key)] == pa.float64() and v is not None})
        return _table(found, [str(key) for key in header], types)

    return Cohort.from_tables(schema, table("series"), table("static"))


def _table(rows: list[dict[str, Any]], names: list[str], types: dict[str, pa.DataType]) -> pa.Table:
    return pa.table({name: pa.array([row.get(name) for row in rows], types[name]) for name in names})
