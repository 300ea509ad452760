"""How often a verdict is wrong: on real stays in place of synthetic ones, and on real stays with planted faults.

    python benchmarks/verdicts.py COHORT [--pairs 20] [--faults 5] [--stays 600] [--repetitions 1] [--jobs 1]
                                  [--kinds outcomes] [--keep FOLDER] [--out FILE]
    python benchmarks/verdicts.py COHORT --pairs 200 --faults 0 --metrics copies near_copies   # soon done

With --jobs so many processes share the pairs, each with its part of the cores (OMP_NUM_THREADS=1 leaves trees one
core each as well). Each pair takes three disjoint sets of --stays patients at random: one to train on, one held out,
and one that stands in for a synthetic cohort, as it is and, in the first --faults pairs, with each fault. Of real stays
every verdict but the best is a false alarm; `false_alarms` has their rates, with exact 95 % intervals that take pairs
for independent. Most faults are of the features of PhysioNet 2012; for another COHORT give --faults 0. A fault is named
with what found it: the classifier of the panel whose AUC is the worst.

Usefulness is measured by the five classifiers whose mean decides; the two recurrent ones take most of the time. With
--keep the scores of each pair are written to FOLDER as soon as it is done. The same command goes on from there, and
says what today's rules make of the scores that are kept.
"""

import argparse
import json
import multiprocessing
import os
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import beta

from planted.outcome_faults import OUTCOME_FAULTS
from planted.record_faults import FAULTS, with_series
from timediff import Cohort, __version__, read_cohort
from timediff.evaluation.case import Case
from timediff.evaluation.classifiers.label_classifiers import CLASSICAL
from timediff.evaluation.evaluate import evaluate
from timediff.evaluation.metrics.tstr import events, tstr
from timediff.evaluation.results import Results, read_score, write_score
from timediff.evaluation.score import Score
from timediff.evaluation.settings import EvaluationSettings
from timediff.report.verdicts import verdicts
from timediff.runtime.files import write_atomically

NOTHING = "nothing (real stays)"
KINDS = ("records", "outcomes", "copies")
METRICS = ("copies", "near_copies", "nnaa", "mir", "discriminative", "tstr")
# Without an attack the best word of the third question is "not shown".
BEST, WORST = ("good", "not shown", "no sign of a leak"), ("poor", "signs of a leak")

Found = dict[str, list[dict[str, Any]]]  # of one pair: the scores of each cohort, as results.json has them


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


def planted(train: Cohort, other: Cohort, seed: int, kinds: Sequence[str]) -> Mapping[str, Cohort]:
    faults = (FAULTS if "records" in kinds else {}) | (OUTCOME_FAULTS if "outcomes" in kinds else {})
    found = {NOTHING: other} | {name: fault(other, np.random.default_rng(seed)) for name, fault in faults.items()}
    if "copies" in kinds:
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
    losses: list[list[float]] = field(default_factory=list)  # of AUROC by the worse mean of five, with its interval

    def add(self, results: Results, name: str) -> None:
        for verdict in verdicts(results, name):
            self.words[verdict.question][verdict.word] += 1
        for worst in (s for s in results.scores[name] if s.classifier == "worst" and s.what == "auc"):
            self.found_by[worst.note.rpartition(": ")[2]] += 1
            self.aucs.append(round(worst.value, 4))
        lost = [s for s in results.scores[name] if s.what == "gap" and (s.classifier or "").startswith("mean of")]
        if lost:
            worst = max(lost, key=lambda s: s.value)
            self.losses.append([round(number, 4) for number in (worst.value, worst.low, worst.high)])

    def as_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"verdicts": {question: dict(counted) for question, counted in self.words.items()}}
        if self.aucs:  # the panel was among the metrics
            mean = round(float(np.mean(self.aucs)), 4)
            found |= {"worst_auc": mean, "worst_auc_of_each": self.aucs, "found_by": dict(self.found_by)}
        if self.losses:
            found |= {"loss": round(float(np.mean(self.losses, axis=0)[0]), 4), "loss_of_each": self.losses}
        return found

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
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="of the faults")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="of neural classifiers")
    parser.add_argument("--metrics", nargs="+", default=list(METRICS))
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keeps the scores of each pair, and goes on")
    parser.add_argument("--out", type=Path, metavar="FILE")
    given = parser.parse_args()
    if given.keep is not None:
        given.keep.mkdir(parents=True, exist_ok=True)

    found: dict[int, Found] = {}
    started = time.monotonic()
    with ProcessPoolExecutor(given.jobs, multiprocessing.get_context("spawn")) as pool:
        coming = {pool.submit(of_pair, seed, given): seed for seed in range(given.pairs)}
        for each in as_completed(coming):
            found[coming[each]] = each.result()
            tallies = tallied(found, given.stays)
            so_far = tallies[NOTHING].as_dict()["verdicts"]
            print(f"{len(found)} pairs, {time.monotonic() - started:.0f} s: {so_far}", flush=True)
            text = json.dumps(stated(given, len(found), tallies), indent=1, ensure_ascii=False)
            if given.out is not None:
                write_atomically(given.out, text + "\n")  # what there is so far, should the run be stopped
    print(text)


def of_pair(seed: int, given: argparse.Namespace) -> Found:
    """What is measured of one pair, and of the faults planted in it; or what was kept of it."""
    asked = {name: getattr(given, name) for name in ("stays", "repetitions", "metrics", "device")}
    asked |= {"cohort": given.cohort.name, "planted": given.kinds if seed < given.faults else []}
    kept = None if given.keep is None else given.keep / f"{seed}.json"
    if kept is not None and kept.exists():
        stored = json.loads(kept.read_text())
        if stored["asked"] != asked:
            raise SystemExit(f"{kept} is of another command ({stored['asked']}): give --keep another folder.")
        found: Found = stored["scores"]
        return found
    found = measured(seed, given)
    if kept is not None:
        write_atomically(kept, json.dumps({"asked": asked, "scores": found}))
    return found


def measured(seed: int, given: argparse.Namespace) -> Found:
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // given.jobs))
    cohort = read_cohort(given.cohort)
    order = np.random.default_rng(seed).permutation(len(cohort))
    train, test, other = (cohort.take(order[i * given.stays : (i + 1) * given.stays]) for i in range(3))
    cohorts = planted(train, other, seed, given.kinds) if seed < given.faults else {NOTHING: other}
    settings = EvaluationSettings.quick(
        repetitions=given.repetitions, seed=seed, only=tuple(given.metrics), skip=(), device=given.device
    )
    found: Found = {name: [] for name in cohorts}
    if others := [name for name in given.metrics if name != "tstr"]:
        results = evaluate(train, test, cohorts, settings=replace(settings, only=tuple(others)))
        found = {name: [write_score(s) for s in results.scores[name] if whole(s)] for name in cohorts}
    if "tstr" in given.metrics:
        case = Case(train, test, settings)
        for name, cohort in cohorts.items():
            found[name] += [write_score(s) for s in [*of_five(case, cohort), *events("tstr", test)]]
    return found


def whole(score: Score) -> bool:
    """Whether it is about a whole cohort, as verdicts are."""
    return score.feature is None and score.group is None


def of_five(case: Case, cohort: Cohort) -> list[Score]:
    """As the metric `tstr` has them, without the recurrent classifiers, which decide nothing and take long."""
    settings = case.settings
    return tstr(
        case.view,
        case.train,
        case.test,
        cohort,
        seed=settings.seed,
        repetitions=settings.repetitions,
        classifiers=CLASSICAL,
        bootstrap=settings.bootstrap,
        device=case.device,
        real=case.trained,
    )


def tallied(found: Mapping[int, Found], stays: int) -> dict[str, Tally]:
    """What is said of each kind of cohort, pairs in their order."""
    tallies: defaultdict[str, Tally] = defaultdict(Tally)
    for seed in sorted(found):
        scores = {name: [read_score(s, f"pair {seed}") for s in several] for name, several in found[seed].items()}
        results = Results(tuple(scores), scores, {}, {"held-out stays": f"{stays:,}"})
        for name in scores:
            tallies[name].add(results, name)
    return dict(tallies)


def stated(given: argparse.Namespace, pairs: int, tallies: Mapping[str, Tally]) -> dict[str, Any]:
    return {
        "command": f"python benchmarks/verdicts.py {given.cohort.name} --pairs {pairs} --faults {given.faults} "
        f"--stays {given.stays} --repetitions {given.repetitions}"
        + ("" if given.kinds == list(KINDS) or not given.faults else f" --kinds {' '.join(given.kinds)}")
        + ("" if given.device == "cpu" else f" --device {given.device}")
        + ("" if given.metrics == list(METRICS) else f" --metrics {' '.join(given.metrics)}"),
        "date": time.strftime("%Y-%m-%d"),
        "version": __version__,
        "pairs": pairs,
        "false_alarms": tallies[NOTHING].false_alarms(),
        "planted": {name: tally.as_dict() for name, tally in tallies.items()},
    }


if __name__ == "__main__":
    main()
