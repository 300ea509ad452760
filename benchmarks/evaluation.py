"""How long `timediff evaluate --quick` takes on stays of the shape of MIMIC-III (25 steps, 7 features and their masks).

    python benchmarks/evaluation.py [--stays 5000] [--out RESULT.json]
    python benchmarks/evaluation.py --earlier REVISION [--stays 1000] [--rounds 1] [--out RESULT.json]

Simulated: so many training and synthetic stays, a quarter as many held out. Each metric is timed with its floor.

With --earlier an earlier version evaluates the same stays, and the two take turns, as in `benchmarks/regression.py`.
The stays are those of today's simulation, without the order relations of its schema, which an earlier version cannot
read. Seconds are told by the clock and as those that the processor worked: other work on the machine moves the former,
so the ratio is of the latter. It is of all metrics that each version measures, the new ones of today among them.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from regression import ROOT, printed, tree_of
from timediff import Cohort, __version__
from timediff.evaluation.case import Case, Measurement
from timediff.evaluation.registry import METRICS
from timediff.evaluation.settings import EvaluationSettings
from timediff.runtime.files import write_atomically
from timediff.sources.simulated import simulate

STEPS = 25
IN_TURN = """
import json, sys, time
import timediff as td

def seconds(metric):
    clock, work = time.perf_counter(), time.process_time()
    td.evaluate(train, test, synthetic, settings=td.EvaluationSettings.quick(only=(metric,)))
    return {"clock": time.perf_counter() - clock, "processor": time.process_time() - work}

train, test, synthetic = map(td.read_cohort, sys.argv[1:])
print(json.dumps({metric: seconds(metric) for metric in td.EvaluationSettings.quick().metrics}))
"""
Seconds = Mapping[str, Mapping[str, float]]  # by metric, then by the clock and of the processor


def cohorts(stays: int) -> tuple[Cohort, Cohort, Cohort]:
    """Training, held-out and synthetic stays."""
    train, test = simulate(stays * 5 // 4, steps=STEPS, seed=0).split(test=0.2, seed=0)
    return train, test, simulate(stays, steps=STEPS, seed=1)


def timed(stays: int) -> dict[str, Any]:
    train, test, synthetic = cohorts(stays)
    case = Case(train, test, EvaluationSettings.quick())
    seconds = {}
    for metric in case.settings.metrics:
        found = METRICS(metric)
        started = time.perf_counter()
        found.measure(Measurement(case, synthetic))
        if found.floored:
            found.measure(Measurement(case, case.stand_in(stays), floor=True))
        seconds[metric] = time.perf_counter() - started
    return {"seconds": seconds, "seconds_in_all": sum(seconds.values())}


def compared(earlier: Path, stays: int, rounds: int) -> dict[str, Any]:
    """Seconds of both versions by metric, means over rounds, and the median ratio of what the processor worked."""
    pairs = []
    with tempfile.TemporaryDirectory() as scratch:
        paths = written(Path(scratch), stays)
        for k in range(rounds):
            trees = [earlier, ROOT] if k % 2 == 0 else [ROOT, earlier]  # neither is always first
            by_tree: dict[Path, Seconds] = {tree: json.loads(printed(tree, IN_TURN, *paths)) for tree in trees}
            pairs.append((by_tree[earlier], by_tree[ROOT]))
            print(f"round {k + 1} of {rounds}: {pairs[-1]}", file=sys.stderr, flush=True)
    ratios = [in_all(now)["processor"] / in_all(before)["processor"] for before, now in pairs]
    versions = {"earlier": [before for before, _ in pairs], "now": [now for _, now in pairs]}
    return {name: means(several) for name, several in versions.items()} | {"ratio": statistics.median(ratios)}


def written(folder: Path, stays: int) -> list[str]:
    paths = []
    for name, cohort in zip(("train", "test", "synthetic"), cohorts(stays), strict=True):
        paths.append(str(folder / name))
        replace(cohort, schema=replace(cohort.schema, relations=())).write(paths[-1])
    return paths


def in_all(seconds: Seconds) -> dict[str, float]:
    return {kind: sum(one[kind] for one in seconds.values()) for kind in ("clock", "processor")}


def means(several: Sequence[Seconds]) -> dict[str, Any]:
    metrics = {
        metric: {kind: statistics.mean(one[metric][kind] for one in several) for kind in ("clock", "processor")}
        for metric in several[0]
    }
    return {"metrics": metrics, "in_all": in_all(metrics)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stays", type=int)
    parser.add_argument("--earlier", metavar="REVISION", help="or a folder that holds its files")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    stays = given.stays or (5000 if given.earlier is None else 1000)
    options, about = f"--stays {stays}", {"date": time.strftime("%Y-%m-%d"), "device": f"{os.cpu_count()} CPU cores"}
    if given.earlier is None:
        found = {"version": __version__} | timed(stays)
    else:
        name = Path(given.earlier).name
        options = f"--earlier {name} {options} --rounds {given.rounds}"
        about |= {"earlier": name, "stays": stays, "held_out": stays // 4, "threads": torch.get_num_threads()}
        with tree_of(given.earlier) as tree:
            found = compared(tree, stays, given.rounds)
    results = {"command": f"python benchmarks/evaluation.py {options}"} | about | found
    short = json.loads(json.dumps(results), parse_float=lambda text: float(f"{float(text):.4g}"))
    text = json.dumps(short, indent=2)
    if given.out is not None:
        write_atomically(given.out, text + "\n")
    print(text)


if __name__ == "__main__":
    main()
