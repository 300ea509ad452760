"""Every baseline, and TimeDiff, on Stocks and Energy under the paper's protocol, beside the paper's own numbers.

    python benchmarks/baselines.py STOCKS ENERGY --out RESULTS.json [--only timegan fast …] [--classifiers 5] [--jobs 1]
                                   [--seeds 0 1 …] [--set KEY=VALUE …]
    python benchmarks/baselines.py --table RESULTS.json

STOCKS and ENERGY are cohort folders (`timediff extract stocks …`). A row of RESULTS.json is one training seed; those
that it has already, with the same --set, are not computed again, so a run that was stopped goes on, and one command
may add to another. With --jobs several rows share the device, and their seconds are longer for it; the row says so.
--table prints them as Markdown, the mean over training seeds and its ends.
"""

import argparse
import itertools
import json
import multiprocessing
import os
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import torch

from timediff import __version__, generator, read_cohort
from timediff.evaluation.case import Case, Measurement
from timediff.evaluation.registry import METRICS
from timediff.evaluation.score import Score
from timediff.evaluation.settings import EvaluationSettings
from timediff.settings.resolve import generator_of, parse_assignment, resolve

# Discriminative scores of Stocks and Energy as Tian et al. print them in their table of all methods. They belong to the
# presets that are as published; what is trained in another way stands beside none.
PUBLISHED: dict[str, tuple[float, float] | None] = {
    "timegan-published": (0.102, 0.236),
    "timegan": None,  # the same preset; in results of 0.1.0 it is what is called latent-forcing now
    "latent-forcing": None,
    "rcgan-published": (0.196, 0.336),
    "rcgan": None,
    "crnngan-published": (0.399, 0.499),
    "crnngan": None,
    "tforcing-published": (0.226, 0.483),
    "tforcing": None,
    "pforcing-published": (0.257, 0.412),
    "pforcing": None,
    "rnn-published": None,  # which they compare with, but print no scores of
    "rnn": None,
    "ehrmgan-published": (0.483, 0.497),
    "ehrmgan": None,
    "gtgan-published": (0.077, 0.221),
    "gtgan": None,
    "halo-published": (0.491, 0.500),
    "halo": None,
    "dspd-gp-published": (0.081, 0.416),
    "dspd-gp": None,
    "dspd-ou-published": (0.098, 0.290),
    "dspd-ou": None,
    "cspd-gp-published": (0.313, 0.392),
    "cspd-gp": None,
    "cspd-ou-published": (0.283, 0.384),
    "cspd-ou": None,
    "fast": (0.048, 0.088),  # of TimeDiff as published
}
COHORTS = ("stocks", "energy")


def row(cohort: str, preset: str, seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Fits, samples and scores one generator on one cohort, with one training seed."""
    torch.set_num_threads(2 if arguments.jobs == 1 else 1)
    train, test = read_cohort(getattr(arguments, cohort)).split(seed=0, by="random")  # as TimeGAN
    changes = dict(map(parse_assignment, arguments.set))
    model = generator(generator_of(preset))(settings=resolve(preset, assignments=changes))
    started = time.perf_counter()
    model.fit(train, seed=seed)
    _wait()
    trained = time.perf_counter()
    made = model.sample(len(train), seed=1000 + seed)
    sampled = time.perf_counter()
    case = Case(train, test, EvaluationSettings(protocol="paper", repetitions=arguments.classifiers))
    found = METRICS("discriminative").measure(Measurement(case, made))
    (score,) = (one for one in found if isinstance(one, Score) and one.what == "score")
    return {
        "cohort": cohort, "preset": preset, "seed": seed, "changes": changes,
        "score": score.value, "classifier_sd": score.std.get("classifier"), "updates": model.settings.training.steps,
        "batch": model.settings.training.batch,
        "training_seconds": trained - started, "sampling_seconds": sampled - trained, "stays": len(made),
        "classifiers": arguments.classifiers, "rows_at_once": arguments.jobs, "version": __version__,
        "date": time.strftime("%Y-%m-%d"), "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else f"{os.cpu_count()} CPU cores",
    }  # fmt: skip


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| | | published | ours | updates × stays | training, s | sampling, stays/s |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for preset in PUBLISHED:
        for number, cohort in enumerate(COHORTS):
            found = [one for one in rows if (one["cohort"], one["preset"]) == (cohort, preset)]
            for changes in dict.fromkeys(json.dumps(one["changes"]) for one in found):
                seeds = [one for one in found if json.dumps(one["changes"]) == changes]
                one, scores = seeds[0], [one["score"] for one in seeds]
                named = " ".join([f"`{preset}`", *(f"{key}={value}" for key, value in one["changes"].items())])
                ends = f" ({min(scores):.3f} to {max(scores):.3f})" if len(scores) > 1 else ""
                seconds = statistics.mean(one["training_seconds"] for one in seeds)
                speed = statistics.mean(one["stays"] / one["sampling_seconds"] for one in seeds)
                published = PUBLISHED[preset]
                cited = f"{published[number]:.3f}" if published else "–"
                lines.append(
                    f"| {named} | {cohort.title()} | {cited} | "
                    f"{statistics.mean(scores):.3f}{ends} | {one['updates']:,} × {one['batch']} | {seconds:.0f} | "
                    f"{speed:,.0f} |"
                )
    return "\n".join(lines)


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stocks", type=Path, nargs="?")
    parser.add_argument("energy", type=Path, nargs="?")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", nargs="+", choices=PUBLISHED, default=list(PUBLISHED))
    parser.add_argument("--cohorts", nargs="+", choices=COHORTS, default=list(COHORTS))
    parser.add_argument("--classifiers", type=int, default=5)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="settings in place of the presets'")
    parser.add_argument("--table", type=Path)
    arguments = parser.parse_args()
    if arguments.table:
        print(table(json.loads(arguments.table.read_text())))
        return
    if not (arguments.out and arguments.energy):
        parser.error("expected STOCKS, ENERGY and --out, or --table")
    rows = json.loads(arguments.out.read_text()) if arguments.out.exists() else []
    changes = dict(map(parse_assignment, arguments.set))
    done = [(one["cohort"], one["preset"], one["seed"]) for one in rows if one["changes"] == changes]
    wanted = list(itertools.product(arguments.cohorts, arguments.only, arguments.seeds))
    with ProcessPoolExecutor(arguments.jobs, multiprocessing.get_context("spawn")) as pool:
        coming = [pool.submit(row, *one, arguments) for one in wanted if one not in done]
        for each in as_completed(coming):
            rows.append(json.loads(json.dumps(each.result()), parse_float=lambda text: float(f"{float(text):.4g}")))
            arguments.out.write_text(json.dumps(rows, indent=2) + "\n")
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
