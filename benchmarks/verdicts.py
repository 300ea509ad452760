"""How often a verdict is wrong: on real stays in place of synthetic ones, and on real stays with planted faults.

    python benchmarks/verdicts.py COHORT [--pairs 20] [--faults 5] [--stays 600] [--repetitions 1] [--jobs 1]
                                  [--out FILE]
    python benchmarks/verdicts.py COHORT --pairs 200 --faults 0 --metrics copies near_copies   # soon done

With --jobs so many processes share the pairs, each with its part of the cores. Each pair takes three disjoint sets of
--stays patients at random: one to train on, one held out, and one that stands in for a synthetic cohort, as it is and,
in the first --faults pairs, with each fault. Of real stays every verdict but the best is a false alarm; `false_alarms`
has their rates, with exact 95 % intervals that take pairs for independent. The faults are of the features of PhysioNet
2012; for another COHORT give --faults 0. A fault is named with what found it: the classifier of the panel whose AUC is
the worst.
"""

import argparse
import json
import multiprocessing
import os
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import beta

from planted.record_faults import FAULTS, with_series
from timediff import Cohort, __version__, read_cohort
from timediff.evaluation.evaluate import evaluate
from timediff.evaluation.results import Results
from timediff.evaluation.settings import EvaluationSettings
from timediff.report.verdicts import verdicts

NOTHING = "nothing (real stays)"
METRICS = ("copies", "near_copies", "nnaa", "mir", "discriminative", "tstr")
# Without an attack the best word of the third question is "not shown".
BEST, WORST = ("good", "not shown", "no sign of a leak"), ("poor", "signs of a leak")


def copied(train: Cohort, cohort: Cohort, fraction: float, noise: float, rng: np.random.Generator) -> Cohort:
    """The cohort with some training stays in place of its own, each value moved by so many standard deviations."""
    count = round(fraction * len(cohort))
    series = {}
    for name, values in cohort.series.items():
        taken = train.series[name][:count]
        moved = taken + noise * np.nanstd(train.series[name]) * rng.normal(size=taken.shape)
        series[name] = np.concatenate([moved if noise else taken, values[count:]])
    static = {name: np.concatenate([train.static[name][:count], cohort.static[name][count:]]) for name in cohort.static}
    mixed = with_series(cohort, **series)
    return Cohort(mixed.schema, mixed.stay_id, mixed.series, static)


def planted(train: Cohort, other: Cohort, seed: int) -> Mapping[str, Cohort]:
    found = {NOTHING: other}
    found |= {name: fault(other, np.random.default_rng(seed)) for name, fault in FAULTS.items()}
    rng = np.random.default_rng(seed)
    found["a twentieth are copies of training stays"] = copied(train, other, 0.05, 0, rng)
    found["a twentieth are training stays with .1 SD of noise"] = copied(train, other, 0.05, 0.1, rng)
    found["all are training stays with .3 SD of noise"] = copied(train, other, 1, 0.3, rng)
    return found


def rate(count: int, of: int) -> dict[str, Any]:
    """A fraction with its exact interval (Clopper and Pearson 1934)."""
    low = beta.ppf(0.025, count, of - count + 1) if count else 0.0
    high = beta.ppf(0.975, count + 1, of - count) if count < of else 1.0
    return {"count": count, "of": of, "rate": count / of, "interval": [round(float(low), 4), round(float(high), 4)]}


@dataclass
class Tally:
    """What was said of one kind of cohort."""

    words: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))  # by question
    found_by: Counter[str] = field(default_factory=Counter)  # the worst classifier
    aucs: list[float] = field(default_factory=list)  # and its AUC

    def add(self, results: Results, name: str) -> None:
        for verdict in verdicts(results, name):
            self.words[verdict.question][verdict.word] += 1
        for worst in (s for s in results.scores[name] if s.classifier == "worst" and s.what == "auc"):
            self.found_by[worst.note.rpartition(": ")[2]] += 1
            self.aucs.append(round(worst.value, 4))

    def join(self, other: "Tally") -> None:
        for question, counted in other.words.items():
            self.words[question] += counted
        self.found_by += other.found_by
        self.aucs += other.aucs

    def as_dict(self) -> dict[str, Any]:
        words = {question: dict(counted) for question, counted in self.words.items()}
        if not self.aucs:  # the panel was not among the metrics
            return {"verdicts": words}
        mean = round(float(np.mean(self.aucs)), 4)
        return {"verdicts": words, "worst_auc": mean, "worst_auc_of_each": self.aucs, "found_by": dict(self.found_by)}

    def false_alarms(self) -> dict[str, Any]:
        """By question: how often real stays did not get the best word, and how often they got the worst."""
        return {
            question: {
                "not the best": rate(sum(n for word, n in words.items() if word not in BEST), words.total()),
                "the worst": rate(sum(words[word] for word in WORST), words.total()),
            }
            for question, words in self.words.items()
            if set(words) != {"not measured"}
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cohort", type=Path, metavar="COHORT")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--stays", type=int, default=600)
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--faults", type=int, default=5, help="pairs in which the faults are planted too")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--metrics", nargs="+", default=list(METRICS))
    parser.add_argument("--out", type=Path, metavar="FILE")
    given = parser.parse_args()

    tallies: defaultdict[str, Tally] = defaultdict(Tally)
    started, done = time.monotonic(), 0
    with ProcessPoolExecutor(given.jobs, multiprocessing.get_context("spawn")) as pool:
        coming = [pool.submit(of_pair, seed, given) for seed in range(given.pairs)]
        for each in as_completed(coming):
            for name, tally in each.result().items():
                tallies[name].join(tally)
            done += 1
            print(f"{done} pairs, {time.monotonic() - started:.0f} s: {tallies[NOTHING].as_dict()}", flush=True)
            text = json.dumps(stated(given, done, tallies), indent=1, ensure_ascii=False)
            if given.out is not None:
                given.out.write_text(text + "\n")  # what there is so far, should the run be stopped
    print(text)


def of_pair(seed: int, given: argparse.Namespace) -> dict[str, Tally]:
    """What is said of one pair, and of the faults planted in it."""
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // given.jobs))
    cohort, tallies = read_cohort(given.cohort), defaultdict[str, Tally](Tally)
    order = np.random.default_rng(seed).permutation(len(cohort))
    train, test, other = (cohort.take(order[i * given.stays : (i + 1) * given.stays]) for i in range(3))
    cohorts = planted(train, other, seed) if seed < given.faults else {NOTHING: other}
    settings = EvaluationSettings.quick(
        repetitions=given.repetitions, seed=seed, only=tuple(given.metrics), skip=(), device="cpu"
    )
    results = evaluate(train, test, cohorts, settings=settings)
    for name in cohorts:
        tallies[name].add(results, name)
    return dict(tallies)


def stated(given: argparse.Namespace, pairs: int, tallies: Mapping[str, Tally]) -> dict[str, Any]:
    return {
        "command": f"python benchmarks/verdicts.py {given.cohort.name} --pairs {pairs} --faults {given.faults} "
        f"--stays {given.stays} --repetitions {given.repetitions}"
        + ("" if given.metrics == list(METRICS) else f" --metrics {' '.join(given.metrics)}"),
        "date": time.strftime("%Y-%m-%d"),
        "version": __version__,
        "pairs": pairs,
        "false_alarms": tallies[NOTHING].false_alarms(),
        "planted": {name: tally.as_dict() for name, tally in tallies.items()},
    }


if __name__ == "__main__":
    main()
