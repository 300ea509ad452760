"""Speed of this working tree beside an earlier version, in one run.

    python benchmarks/regression.py EARLIER [--shapes mimic3 eicu] [--rounds 3] [--seconds 4] [--out RESULT.json]
    python benchmarks/regression.py EARLIER --operations [--out RESULT.json]

EARLIER is a revision, or a folder that holds its files. The speed of a shared machine drifts by more than a change
should cost, so figures of two days cannot be compared. Here the two versions take turns, each by its own
`benchmarks/throughput.py` (with a GPU by its `benchmarks/gpu.py`, the preset `fast` alone) and in a process of its own,
and the median of the rounds' ratios is what counts. Both use the environment that this script runs in.

--operations counts instead what PyTorch is asked to do, which no noise can change: operations of one update and of
one sampling, and the numbers that they make (views make none). It runs on a CPU, and says nothing of kernels.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
ON_CPU = """
import json, sys, throughput
found = throughput.shape_results(sys.argv[1], float(sys.argv[2]))
speeds = {f"{what}, {preset}": found[what][preset] for preset in ("paper", "fast") for what in ("training", "sampling")}
print(json.dumps({name: one["stays_per_second"] for name, one in speeds.items()}))
"""
ON_GPU = """
import json, sys, gpu, throughput
cohort = throughput.cohort(sys.argv[1], gpu.STAYS[sys.argv[1]])
training = gpu.training(cohort, float(sys.argv[2]))
model = gpu.td.TimeDiff(settings=gpu.resolve("fast", assignments={"training.steps": 1})).fit(cohort, seed=0)
found = {"training, fast": training, "sampling, fast": gpu.sampling(model)}
print(json.dumps({name: one["stays_per_second"] for name, one in found.items()}))
"""
OPERATIONS = """
import collections, json, warnings
import torch
from torch.utils._python_dispatch import TorchDispatchMode
import timediff as td

class Counted(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.found = collections.Counter()
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.found["operations"] += 1
        if isinstance(result, torch.Tensor) and not function.is_view:
            self.found["numbers made"] += result.numel()
        return result

def fitted(preset, updates):
    changes = {"training.steps": updates, "training.batch": 64, "training.validation": 0.0}
    model = td.TimeDiff(preset, assignments=changes)
    with Counted() as counted:
        model.fit(cohort, seed=0)
    return model, counted.found

warnings.simplefilter("ignore")
cohort = td.simulate(300, steps=25, seed=0)
rows = {}
for preset, calls in (("paper", 20), ("fast", 72)):
    model, two = fitted(preset, 2)
    _, three = fitted(preset, 3)
    rows["training, " + preset] = {name: three[name] - two[name] for name in two}
    with Counted() as counted:
        model.sample(50, seed=1, steps=calls)
    rows["sampling, " + preset] = dict(counted.found)
print(json.dumps(rows))
"""


def operations(tree: Path) -> dict[str, dict[str, int]]:
    """Operations and numbers made, by what was counted."""
    found: dict[str, dict[str, int]] = json.loads(printed(tree, OPERATIONS, CUDA_VISIBLE_DEVICES=""))
    return found


def speeds(tree: Path, shape: str, seconds: float) -> dict[str, float]:
    """Stays a second, by what was measured."""
    measure = ON_GPU if torch.cuda.is_available() else ON_CPU
    found: dict[str, float] = json.loads(printed(tree, measure, shape, str(seconds)))
    return found


def printed(tree: Path, code: str, *arguments: str, **environment: str) -> str:
    """What this code prints, run by the version in `tree`."""
    path = os.pathsep.join([str(tree / "src"), str(tree / "benchmarks")])
    command, given = [sys.executable, "-c", code, *arguments], {**os.environ, "PYTHONPATH": path, **environment}
    return subprocess.run(command, env=given, stdout=subprocess.PIPE, text=True, check=True).stdout


def compared(earlier: Path, shape: str, rounds: int, seconds: float) -> dict[str, Any]:
    pairs = []
    for k in range(rounds):
        trees = [earlier, ROOT] if k % 2 == 0 else [ROOT, earlier]  # neither is always first
        by_tree = {tree: speeds(tree, shape, seconds) for tree in trees}
        pairs.append((by_tree[earlier], by_tree[ROOT]))
        print(f"{shape}, round {k + 1} of {rounds}: {pairs[-1]}", file=sys.stderr, flush=True)
    return {
        name: {
            "earlier": [round(before[name], 3) for before, _ in pairs],
            "now": [round(now[name], 3) for _, now in pairs],
            "ratio": round(statistics.median(now[name] / before[name] for before, now in pairs), 3),
        }
        for name in pairs[0][0]
    }


@contextmanager
def tree_of(earlier: str) -> Iterator[Path]:
    if Path(earlier).is_dir():
        yield Path(earlier).resolve()
        return
    with tempfile.TemporaryDirectory() as scratch:
        tree, git = Path(scratch) / "earlier", ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", str(tree), earlier], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("earlier", metavar="EARLIER")
    parser.add_argument("--shapes", nargs="+", default=["mimic3"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--operations", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    name, found = Path(given.earlier).name, {}
    with tree_of(given.earlier) as tree:
        if given.operations:
            options = "--operations"
            before, now = operations(tree), operations(ROOT)
            found["operations"] = {what: {"earlier": before[what], "now": now[what]} for what in before}
        else:
            options = f"--shapes {' '.join(given.shapes)} --rounds {given.rounds} --seconds {given.seconds:g}"
            found["shapes"] = {shape: compared(tree, shape, given.rounds, given.seconds) for shape in given.shapes}
    result = {
        "command": f"python benchmarks/regression.py {name} {options}",
        "date": time.strftime("%Y-%m-%d"),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else f"{os.cpu_count()} CPU cores",
        "earlier": name,
    } | found
    text = json.dumps(result, indent=2) + "\n"
    if given.out:
        given.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
