"""Training and sampling throughput of every baseline beside TimeDiff's, on the same cohort in the same run.

    python benchmarks/baseline_throughput.py [--shape mimic3] [--seconds 6]

Stays a second: of training, the stays of one batch an update, however many optimizer steps its objectives take, each
with a batch of its own (where there are phases, in the last); of sampling, whole stays. TimeDiff is the preset `fast`
with its 72 network calls. Data are simulated.
"""

import argparse
import json
import os
import time
from typing import Any

import torch

import timediff as td
from throughput import SHAPES, synchronize, training, untrained
from timediff.generators.registry import GENERATORS
from timediff.runtime.randomness import BLOCK

# The phases before the last have one objective of five, and would make it look quicker than it is.
ALL_TOGETHER = {name: {"phases.embedding": 0.0, "phases.supervised": 0.0} for name in ("timegan", "latent-forcing")}


def sampling(preset: str, shape: str, seconds: float) -> float:
    """Stays a second, of whole blocks again and again; the first is not counted."""
    model, stays = untrained(preset, shape), BLOCK * (20 if torch.cuda.is_available() else 1)
    times, deadline = [], float("inf")
    while len(times) < 2 or time.perf_counter() < deadline:
        started = time.perf_counter()
        model.sample(stays, seed=0)
        synchronize()
        times.append(time.perf_counter() - started)
        deadline = min(deadline, time.perf_counter() + seconds)
    return stays * (len(times) - 1) / sum(times[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="mimic3")
    parser.add_argument("--seconds", type=float, default=6.0)
    arguments = parser.parse_args()
    rows: dict[str, Any] = {}
    for name in GENERATORS.names():
        preset = GENERATORS(name).preset or name
        trained = training(preset, arguments.shape, arguments.seconds, ALL_TOGETHER.get(name))
        made = sampling(preset, arguments.shape, arguments.seconds)
        rows[name] = {
            "training_stays_per_second": trained["stays_per_second"],
            "stays_an_update": trained["stays_an_update"],
            "updates_per_second": trained["stays_per_second"] / trained["stays_an_update"],
            "sampling_stays_per_second": made,
        }
    options = f"--shape {arguments.shape} --seconds {arguments.seconds:g}"
    results = {
        "command": f"python benchmarks/baseline_throughput.py {options}",
        "date": time.strftime("%Y-%m-%d"),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else f"{os.cpu_count()} CPU cores",
        "version": td.__version__,
        "torch": torch.__version__,
        "rows": rows,
    }
    print(json.dumps(json.loads(json.dumps(results), parse_float=lambda text: float(f"{float(text):.4g}")), indent=2))


if __name__ == "__main__":
    main()
