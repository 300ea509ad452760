"""GRU classifiers side by side against one after the other, on the shape of MIMIC-III.

    python benchmarks/classifiers.py --device cuda [--repetitions 10] [--iterations 500]

Simulated noise: 5,000 real and 5,000 synthetic stays of 25 steps and 15 channels. For the paper's and the
two-layer GRU and for the paper's predictor, both ways in the same run and for the same number of iterations,
after a short warm-up of each. `largest_difference` is that of any held-out logit or error between the two ways, in
standard deviations of it.
"""

import argparse
import json
import os
import platform
import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from timediff import __version__
from timediff.evaluation.classifiers import discriminators
from timediff.evaluation.classifiers import series_classifiers as grus
from timediff.evaluation.classifiers.series_classifiers import Recipe, Repetition, train_and_measure
from timediff.evaluation.metrics import predictive

STEPS, CHANNELS = 25, 15


def timed(
    recipe: Recipe, series: Any, targets: Any, tasks: list[Repetition], side_by_side: bool, how: dict[str, Any]
) -> Any:
    """Seconds, and what was measured."""
    for iterations in (20, recipe.iterations):
        started = time.perf_counter()
        found = train_and_measure(
            replace(recipe, iterations=iterations), series, targets, tasks, seed=0, side_by_side=side_by_side, **how
        )
        seconds = time.perf_counter() - started  # results come back to the host, so nothing is still under way
    return seconds, np.stack(found)


def compared(recipe: Recipe, series: Any, targets: Any, tasks: list[Repetition], how: dict[str, Any]) -> dict[str, Any]:
    together, here = timed(recipe, series, targets, tasks, True, how)
    apart, there = timed(recipe, series, targets, tasks, False, how)
    return {
        "iterations": recipe.iterations,
        "units": recipe.hidden,
        "side_by_side_seconds": together,
        "one_after_the_other_seconds": apart,
        "ratio": apart / together,
        "largest_difference": float(np.abs(here - there).max() / there.std()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--iterations", type=int, help="of every network; without it 2,000, and 5,000 of the predictor")
    parser.add_argument("--stays", type=int, default=5000, help="real, and as many synthetic")
    arguments = parser.parse_args()
    n, device = arguments.stays, arguments.device
    series = np.random.default_rng(0).normal(size=(2 * n, STEPS, CHANNELS)).astype(np.float32)
    series[n:, :, 0] += 0.1
    is_real = np.repeat(np.float32([1, 0]), n)[:, None, None]
    results: dict[str, Any] = {
        "command": f"python benchmarks/classifiers.py --device {device} --repetitions {arguments.repetitions}"
        + (f" --iterations {arguments.iterations}" if arguments.iterations else "")
        + (f" --stays {n}" if n != 5000 else ""),
        "date": time.strftime("%Y-%m-%d"),
        "device": torch.cuda.get_device_name() if device.startswith("cuda") else f"{os.cpu_count()} CPU cores",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "version": __version__,
    }
    for classifier in ("paper", "strong"):
        recipe = replace(discriminators.recipe(classifier, CHANNELS), patience=None)
        recipe = replace(recipe, iterations=arguments.iterations or recipe.iterations)
        tasks = [discriminators.split(classifier, n, n, 0, r) for r in range(arguments.repetitions)]
        how = {"loss": grus.cross_entropy, "measure": grus.logit, "device": device}
        results[classifier] = compared(recipe, series, is_real, tasks, how)
    recipe = Recipe(CHANNELS // 2, reads="every step", iterations=arguments.iterations or predictive.ITERATIONS)
    tasks = [Repetition((np.arange(n, 2 * n),), np.arange(n))] * arguments.repetitions
    how = {"loss": grus.absolute_error, "measure": grus.absolute_error, "device": device}
    results["predictor"] = compared(recipe, series[:, :-1], series[:, 1:], tasks, how)
    print(json.dumps(json.loads(json.dumps(results), parse_float=lambda text: float(f"{float(text):.4g}")), indent=2))


if __name__ == "__main__":
    main()
