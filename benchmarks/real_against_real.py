"""What real stays score against real stays: the rows "Real Data" of the paper's table, and the floors of each split.

    python benchmarks/real_against_real.py COHORT [COHORT …] [--repetitions 10]
    python benchmarks/real_against_real.py COHORT [COHORT …] --protocol strict --split random blocks time --quick
    python benchmarks/real_against_real.py COHORT [COHORT …] --protocol strict --split random blocks time --means-alone

Each cohort (as `timediff extract stocks` writes it) is split, seed 0: at random as the paper splits them, so that
training and test windows overlap; in blocks of the series with gaps between them; or in time. Under the paper's
protocol classifiers then treat test stays as if they were synthetic (discriminative score), and predictors are trained
on training stays (predictive score). Under the strict one training stays stand in for synthetic ones, each classifier
of the panel tells them from test stays, and `auc_of_one_mean` is what one feature's mean over a window tells by itself,
with no classifier at all (--means-alone stops there). --quick is three repetitions. With --out the rows that are done
are in that file while others run.
"""

import argparse
import itertools
import json
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from timediff import Cohort, __version__
from timediff.data.cohort import read_cohort
from timediff.evaluation.case import Case, Measurement
from timediff.evaluation.classifiers.tree_classifier import separation
from timediff.evaluation.registry import METRICS
from timediff.evaluation.score import Score
from timediff.evaluation.settings import EvaluationSettings
from timediff.runtime.files import write_atomically

QUICK = 3  # repetitions


def row(path: Path, split: str, arguments: argparse.Namespace, repetitions: int) -> dict[str, Any]:
    protocol = arguments.protocol
    train, test = read_cohort(path).split(seed=0, by=split)
    case = Case(train, test, EvaluationSettings(protocol=protocol, repetitions=repetitions))
    found: dict[str, Any] = {"cohort": path.name, "split": split, "protocol": protocol}
    found |= {"training_windows": len(train), "test_windows": len(test)}
    if protocol == "paper":
        return found | as_published(case)
    name, area = of_one_mean(case.test, case.stand_in(len(test)))
    found |= {"auc_of_one_mean": area, "whose": name}
    return found if arguments.means_alone else found | by_the_panel(case)


def as_published(case: Case) -> dict[str, Any]:
    found = {}
    for metric, what in (("discriminative", "score"), ("predictive", "error")):
        started = time.perf_counter()
        scores = METRICS(metric).measure(Measurement(case, case.train, floor=True))
        score = next(s for s in scores if isinstance(s, Score) and s.what == what)
        found[metric] = stated(score) | {"seconds": time.perf_counter() - started}
    return found


def by_the_panel(case: Case) -> dict[str, Any]:
    stand_in = case.stand_in(len(case.test))
    started = time.perf_counter()
    scores = METRICS("discriminative").measure(Measurement(case, stand_in, floor=True))
    auc = {str(s.classifier): stated(s) for s in scores if isinstance(s, Score) and s.what == "auc"}
    return {"auc": auc, "seconds": time.perf_counter() - started}


def of_one_mean(real: Cohort, other: Cohort) -> tuple[str, float]:
    """The feature whose mean over a window tells most, and the AUC by it alone."""
    is_real = np.repeat([True, False], [len(real), len(other)])
    areas = {}
    for feature in real.schema.temporal:
        means = np.concatenate([np.nanmean(cohort.series[feature.name], axis=1) for cohort in (real, other)])
        areas[feature.name] = separation(means, is_real)
    name = max(areas, key=lambda one: areas[one])
    return name, areas[name]


def stated(score: Score) -> dict[str, Any]:
    sd = (score.std or {}).get("classifier")
    return {"value": score.value, "sd_of_classifiers": sd, "interval": [score.low, score.high]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cohorts", type=Path, nargs="+")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--split", nargs="+", choices=["random", "blocks", "time"], default=["random"])
    parser.add_argument("--protocol", choices=["paper", "strict"], default="paper")
    parser.add_argument("--means-alone", action="store_true")
    parser.add_argument("--out", type=Path, help="a file that has the rows so far while it runs")
    arguments = parser.parse_args()
    if arguments.means_alone and arguments.protocol != "strict":
        raise SystemExit("--means-alone is for --protocol strict.")
    repetitions = QUICK if arguments.quick else arguments.repetitions
    cuda = torch.cuda.is_available()
    told = [Path(word).name if Path(word).exists() else word for word in sys.argv[1:]]
    results: dict[str, Any] = {
        "command": shlex.join(["python", "benchmarks/real_against_real.py", *told]),
        "date": time.strftime("%Y-%m-%d"),
        "device": torch.cuda.get_device_name() if cuda else f"{os.cpu_count()} CPU cores",
        "version": __version__,
        "repetitions": repetitions,
        "rows": [],
    }
    for path, split in itertools.product(arguments.cohorts, arguments.split):
        results["rows"].append(row(path, split, arguments, repetitions))
        short = json.loads(json.dumps(results), parse_float=lambda text: float(f"{float(text):.4g}"))
        text = json.dumps(short, indent=2)
        if arguments.out is not None:
            write_atomically(arguments.out, text + "\n")
    print(text)


if __name__ == "__main__":
    main()
