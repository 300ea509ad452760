"""Extraction of MIMIC-III-shaped tables: time and peak memory against the number of chart rows.

    python benchmarks/extraction.py --rows 50e6 [--folder /a/large/disk]

Writes simulated raw tables (reused if the folder has them), then measures, each in its own process: DuckDB counting
the rows of CHARTEVENTS.csv.gz, extraction from .csv.gz, extraction from Parquet, and extraction of one variable of the
seven from .csv.gz (in the simulated table five rows of six are kept; in a real one most are of other variables).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

ROWS_A_STAY = 286  # of CHARTEVENTS, with the stays that rules drop


def peak_megabytes() -> float:
    status = Path("/proc/self/status").read_text()
    return float(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024


def prepare(folder: Path, rows: int) -> None:
    """Raw tables as .csv.gz, and the same as Parquet with declared types."""
    import duckdb

    from timediff.sources.engines import DUCKDB_TYPES, csv_relation, header_of
    from timediff.sources.mimic import TABLES3
    from timediff.sources.raw import write_raw

    write_raw("mimic3", folder / "mimic3", rows // ROWS_A_STAY, seed=0)
    (folder / "parquet").mkdir()
    for table in (TABLES3.stays, TABLES3.admissions, TABLES3.patients, TABLES3.events):
        path = folder / "mimic3" / "raw" / f"{table.name}.csv.gz"
        types = {name: DUCKDB_TYPES[table.columns.get(name, "string")] for name in header_of(path)}
        select = f"SELECT * FROM {csv_relation(path, types)}"
        duckdb.sql("SET memory_limit = '4GB'")
        duckdb.sql(f"COPY ({select}) TO '{folder / 'parquet' / table.name}.parquet' (FORMAT parquet)")


def count(folder: Path) -> dict[str, Any]:
    import duckdb

    path = folder / "mimic3" / "raw" / "CHARTEVENTS.csv.gz"
    started = time.perf_counter()
    rows = duckdb.sql(f"SELECT count(*) FROM read_csv('{path}', header=true, all_varchar=true)").fetchone()
    return {"rows": rows[0] if rows else 0, "seconds": time.perf_counter() - started}


def extract(source: str, truth: Path, variables: int | None = None) -> dict[str, Any]:
    from timediff.data.cohort import read_cohort
    from timediff.sources.registry import resolve
    from timediff.sources.registry import source as lookup

    settings = resolve("mimic3")
    settings = replace(settings, variable=settings.variable[:variables])
    started = time.perf_counter()
    found = lookup("mimic3").extract(source, settings)
    seconds, peak = time.perf_counter() - started, peak_megabytes()
    result = {"seconds": seconds, "peak_megabytes": peak, "stays": len(found.cohort)}
    if variables is None:
        result["equals_the_truth"] = found.cohort.digest() == read_cohort(truth).digest()
    return result


def measured(*arguments: object) -> dict[str, Any]:
    command = [sys.executable, __file__, *map(str, arguments)]
    result: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=5e6)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--count", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--extract", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--variables", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.count:
        print(json.dumps(count(arguments.count)))
        return
    if arguments.extract:
        print(json.dumps(extract(arguments.extract[0], Path(arguments.extract[1]), arguments.variables)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        if not (folder / "parquet").exists():
            folder.mkdir(parents=True, exist_ok=True)
            prepare(folder, int(arguments.rows))
        truth = folder / "mimic3" / "cohort"
        counted = measured("--count", folder)
        gz, parquet = (measured("--extract", folder / form, truth) for form in ("mimic3/raw", "parquet"))
        one = measured("--extract", folder / "mimic3/raw", truth, "--variables", 1)
    from timediff import __version__

    results = {
        "command": f"python benchmarks/extraction.py --rows {arguments.rows:g}",
        "date": time.strftime("%Y-%m-%d"),
        "device": f"{os.cpu_count()} CPU cores",
        "version": __version__,
        "count_csv_gz": counted,
        "extract_csv_gz": {**gz, "against_counting": gz["seconds"] / counted["seconds"]},
        "extract_csv_gz_heart_rate_alone": {**one, "against_counting": one["seconds"] / counted["seconds"]},
        "extract_parquet": parquet,
    }
    print(json.dumps(json.loads(json.dumps(results), parse_float=lambda text: float(f"{float(text):.4g}")), indent=2))


if __name__ == "__main__":
    main()
