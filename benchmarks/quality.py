"""How good synthetic stays are: variants of the generator × training seeds, each judged by several judges.

    python benchmarks/quality.py TRAIN [--test TEST] [--variant "NAME; KEY=VALUE; …"]… [--seeds 3] [--judges 5]
                                 [--protocols strict paper] [--metrics discriminative nnaa] [--jobs 3] [--save FOLDER]
    python benchmarks/quality.py TRAIN [--test TEST] --saved FOLDER --metrics tstr

TRAIN and TEST are cohort folders; without TEST, TRAIN is split as its schema says, seed 0. The keys of a variant are
settings (`training.steps=4000`) or one of
    preset=NAME       the preset that it starts from (fast)
    seconds=S         train as many updates as fit into S seconds, by the speed of a few first ones
    seeds=N           this variant with so many training seeds
    calls=A,B,C       with the first seed, sample with so many network calls too, one row each
As many stays are sampled as there are training stays. A row is the mean over training seeds; `each` has single ones;
"real against real" is the floor: training stays in place of synthetic ones. --jobs processes share the device, so that
`training_seconds` are longer than alone. --save keeps the cohorts of the first variant, and --saved scores them later.
"""

import argparse
import json
import multiprocessing
import os
import shlex
import shutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from timediff import Cohort, TimeDiff, __version__, read_cohort
from timediff.config import parse_assignment
from timediff.evaluation import FLOOR, Case, EvaluationSettings
from timediff.metrics.suite import MEASURES
from timediff.progress import silent

WARM, TIMED = 20, 100  # updates before and while the speed is measured


@dataclass(frozen=True)
class Variant:
    name: str
    preset: str = "fast"
    seconds: float | None = None
    seeds: int | None = None
    calls: tuple[int, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def parse(text: str) -> "Variant":
        name, *rest = (part.strip() for part in text.split(";"))
        given = dict(part.split("=", 1) for part in rest if "." not in part.split("=", 1)[0])
        settings = dict(parse_assignment(part) for part in rest if "." in part.split("=", 1)[0])
        calls = tuple(int(one) for one in given.get("calls", "").split(",") if one)
        seconds = float(given["seconds"]) if "seconds" in given else None
        seeds = int(given["seeds"]) if "seeds" in given else None
        return Variant(name, given.get("preset", "fast"), seconds, seeds, calls, settings)

    def model(self, train: Cohort, seed: int) -> TimeDiff:
        settings = dict(self.settings)
        if self.seconds is not None:
            clock = [0.0]

            def watch(done: int, total: int, **values: float) -> None:
                if done == WARM:
                    _wait()
                    clock[0] = time.perf_counter()

            short = {**settings, "training.steps": WARM + TIMED, "training.validation": 0.0}
            TimeDiff(self.preset, assignments=short).fit(train, seed=seed, progress=watch)
            _wait()
            settings["training.steps"] = max(1, int(self.seconds * TIMED / (time.perf_counter() - clock[0])))
        return TimeDiff(self.preset, assignments=settings)


@dataclass(frozen=True)
class Job:
    variant: Variant
    seed: int
    arguments: argparse.Namespace
    folder: Path | None = None

    def row(self, calls: int | None) -> str:
        return self.variant.name if calls is None else f"{self.variant.name}, {calls} calls"


Row = tuple[str, int, dict[str, float]]


def cohorts(arguments: argparse.Namespace) -> tuple[Cohort, Cohort]:
    train = read_cohort(arguments.train)
    return (train, read_cohort(arguments.test)) if arguments.test else train.split(seed=0)


def run(job: Job) -> list[Row]:
    """Fits, samples and judges one variant with one seed."""
    torch.set_num_threads(1 if torch.cuda.is_available() else 2)
    arguments = job.arguments
    train, test = cohorts(arguments)
    if job.variant.name == FLOOR:
        return [(FLOOR, 0, scores(train, test, None, arguments))]
    model, rows = job.variant.model(train, job.seed), []
    started, said = time.perf_counter(), []
    model.fit(train, seed=job.seed, say=said.append)
    seconds = time.perf_counter() - started
    print(f"{job.variant.name}, seed {job.seed}: {seconds:.0f} s. {' '.join(said)}", flush=True)
    for calls in (None, *(job.variant.calls if job.seed == 0 else ())):
        started = time.perf_counter()
        synthetic = model.sample(len(train), seed=job.seed + 1000, **({"steps": calls} if calls else {}))
        found = {"training_seconds": seconds, "updates": float(model.settings.training.steps)}
        found["sampling_seconds"] = time.perf_counter() - started
        if job.folder and calls is None:
            synthetic.write(job.folder)
        rows.append((job.row(calls), job.seed, found | scores(train, test, synthetic, arguments)))
        print(json.dumps(rounded(rows[-1])), flush=True)
    return rows


def scores(train: Cohort, test: Cohort, cohort: Cohort | None, arguments: argparse.Namespace) -> dict[str, float]:
    """Headline numbers of a cohort, or of training stays in its place."""
    found: dict[str, float] = {}
    for protocol in arguments.protocols:
        settings = EvaluationSettings(protocol=protocol, repetitions=arguments.judges)
        case = Case(train, test, settings)
        judged = case.stand_in(len(test)) if cohort is None else cohort
        for metric in arguments.metrics:
            if cohort is None and metric == "nnaa":
                continue
            for score in MEASURES[metric][0](case, judged, "", cohort is None, silent)[0]:
                if score.feature is None:
                    name = ", ".join(filter(None, [protocol, score.metric, score.judge, score.what]))
                    found[name] = score.value
    return found | rates(test, train if cohort is None else cohort)


def rates(test: Cohort, cohort: Cohort) -> dict[str, float]:
    """How far off the label's rate is, and the missing rates of temporal features at most."""
    found = {}
    if test.schema.label is not None:
        found["label_rate_error"] = float(np.mean(cohort.label) - np.mean(test.label))
    missing = [np.isnan(one).mean(axis=(1, 2)) for one in (_stack(cohort), _stack(test))]
    if missing[1].any():
        found["largest_missing_rate_error"] = float(np.abs(missing[0] - missing[1]).max())
    return found


def saved(arguments: argparse.Namespace) -> list[Row]:
    train, test = cohorts(arguments)
    rows: list[Row] = []
    for folder in sorted(arguments.saved.iterdir()):
        rows.append((arguments.saved.name, int(folder.name), scores(train, test, read_cohort(folder), arguments)))
        print(json.dumps(rounded(rows[-1])), flush=True)
    return rows


def table(rows: list[Row]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in dict.fromkeys(row[0] for row in rows):
        mine = {seed: values for row, seed, values in rows if row == name}
        keys = list(dict.fromkeys(key for values in mine.values() for key in values))
        means = {key: float(np.mean([values[key] for values in mine.values()])) for key in keys}
        found[name] = {"seeds": len(mine), **means}
        if len(mine) > 1:
            found[name]["each"] = {key: [values[key] for values in mine.values()] for key in keys}
    return found


def rounded(value: Any) -> Any:
    return json.loads(json.dumps(value), parse_float=lambda text: float(f"{float(text):.4g}"))


def _stack(cohort: Cohort) -> Any:
    return np.stack([cohort.series[feature.name] for feature in cohort.schema.temporal])


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=Path)
    parser.add_argument("--test", type=Path)
    parser.add_argument("--variant", action="append", metavar="NAME; KEY=VALUE; …")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--judges", type=int, default=5)
    parser.add_argument("--protocols", nargs="+", default=["strict"])
    parser.add_argument("--metrics", nargs="+", default=["discriminative", "nnaa"])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--saved", type=Path)
    parser.add_argument("--out", type=Path, help="also write the results there")
    arguments = parser.parse_args()
    if arguments.saved:
        rows = saved(arguments)
    else:
        if arguments.save:
            shutil.rmtree(arguments.save, ignore_errors=True)
        variants = [Variant.parse(text) for text in arguments.variant or ["fast"]]
        jobs = [
            Job(one, seed, arguments, arguments.save / str(seed) if arguments.save and one is variants[0] else None)
            for one in variants
            for seed in range(one.seeds or arguments.seeds)
        ]
        jobs.append(Job(Variant(FLOOR), 0, arguments))
        with ProcessPoolExecutor(arguments.jobs, multiprocessing.get_context("spawn")) as pool:
            rows = [row for rows in pool.map(run, jobs) for row in rows]
    told = [Path(word).name if Path(word).exists() else word for word in sys.argv[1:]]
    results = {
        "command": shlex.join(["python", "benchmarks/quality.py", *told]),
        "date": time.strftime("%Y-%m-%d"),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else f"{os.cpu_count()} CPU cores",
        "version": __version__,
        "judges": arguments.judges,
        "processes": arguments.jobs,
        "rows": table(rows),
    }
    text = json.dumps(rounded(results), indent=2)
    if arguments.out:
        arguments.out.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
