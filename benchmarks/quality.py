"""How good synthetic stays are: variants of the generator × training seeds, each scored by several classifiers.

    python benchmarks/quality.py TRAIN [--test TEST] [--variant "NAME; KEY=VALUE; …"]… [--seeds 3] [--classifiers 5]
                                 [--split random|blocks|time] [--protocols strict paper]
                                 [--metrics discriminative nnaa] [--jobs 4] [--save FOLDER]
    python benchmarks/quality.py TRAIN [--test TEST] --saved FOLDER --metrics tstr

TRAIN and TEST are cohort folders; without TEST, TRAIN is split as --split or else its schema says, seed 0. The keys
of a variant are settings (`training.steps=4000`) or one of
    preset=NAME       the preset that it starts from (fast), which also says which generator it is
    seconds=S         train as many updates as fit into S seconds, by the speed of a few first ones
    seeds=N           this variant with so many training seeds
    calls=A,B,C       with the first seed, sample with so many network calls too, one row each
    stays=N           sample so many stays, and not as many as there are to learn from
    run=FOLDER        nothing is fitted: a run that `timediff fit` has finished with this cohort, and its seconds
Variants are fitted and sampled one after the other, alone on the device, so that `training_seconds` can be compared;
then --jobs processes evaluate what they gave. A row is the mean over training seeds; `each` has single ones; "real
against real" is the floor: training stays in place of synthetic ones. --save keeps the cohorts (FOLDER/ROW/SEED),
--saved evaluates them later, or elsewhere.
"""

import argparse
import json
import multiprocessing
import os
import shlex
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from timediff import Cohort, Generator, __version__, generator, load, read_cohort
from timediff.evaluation.case import Case, Measurement
from timediff.evaluation.evaluate import FLOOR
from timediff.evaluation.registry import METRICS
from timediff.evaluation.score import Score
from timediff.evaluation.settings import EvaluationSettings
from timediff.settings.resolve import generator_of, parse_assignment

WARM, TIMED = 20, 100  # updates before and while the speed is measured


@dataclass(frozen=True)
class Variant:
    name: str
    preset: str = "fast"
    seconds: float | None = None
    seeds: int | None = None
    calls: tuple[int, ...] = ()
    stays: int | None = None
    run: Path | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def parse(text: str) -> "Variant":
        name, *rest = (part.strip() for part in text.split(";"))
        given = dict(part.split("=", 1) for part in rest if "." not in part.split("=", 1)[0])
        settings = dict(parse_assignment(part) for part in rest if "." in part.split("=", 1)[0])
        calls = tuple(int(one) for one in given.get("calls", "").split(",") if one)
        seconds = float(given["seconds"]) if "seconds" in given else None
        seeds = int(given["seeds"]) if "seeds" in given else None
        stays = int(given["stays"]) if "stays" in given else None
        run = Path(given["run"]) if "run" in given else None
        return Variant(name, given.get("preset", "fast"), seconds, seeds, calls, stays, run, settings)

    def fitted(self, train: Cohort, seed: int) -> tuple[Generator, float]:
        """The fitted generator, and the seconds it took."""
        if self.run is not None:
            return load(self.run), float(json.loads((self.run / "provenance.json").read_text())["seconds"])
        model, said = self.model(train, seed), list[str]()
        started = time.perf_counter()
        model.fit(train, seed=seed, say=said.append)
        _wait()
        seconds = time.perf_counter() - started
        print(f"{self.name}, seed {seed}: {seconds:.0f} s. {' '.join(said)}", flush=True)
        return model, seconds

    def model(self, train: Cohort, seed: int) -> Generator:
        settings, kind = dict(self.settings), generator(generator_of(self.preset))
        if self.seconds is not None:
            clock = [0.0]

            def watch(done: int, total: int, **values: float) -> None:
                if done == WARM:
                    _wait()
                    clock[0] = time.perf_counter()

            short = {**settings, "training.steps": WARM + TIMED, "training.validation": 0.0}
            kind(self.preset, assignments=short).fit(train, seed=seed, progress=watch)
            _wait()
            settings["training.steps"] = max(1, int(self.seconds * TIMED / (time.perf_counter() - clock[0])))
        return kind(self.preset, assignments=settings)


Facts = dict[str, float]


@dataclass(frozen=True)
class Job:
    """A cohort to evaluate, or none for the floor."""

    row: str
    seed: int
    arguments: argparse.Namespace
    path: Path | None = None
    facts: Facts = field(default_factory=dict)


Row = tuple[str, int, Facts]


def cohorts(arguments: argparse.Namespace) -> tuple[Cohort, Cohort]:
    train = read_cohort(arguments.train)
    return (train, read_cohort(arguments.test)) if arguments.test else train.split(seed=0, by=arguments.split)


def drawn(variant: Variant, seed: int, folder: Path, arguments: argparse.Namespace) -> list[Job]:
    """Fits and samples one variant with one seed."""
    train, _ = cohorts(arguments)
    model, seconds = variant.fitted(train, seed)
    jobs = []
    for calls in (None, *(variant.calls if seed == 0 else ())):
        row = variant.name if calls is None else f"{variant.name}, {calls} calls"
        started = time.perf_counter()
        options = {"steps": calls} if calls else {}
        synthetic = model.sample(variant.stays or len(train), seed=seed + 1000, **options)
        facts = {"training_seconds": seconds, "updates": float(model.settings.training.steps)}
        facts["sampling_seconds"] = time.perf_counter() - started
        synthetic.write(folder / row / str(seed))
        (folder / row / f"{seed}.json").write_text(json.dumps(facts))
        jobs.append(Job(row, seed, arguments, folder / row / str(seed), facts))
    return jobs


def evaluated(job: Job) -> Row:
    torch.set_num_threads(1 if torch.cuda.is_available() else 2)
    train, test = cohorts(job.arguments)
    found = scores(train, test, read_cohort(job.path) if job.path else None, job.arguments)
    row = (job.row, job.seed, job.facts | found)
    print(json.dumps(rounded(row)), flush=True)
    return row


def scores(train: Cohort, test: Cohort, cohort: Cohort | None, arguments: argparse.Namespace) -> dict[str, float]:
    """Headline numbers of a cohort, or of training stays in its place."""
    found: dict[str, float] = {}
    for protocol in arguments.protocols:
        settings = EvaluationSettings(protocol=protocol, repetitions=arguments.classifiers)
        case = Case(train, test, settings)
        evaluated_cohort = case.stand_in(len(test)) if cohort is None else cohort
        for metric in arguments.metrics:
            if cohort is None and metric == "nnaa":
                continue
            for score in METRICS(metric).measure(Measurement(case, evaluated_cohort, floor=cohort is None)):
                if isinstance(score, Score) and score.feature is None:
                    name = ", ".join(filter(None, [protocol, score.metric, score.classifier, score.what]))
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


def saved(folder: Path, arguments: argparse.Namespace) -> list[Job]:
    """The cohorts of an earlier run."""
    jobs = []
    for path in sorted(path for path in folder.glob("*/*") if path.is_dir()):
        facts = json.loads(path.with_name(f"{path.name}.json").read_text())
        jobs.append(Job(path.parent.name, int(path.name), arguments, path, facts))
    return jobs


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
    parser.add_argument("--split", choices=["random", "blocks", "time"], help="where there is no --test")
    parser.add_argument("--variant", action="append", metavar="NAME; KEY=VALUE; …")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--classifiers", type=int, default=5)
    parser.add_argument("--protocols", nargs="+", default=["strict"])
    parser.add_argument("--metrics", nargs="+", default=["discriminative", "nnaa"])
    parser.add_argument("--jobs", type=int, default=1, help="processes that evaluate")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--saved", type=Path)
    parser.add_argument("--out", type=Path, help="also write the results there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.saved or arguments.save or Path(scratch)
        if arguments.save and arguments.save.exists():
            raise SystemExit(f"{arguments.save} exists: choose another folder to save to.")
        if arguments.saved:
            jobs = saved(folder, arguments)
        else:
            variants = [Variant.parse(text) for text in arguments.variant or ["fast"]]
            fits = [(one, seed) for one in variants for seed in range(one.seeds or arguments.seeds)]
            jobs = [job for one, seed in fits for job in drawn(one, seed, folder, arguments)]
        jobs.append(Job(FLOOR, 0, arguments))
        with ProcessPoolExecutor(arguments.jobs, multiprocessing.get_context("spawn")) as pool:
            rows = list(pool.map(evaluated, jobs if arguments.metrics != ["none"] else []))
    places = [str(place) for place in (arguments.out, arguments.save) if place]
    told = [word for word in sys.argv[1:] if word not in (*places, "--out", "--save")]
    told = [Path(word).name if Path(word).exists() else word for word in told]
    results = {
        "command": shlex.join(["python", "benchmarks/quality.py", *told]),
        "date": time.strftime("%Y-%m-%d"),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else f"{os.cpu_count()} CPU cores",
        "version": __version__,
        "classifiers": arguments.classifiers,
        "processes": arguments.jobs,
        "rows": table(rows),
    }
    text = json.dumps(rounded(results), indent=2)
    if arguments.out:
        arguments.out.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
