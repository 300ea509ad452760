"""What real stays score against real stays under the paper's protocol: the rows "Real Data" of its table.

    python benchmarks/real_against_real.py COHORT [COHORT …] [--repetitions 10]

Each cohort (as `timediff extract stocks` writes it) is split at random, seed 0, as the paper splits them: its
windows overlap. Classifiers then treat test stays as if they were synthetic (discriminative score); the predictors are
trained on training stays (predictive score).
"""

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import torch

from timediff import __version__
from timediff.data.cohort import read_cohort
from timediff.evaluation.case import Case, Measurement
from timediff.evaluation.registry import METRICS
from timediff.evaluation.score import Score
from timediff.evaluation.settings import EvaluationSettings


def row(path: Path, repetitions: int) -> dict[str, Any]:
    train, test = read_cohort(path).split(seed=0, by="random")
    case = Case(train, test, EvaluationSettings(protocol="paper", repetitions=repetitions))
    found: dict[str, Any] = {"cohort": path.name, "training_windows": len(train), "test_windows": len(test)}
    for metric, what in (("discriminative", "score"), ("predictive", "error")):
        started = time.perf_counter()
        scores = METRICS(metric).measure(Measurement(case, train, floor=True))
        score = next(s for s in scores if isinstance(s, Score) and s.what == what)
        found[metric] = {
            "value": score.value,
            "sd_of_classifiers": score.std["classifier"],
            "interval": [score.low, score.high],
            "seconds": time.perf_counter() - started,
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cohorts", type=Path, nargs="+")
    parser.add_argument("--repetitions", type=int, default=10)
    arguments = parser.parse_args()
    cuda = torch.cuda.is_available()
    results = {
        "command": f"python benchmarks/real_against_real.py {' '.join(path.name for path in arguments.cohorts)}",
        "date": time.strftime("%Y-%m-%d"),
        "device": torch.cuda.get_device_name() if cuda else f"{os.cpu_count()} CPU cores",
        "version": __version__,
        "repetitions": arguments.repetitions,
        "rows": [row(path, arguments.repetitions) for path in arguments.cohorts],
    }
    print(json.dumps(json.loads(json.dumps(results), parse_float=lambda text: float(f"{float(text):.4g}")), indent=2))


if __name__ == "__main__":
    main()
