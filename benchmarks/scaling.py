"""How time and memory grow with the number of stays, of steps and of features, on one GPU.

    python benchmarks/scaling.py [--out FOLDER]

The preset `fast` with 256 units a direction and batches of 512, on random numbers in the shape of a cohort: continuous
channels with a mask each, and an outcome. From one base (10,000 stays, 48 steps, 8 features) one size is changed at a
time. A few updates and one compute batch of sampling are timed; `training_seconds` are those of 5,000 such updates,
`sampling_seconds` those of as many stays as there are to train on, at the rate of that batch. Memory is the peak that
PyTorch allocated on the GPU. With --out, also scaling.json and, where matplotlib is installed, scaling.svg.
"""

import argparse
import json
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from timediff import __version__
from timediff.data.batch import Batch, Layout
from timediff.diffusion.process import Process
from timediff.generators.sampling import compute_batch
from timediff.kernels.inference import accelerated
from timediff.kernels.training import accelerate
from timediff.runtime import devices
from timediff.runtime.cuda_graphs import free_memory
from timediff.runtime.precision import arithmetic
from timediff.runtime.randomness import Noise, sampling_noise
from timediff.settings.resolve import resolve
from timediff.training.loop import train
from timediff.training.objective import Objective

HIDDEN, BATCH, UPDATES = 256, 512, 5000
WARM, TIMED = 10, 20


@dataclass(frozen=True)
class Size:
    stays: int = 10_000
    steps: int = 48
    features: int = 8


BASE = Size()
SERIES = {
    "stays": [replace(BASE, stays=n) for n in (1_000, 10_000, 100_000, 1_000_000)],
    "steps": [replace(BASE, steps=n) for n in (24, 48, 100, 250, 500, 1000)],
    "features": [replace(BASE, features=n) for n in (5, 20, 50, 100, 200)],
}


def measured(size: Size) -> dict[str, Any]:
    device = devices.device()
    settings = resolve("fast")
    masks = size.features
    layout = Layout.of(size.features, (2,) * (masks + 1), (False,) * masks + (True,))
    process = settings.diffusion.build(layout, settings.model.sized(HIDDEN).build).to(device)
    accelerate(process, size.steps, say=sys.exit)
    few = 1000  # repeated: what the numbers are does not matter
    x = torch.randn(few, size.steps, size.features).repeat(size.stays // few, 1, 1)
    c = torch.randint(2, (few, size.steps, masks + 1), dtype=torch.int32).repeat(size.stays // few, 1, 1)
    times: list[float] = []

    def watch(done: int, total: int, **values: float) -> None:
        if done in (WARM, WARM + TIMED):
            torch.cuda.synchronize()
            times.append(time.perf_counter())

    def loss(network: Any, batch: Batch, noise: Noise) -> dict[str, torch.Tensor]:
        assert isinstance(network, Process)
        return network.loss(batch, noise)._asdict()

    training = replace(settings.training, steps=WARM + TIMED, batch=BATCH, lr=1e-3, log_every=10**6)
    free_memory()
    torch.cuda.reset_peak_memory_stats()
    train(process, (Objective(loss),), Batch.of(x, c), training, seed=0, progress=watch)
    training_peak = torch.cuda.max_memory_allocated() / 1e9
    update = (times[1] - times[0]) / TIMED
    free_memory()
    torch.cuda.reset_peak_memory_stats()
    batch = compute_batch(size.stays, size.steps, settings.sampling, device)
    process.eval()
    sampling = settings.sampling
    denoiser = accelerated(process.denoiser, device, size.steps, sampling.precision)
    lengths = torch.full((batch,), size.steps)
    for _ in range(2):  # the first captures the network
        started = time.perf_counter()
        with torch.inference_mode(), arithmetic("float32"):
            noise = sampling_noise(0, 0, batch, device)
            process.sample(noise, lengths, sampler=sampling.sampler, steps=sampling.steps, denoiser=denoiser)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - started
    return {
        "milliseconds_an_update": 1e3 * update,
        "training_seconds": UPDATES * update,
        "training_gigabytes": training_peak,
        "sampled_stays_per_second": batch / seconds,
        "sampling_seconds": size.stays * seconds / batch,
        "sampling_gigabytes": torch.cuda.max_memory_allocated() / 1e9,
    }


def draw(rows: dict[str, list[dict[str, Any]]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(10, 5.4), sharey="row", layout="constrained")
    kinds = (("seconds", "_seconds"), ("GB on the GPU, at most", "_gigabytes"))
    for column, (what, found) in enumerate(rows.items()):
        for row, (label, ending) in enumerate(kinds):
            axis = axes[row, column]
            for part, marker in (("training", "o"), ("sampling", "s")):
                axis.loglog([r[what] for r in found], [r[part + ending] for r in found], marker=marker, label=part)
            axis.set_xlabel(what)
            axis.grid(alpha=0.3)
            if column == 0:
                axis.set_ylabel(label)
    axes[0, 0].legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("this benchmark needs a GPU.")
    rows: dict[str, list[dict[str, Any]]] = {}
    for what, sizes in SERIES.items():
        rows[what] = []
        for size in sizes:
            rows[what].append({**vars(size), **measured(size)})
            print(json.dumps(rows[what][-1]), flush=True)
    results = {
        "command": "python benchmarks/scaling.py",
        "date": time.strftime("%Y-%m-%d"),
        "device": torch.cuda.get_device_name(),
        "version": __version__,
        "torch": torch.__version__,
        "rows": rows,
    }
    text = json.dumps(json.loads(json.dumps(results), parse_float=lambda text: float(f"{float(text):.4g}")), indent=2)
    print(text)
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "scaling.json").write_text(text + "\n")
        try:
            draw(rows, arguments.out / "scaling.svg")
        except ImportError:
            print("no figure: matplotlib is not installed")


if __name__ == "__main__":
    main()
