"""How often a verdict is wrong: on real stays in place of synthetic ones, and on real stays with planted faults.

    python benchmarks/verdicts.py COHORT [--pairs 20] [--stays 600] [--repetitions 1] [--seconds S] [--out FILE]

COHORT is a cohort folder of PhysioNet 2012 (the faults are of its features). Each pair takes three disjoint sets of
--stays patients at random: one to train on, one held out, and one that is judged as if it were synthetic, as it is and
with each fault. Of real stays every verdict but the best is a false alarm. A fault is named with what found it: the
classifier of the panel whose AUC is the worst.
"""

import argparse
import json
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from planted.record_faults import FAULTS, with_series
from timediff import Cohort, __version__, read_cohort
from timediff.evaluation.evaluate import evaluate
from timediff.evaluation.results import Results
from timediff.evaluation.settings import EvaluationSettings
from timediff.report.verdicts import verdicts

NOTHING = "nothing (real stays)"
METRICS = ("copies", "near_copies", "nnaa", "mir", "discriminative", "clinical")


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


def told_by(results: Results, name: str) -> str:
    """The classifier whose AUC is the worst."""
    (worst,) = (s for s in results.scores[name] if s.classifier == "worst" and s.what == "auc")
    return worst.note.rpartition(": ")[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cohort", type=Path, metavar="COHORT")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--stays", type=int, default=600)
    parser.add_argument("--repetitions", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no pair after so long")
    parser.add_argument("--faults", type=int, default=5, help="pairs in which the faults are planted too")
    parser.add_argument("--out", type=Path, metavar="FILE")
    given = parser.parse_args()

    cohort, started, pairs = read_cohort(given.cohort), time.monotonic(), 0
    words: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    tellers: dict[str, Counter[str]] = defaultdict(Counter)
    aucs: dict[str, list[float]] = defaultdict(list)
    for seed in range(given.pairs):
        if time.monotonic() - started > given.seconds:
            break
        order = np.random.default_rng(seed).permutation(len(cohort))
        sets = [cohort.take(order[i * given.stays : (i + 1) * given.stays]) for i in range(3)]
        train, test, other = sets
        cohorts = planted(train, other, seed) if seed < given.faults else {NOTHING: other}
        settings = EvaluationSettings.quick(
            repetitions=given.repetitions, seed=seed, only=METRICS, skip=(), device="cpu"
        )
        results = evaluate(train, test, cohorts, settings=settings)
        for name in cohorts:
            for verdict in verdicts(results, name):
                words[name][verdict.question][verdict.word] += 1
            tellers[name][told_by(results, name)] += 1
            aucs[name] += [s.value for s in results.scores[name] if s.classifier == "worst" and s.what == "auc"]
        pairs += 1
        print(f"{pairs} pairs, {time.monotonic() - started:.0f} s: {dict(words[NOTHING])}", flush=True)
    table: dict[str, Any] = {
        "command": f"python benchmarks/verdicts.py COHORT --pairs {given.pairs} --stays {given.stays} "
        f"--repetitions {given.repetitions} --faults {given.faults}",
        "version": __version__,
        "stays": given.stays,
        "pairs": pairs,
        "planted": {
            name: {
                "pairs": sum(tellers[name].values()),
                "verdicts": {question: dict(counted) for question, counted in words[name].items()},
                "worst_auc": float(np.mean(aucs[name])),
                "told_by": dict(tellers[name]),
            }
            for name in words
        },
    }
    print(json.dumps(table, indent=1, ensure_ascii=False))
    if given.out is not None:
        given.out.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
