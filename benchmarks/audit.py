"""What attacks find in models: variants of the generator as targets, each with shadow models of its own kind.

    python benchmarks/audit.py TRAIN HELD_OUT [--stays 2000] [--held-out N] [--models 16] [--preset fast]
                               [--set KEY=VALUE]… [--variant "NAME; KEY=VALUE; …"]… [--attack NAME]…
                               [--synthetic N] [--jobs N] [--seed 0] [--out FILE]

TRAIN and HELD_OUT are cohort folders of different patients. A variant, as in quality.py, is fitted to --stays stays of
TRAIN, and attacked. Candidates are these and half of --held-out stays of HELD_OUT: twice as many as --stays, if nothing
else is said, so that a shadow model is trained on as many stays as the attacked one. Settings of --set are those of
every variant; without --variant there is one, of these. Attacks are those on a run folder, and with --synthetic also
membership attacks on so many synthetic stays. --jobs shadow models are trained at once. A row is a variant: AUC, true
positives at rates of false alarms (with 95 % intervals) and ε of each attack; `shadow_seconds` is training the shadow
models, with the start of their processes, `seconds` all of the variant.
"""

import argparse
import json
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from quality import Variant, rounded
from timediff import Cohort, Generator, __version__, read_cohort
from timediff.evaluation.attacks.registry import ATTACKS
from timediff.evaluation.attacks.shadows import usual_jobs
from timediff.evaluation.audit import check
from timediff.evaluation.audit_work import MOST_EXPOSED, AuditSettings, Work
from timediff.evaluation.score import Score
from timediff.runtime.progress import silent

SHOWN = ("auc", "tpr_at_0.1", "tpr_at_0.01", "tpr_at_0.001", "epsilon")


def chosen(path: Path, count: int, seed: int) -> Cohort:
    """So many stays, or all where there are fewer; the same ones for the same seed."""
    cohort = read_cohort(path)
    order = np.random.default_rng(seed).permutation(len(cohort))
    return cohort.take(np.sort(order[:count]))


def variants(arguments: argparse.Namespace) -> list[Variant]:
    found = []
    for text in arguments.variant or [arguments.preset]:
        name, *own = text.split(";")  # of a key that is given twice the last one counts
        found.append(Variant.parse("; ".join([name, f"preset={arguments.preset}", *arguments.set, *own])))
    return found


def attacks(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Those that were named, or all whose scores are of a membership attack."""
    has = {"run", "cohort"} if arguments.synthetic else {"run"}
    every = [one for one in map(ATTACKS, ATTACKS.names()) if one.kind == "membership" and one.has in has]
    return tuple(arguments.attack or [one.name for one in every])


def attacked(
    variant: Variant, train: Cohort, held_out: Cohort, arguments: argparse.Namespace, scratch: Path
) -> Iterator[dict[str, Any]]:
    """The row as it grows: after each attack what is known by then."""
    started = time.perf_counter()
    model, training = variant.fitted(train, arguments.seed)
    row: dict[str, Any] = {"training_seconds": training, **facts(model)}
    synthetic = model.sample(arguments.synthetic, seed=arguments.seed + 1000) if arguments.synthetic else None
    settings = AuditSettings(
        attacks(arguments), arguments.models, seed=arguments.seed, power=False, jobs=arguments.jobs
    )
    settings.check()
    check(train, held_out, model, synthetic)
    work = Work(train, held_out, model, synthetic, settings, scratch, silent, lambda line: print(line, flush=True))
    row |= {"training_stays": len(train), "candidates": len(work.candidates)}
    if any(one.shadows for one in work.attacks):
        begun = time.perf_counter()
        row["shadow_models"] = len(work.shadows)
        row["shadow_seconds"] = time.perf_counter() - begun
    for one in work.attacks:
        found = numbers(work.scores_of(one))
        print(f"{variant.name}, {one.name}: {told(found)}", flush=True)
        row |= {one.name: found, "seconds": time.perf_counter() - started}
        yield row


def facts(model: Generator) -> dict[str, Any]:
    training = getattr(model.settings, "training", None)
    return {"updates": training.steps, "stays_an_update": training.batch} if training else {}


def numbers(scores: list[Score]) -> dict[str, Any]:
    """Of all candidates, and the area of those on whom training shows most; why, where there is no number."""
    found: dict[str, Any] = {}
    for score in scores:
        if score.group not in (None, MOST_EXPOSED):
            continue
        what = score.what if score.group is None else f"most_exposed_{score.what}"
        if np.isnan(score.value):
            found[f"{what}_note"] = score.note
        else:
            bounds = {f"{what}_low": score.low, f"{what}_high": score.high}
            found |= {what: score.value} | {name: value for name, value in bounds.items() if not np.isnan(value)}
    return found


def told(found: dict[str, Any]) -> str:
    texts = []
    for what in SHOWN:
        if what in found:
            bounds = [f"{found[f'{what}_{end}']:.3f}" for end in ("low", "high") if f"{what}_{end}" in found]
            texts.append(f"{what} {found[what]:.3f}" + (f" ({' to '.join(bounds)})" if bounds else ""))
    return ", ".join(texts) or "; ".join(str(value) for key, value in found.items() if key.endswith("_note"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=Path)
    parser.add_argument("held_out", type=Path)
    parser.add_argument("--stays", type=int, default=2000, help="of TRAIN, to fit")
    parser.add_argument("--held-out", type=int, dest="others", help="stays of HELD_OUT; twice --stays if not given")
    parser.add_argument("--models", type=int, default=16, help="shadow models of each variant")
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of every variant")
    parser.add_argument("--variant", action="append", metavar="NAME; KEY=VALUE; …")
    parser.add_argument("--attack", action="append", metavar="NAME")
    parser.add_argument("--synthetic", type=int, metavar="N", help="attack so many synthetic stays too")
    parser.add_argument("--jobs", type=int, help="shadow models at once; 1 on the CPU, and on a GPU 4")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="also write the results there")
    arguments = parser.parse_args()
    train = chosen(arguments.train, arguments.stays, arguments.seed)
    held_out = chosen(arguments.held_out, arguments.others or 2 * arguments.stays, arguments.seed)
    words = [word for word in sys.argv[1:] if word not in (str(arguments.out), "--out")]
    words = [Path(word).name if Path(word).exists() else word for word in words]
    results: dict[str, Any] = {
        "command": shlex.join(["python", "benchmarks/audit.py", *words]),
        "date": time.strftime("%Y-%m-%d"),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else f"{os.cpu_count()} CPU cores",
        "version": __version__,
        "models": arguments.models,
        "jobs": arguments.jobs or usual_jobs(),
        "rows": {},
    }
    for variant in variants(arguments):
        with tempfile.TemporaryDirectory() as scratch:
            for row in attacked(variant, train, held_out, arguments, Path(scratch)):
                results["rows"][variant.name] = row
                if arguments.out:
                    arguments.out.write_text(json.dumps(rounded(results), indent=2, ensure_ascii=False) + "\n")
    if not arguments.out:
        print(json.dumps(rounded(results), indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
