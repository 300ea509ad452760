"""Training and sampling on a GPU whose memory is nearly full: what is said, how long it takes, what it changes.

    python benchmarks/memory.py [--left 6 2.5]

All but so many gigabytes are taken; then `fast` with 256 units trains for 12 updates of 512 simulated stays of eICU's
shape and samples 1,500 stays. `largest_difference` is that of a weight from the same training with all memory: parts
round differently, and dropout's masks are others.
"""

import argparse
import json
import time
from typing import Any

import torch

import throughput
import timediff as td
from timediff.runtime.cuda_graphs import free_memory
from timediff.settings.resolve import resolve

SETTINGS = {"training.steps": 12, "training.validation": 0.0, "training.batch": 512, "model.hidden": 256}


def work(cohort: td.Cohort) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Fits and samples; what was said and the seconds, and the weights."""
    model = td.TimeDiff(settings=resolve("fast", assignments=SETTINGS))
    said: list[str] = []
    started = time.perf_counter()
    model.fit(cohort, seed=0, say=said.append)
    fitted = time.perf_counter()
    stays = sum(len(part) for part in model.stream(1500, seed=0, say=said.append))
    weights = {name: value.cpu() for name, value in model.fitted.network.state_dict().items()}
    seconds = {"training_seconds": fitted - started, "sampling_seconds": time.perf_counter() - fitted}
    return {**seconds, "stays": stays, "said": said}, weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--left", type=float, nargs="+", default=[6.0, 2.5], help="gigabytes (2³⁰ bytes)")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("this benchmark needs a GPU.")
    cohort = throughput.cohort("eicu", 2600)
    found, whole = work(cohort)
    print(json.dumps({"left": "all", **found}), flush=True)
    for left in arguments.left:
        free_memory()
        free = torch.cuda.mem_get_info()[0]
        taken = torch.empty(int(free - left * 2**30), dtype=torch.uint8, device="cuda")
        found, weights = work(cohort)
        differences = [float((weights[name] - value).abs().max()) for name, value in whole.items()]
        print(json.dumps({"left": left, **found, "largest_difference": max(differences)}), flush=True)
        del taken


if __name__ == "__main__":
    main()
