"""Counts and missing rates of our cohorts, for the paper's table of data sets.

    python benchmarks/datasets.py [--data FOLDER] [--stays 2000] [--out FILE]

Of what is in FOLDER (the demos of MIMIC-III and MIMIC-IV, which are 100 patients each, Stocks and Energy), and of
simulated tables of MIMIC-III, MIMIC-IV and eICU, by our settings and as published.

The paper counts features with a mask a vital sign and the label: 7 + 7 + 1 of MIMIC-III. `missing` is the fraction of
the values of vital signs that are not there; `missing_of_channels` is the same over all these channels, of which masks
and label are never missing.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from timediff.data.cohort import Cohort
from timediff.data.describe import missing_rate
from timediff.errors import TimeDiffError
from timediff.sources.raw import write_raw
from timediff.sources.registry import resolve, source

PAPER = ("mimic3", "mimic4", "eicu")
DEMOS = {
    "mimic3": "mimic3_demo",
    "mimic4": "mimic4_demo",
    "eicu": "eicu_demo",
    "stocks": "timegan",
    "energy": "timegan",
}


def channels(cohort: Cohort) -> int:
    """As the paper counts features: each vital sign with its mask where any is missing, and the label."""
    masks = sum(bool((values != values).any()) for values in cohort.series.values())
    return len(cohort.series) + masks + (cohort.schema.label is not None)


def row(name: str, place: str, *, as_published: bool = False) -> dict[str, Any]:
    found = source(name).extract(place, resolve(name, as_published=as_published))
    cohort = found.cohort
    missing, features = missing_rate(cohort), channels(cohort)
    return {
        "found": found.found,
        "dropped": dict(found.dropped),
        "stays": len(cohort),
        "vital_signs": len(cohort.series),
        "features": features,
        "steps": cohort.schema.steps,
        "missing": round(missing, 4),
        "missing_of_channels": round(missing * len(cohort.series) / features, 4),
        "label": None if cohort.schema.label is None else round(float(cohort.label.mean()), 4),
    }


def rows(name: str, place: str) -> dict[str, Any]:
    """By our settings and, where it is another thing, as published."""
    found = {}
    for key in ("ours", "as_published") if name in PAPER else ("ours",):
        try:
            found[key] = row(name, place, as_published=key == "as_published")
        except TimeDiffError as error:
            found[key] = {"not_extracted": str(error).splitlines()[0].replace(place, Path(place).name)}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("TIMEDIFF_DATA", "../shared/data")))
    parser.add_argument("--stays", type=int, default=2000, help="of each simulated database")
    parser.add_argument("--out", type=Path, metavar="FILE")
    given = parser.parse_args()
    at_hand = {name: rows(name, str(given.data / folder)) for name, folder in DEMOS.items()}
    simulated = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name in PAPER:
            write_raw(name, Path(scratch) / name, given.stays, seed=0)
            simulated[name] = rows(name, str(Path(scratch) / name / "raw"))
    result = {
        "command": f"python benchmarks/datasets.py --stays {given.stays}",
        "demo_patients": 100,
        "at_hand": at_hand,
        "simulated": simulated,
    }
    print(json.dumps(result, indent=1))
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
