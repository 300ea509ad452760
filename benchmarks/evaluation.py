"""How long `timediff evaluate --quick` takes on stays of the shape of MIMIC-III (25 steps, 7 features and their masks).

    python benchmarks/evaluation.py [--stays 5000]

Simulated: so many training and synthetic stays, a quarter as many held out. Each metric is timed with its floor.
"""

import argparse
import json
import os
import time

from timediff import __version__
from timediff.evaluation.case import Case, Measurement
from timediff.evaluation.registry import METRICS
from timediff.evaluation.settings import EvaluationSettings
from timediff.sources.simulated import simulate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stays", type=int, default=5000)
    stays = parser.parse_args().stays
    train, test = simulate(stays * 5 // 4, steps=25, seed=0).split(test=0.2, seed=0)
    case = Case(train, test, EvaluationSettings.quick())
    synthetic = simulate(stays, steps=25, seed=1)
    seconds = {}
    for metric in case.settings.metrics:
        found = METRICS(metric)
        started = time.perf_counter()
        found.measure(Measurement(case, synthetic))
        if found.floored:
            found.measure(Measurement(case, case.stand_in(stays), floor=True))
        seconds[metric] = time.perf_counter() - started
    results = {
        "command": f"python benchmarks/evaluation.py --stays {stays}",
        "date": time.strftime("%Y-%m-%d"),
        "device": f"{os.cpu_count()} CPU cores",
        "version": __version__,
        "seconds": seconds,
        "seconds_in_all": sum(seconds.values()),
    }
    print(json.dumps(json.loads(json.dumps(results), parse_float=lambda text: float(f"{float(text):.4g}")), indent=2))


if __name__ == "__main__":
    main()
