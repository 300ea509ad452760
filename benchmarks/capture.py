"""Updates captured as CUDA graphs against the same launched piece by piece: the same training, and how much sooner.

    python benchmarks/capture.py [--updates 16] [--seconds 2] [--only timediff rcgan …]

Each generator with its own preset on simulated stays of MIMIC-III's shape. `largest_difference` is that of any weight
after so many updates (where there are phases, of all), `captured_twice` the same of two captured trainings; 0 means
equal to the bit. Then each way trains for some seconds (all objectives together).
"""

import argparse
import json
import time
from typing import Any

import torch

import throughput
import timediff as td
from baseline_throughput import ALL_TOGETHER
from timediff.generators.registry import GENERATORS
from timediff.settings.resolve import generator_of, resolve

SHAPE = "mimic3"
PHASES = {name: {"phases.embedding": 0.25, "phases.supervised": 0.25} for name in ALL_TOGETHER}  # some updates of each
PRESETS = ("rcgan-published", "crnngan-published", "tforcing-published", "pforcing-published")  # with other losses


def preset_of(name: str) -> str:
    return (GENERATORS(name).preset or name) if name in GENERATORS else name


def weights(name: str, updates: int, capture: bool) -> torch.Tensor:
    """Of the trained network, as one vector; that something could not be captured ends it."""
    changes = {"training.steps": updates, "training.capture": capture, "training.validation": 0.0}
    changes |= PHASES.get(name, {})
    preset = preset_of(name)
    model: Any = td.generator(generator_of(preset))(settings=resolve(preset, assignments=changes))
    said: list[str] = []
    model.fit(throughput.cohort(SHAPE), seed=0, say=said.append)
    said = [line for line in said if "model.first" not in line]
    if said:
        raise SystemExit(f"{name}: {said}")
    return torch.cat([one.flatten().double().cpu() for one in model.fitted.network.state_dict().values()])


def compared(name: str, updates: int, seconds: float) -> dict[str, float]:
    eager, once, twice = (weights(name, updates, capture) for capture in (False, True, True))
    more, preset = ALL_TOGETHER.get(name, {}), preset_of(name)
    slow, quick = (
        throughput.training(preset, SHAPE, seconds, {**more, "training.capture": capture})["stays_per_second"]
        for capture in (False, True)
    )
    return {
        "largest_difference": float((once - eager).abs().max()),
        "captured_twice": float((once - twice).abs().max()),
        "stays_per_second": quick,
        "stays_per_second_piece_by_piece": slow,
        "ratio": quick / slow,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*GENERATORS.names(), *PRESETS]
    parser.add_argument("--updates", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("this benchmark needs a GPU.")
    results = {
        "command": f"python benchmarks/capture.py --updates {arguments.updates} --seconds {arguments.seconds:g}",
        "date": time.strftime("%Y-%m-%d"),
        "device": torch.cuda.get_device_name(),
        "version": td.__version__,
        "torch": torch.__version__,
        "rows": {name: compared(name, arguments.updates, arguments.seconds) for name in arguments.only},
    }
    print(json.dumps(json.loads(json.dumps(results), parse_float=lambda text: float(f"{float(text):.4g}")), indent=2))


if __name__ == "__main__":
    main()
