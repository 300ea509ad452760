"""The preset `fast` on one GPU, against the authors' code, and what fraction of the GPU it uses.

    python benchmarks/gpu.py [--seconds 6]

For the shapes of MIMIC-III and eICU (10,000 and 6,000 simulated stays, so that the preset takes 256 units a direction
and batches of 512): stays a second of training, captured as a CUDA graph, with the RNN by cuDNN, launched piece by
piece, and in float32; and of sampling, all network calls, stays brought back to their units (no file is written).
`paper` is our own preset of that name with the authors' settings (batch 32 accumulated twice, 1,000 network calls) in
the same run, and `against_paper` the ratios to it. `against_authors` divides by what the authors' code did on one H200
in a run of 2026-11-17 beside ours, which cannot be repeated from here (cited/authors-code-h200.json).

Arithmetic counts the products of the network's matrices, twice as many operations as weights for each step of a stay
and three times that to train; bytes are what the RNN's gates and states have to be written and read at the least, in
half precision. Both are set against a product of two 8192 × 8192 matrices in bfloat16 and a copy of 4 GB, measured in
the same run.
"""

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import throughput
import timediff as td
from timediff.generators.sampling import compute_batch
from timediff.settings.resolve import resolve

CITED = Path(__file__).parent / "cited" / "authors-code-h200.json"
THEIR_BATCHES = (100, 2000)  # stays sampled at once
THEIR_CALLS = 1000
STAYS = {"mimic3": 10_000, "eicu": 6_000}
TRAINING = {
    "captured": {},
    "by cuDNN": {"training.kernels": False},
    "piece by piece": {"training.capture": False},
    "float32": {"training.precision": "float32"},
}
WARM = 20  # updates before time is taken: the graph is captured in them
BATCHES = 4  # that are sampled


def seconds_each(work: Callable[[], Any], times: int = 10) -> float:
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(times):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - started) / times


def ceilings() -> dict[str, float]:
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    tera = 2 * 8192**3 / seconds_each(lambda: a @ b) / 1e12
    data = torch.randn(2**30, device="cuda")
    out = torch.empty_like(data)
    return {"bf16_teraflops": tera, "copy_terabytes_a_second": 8 * 2**30 / seconds_each(lambda: out.copy_(data)) / 1e12}


def training(cohort: td.Cohort, seconds: float, **changes: Any) -> dict[str, Any]:
    changes = {"training.steps": 10**6, "training.log_every": 10**9, "training.validation": 0.0, **changes}
    model = td.TimeDiff(settings=resolve("fast", assignments=changes))
    times: list[float] = []
    said: list[str] = []

    def watch(done: int, total: int, **values: float) -> None:
        if done % WARM == 0:
            torch.cuda.synchronize()
            times.append(time.perf_counter())
            if len(times) > 2 and times[-1] - times[0] > seconds:
                raise throughput.EnoughTimed

    torch.cuda.reset_peak_memory_stats()
    with suppress(throughput.EnoughTimed):
        model.fit(cohort, seed=0, progress=watch, say=said.append)
    if said:
        raise SystemExit(f"this is not what was to be measured: {said[0]}")
    update = (times[-1] - times[0]) / WARM / (len(times) - 1)
    batch = model.settings.training.batch or 0
    return {
        "milliseconds_an_update": 1e3 * update,
        "stays_an_update": batch,
        "stays_per_second": batch / update,
        "peak_gigabytes": torch.cuda.max_memory_allocated() / 1e9,
    }


def sampling(model: td.TimeDiff, **options: Any) -> dict[str, Any]:
    """Some compute batches, after one to warm up."""
    settings = replace(model.settings.sampling, **options)
    most = compute_batch(10**6, model.schema.steps, settings, torch.device("cuda"))
    model.sample(most, seed=1, **options)
    torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    model.sample(BATCHES * most, seed=0, **options)
    seconds = time.perf_counter() - started
    return {
        "stays_per_second": BATCHES * most / seconds,
        "stays_at_once": most,
        "network_calls": model.settings.sampling.steps,
        "peak_gigabytes": torch.cuda.max_memory_allocated() / 1e9,
    }


def paper(shape: str, seconds: float, batches: tuple[int, ...] = THEIR_BATCHES) -> dict[str, Any]:
    """Our preset `paper`, of eICU's shape `paper-eicu`, whose settings are the authors'."""
    preset = throughput.PAPER.get(shape, "paper")
    model = throughput.untrained(preset, shape)
    sampled = {batch: throughput.sampling(model, batch, seconds, steps=THEIR_CALLS) for batch in batches}
    return {
        "preset": preset,
        "training": throughput.training(preset, shape, seconds),
        "sampling": {f"batch {batch:,}": found for batch, found in sampled.items()},
    }


def ratios(training: float, sampling: float, slow: dict[str, Any]) -> dict[str, float]:
    """How many times as fast as what `paper` found."""
    found = {"training": training / slow["training"]["stays_per_second"]}
    batches = slow["sampling"].items()
    return found | {f"sampling, {batch}": sampling / one["stays_per_second"] for batch, one in batches}


def authors(shape: str) -> dict[str, Any]:
    """The cited figures of the authors' code, as `paper` would have found them."""
    cited = json.loads(CITED.read_text())["shapes"][shape]
    theirs = {name.removeprefix("theirs, "): rate for name, rate in cited["sampling"].items() if "theirs" in name}
    return {
        "training": {"stays_per_second": cited["training"]["theirs"]},
        "sampling": {batch: {"stays_per_second": rate} for batch, rate in theirs.items()},
    }


def used(model: td.TimeDiff, stays_per_second: float, calls: int, backward: bool, limits: dict[str, float]) -> Any:
    """Arithmetic and bytes a second, and their fraction of what the GPU was seen to do."""
    network: Any = model.fitted.network
    parts = (network.denoiser.rnn, network.denoiser.output)
    weights = sum(p.numel() for part in parts for p in part.parameters() if p.dim() == 2)
    cells = stays_per_second * model.schema.steps * calls
    hidden, layers = model.settings.model.hidden or 0, model.settings.model.layers
    # Of each unit: four gates written and read, state and output written, output read by the next step and layer;
    # to train, these are read again, and the gates' gradients written and read for both products.
    numbers, size = (10 + 20 if backward else 10), 2
    tera = cells * 2 * weights * (3 if backward else 1) / 1e12
    moved = cells * layers * 2 * hidden * numbers * size / 1e12
    return {
        "teraflops": tera,
        "fraction_of_bf16_rate": tera / limits["bf16_teraflops"],
        "terabytes_a_second": moved,
        "fraction_of_bandwidth": moved / limits["copy_terabytes_a_second"],
    }


def shape_results(shape: str, seconds: float, limits: dict[str, float]) -> dict[str, Any]:
    cohort = throughput.cohort(shape, STAYS[shape])
    trained = {name: training(cohort, seconds, **changes) for name, changes in TRAINING.items()}
    model = td.TimeDiff(settings=resolve("fast", assignments={"training.steps": 1})).fit(cohort, seed=0)
    sampled = {
        precision: sampling(model, precision=precision)
        for precision in (model.settings.sampling.precision, "tf32", "float32", "bfloat16")
    }
    rate, sampling_rate = (next(iter(found.values()))["stays_per_second"] for found in (trained, sampled))
    published = paper(shape, seconds)
    return {
        "width": model.settings.model.hidden,
        "training": trained,
        "captured_against_piece_by_piece": rate / trained["piece by piece"]["stays_per_second"],
        "training_uses": used(model, rate, 1, True, limits),
        "sampling": sampled,
        "sampling_uses": used(model, sampling_rate, model.settings.sampling.steps or 0, False, limits),
        "paper": published,
        "against_paper": ratios(rate, sampling_rate, published),
        "against_authors": ratios(rate, sampling_rate, authors(shape)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6.0)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("this benchmark needs a GPU; benchmarks/throughput.py does not.")
    limits = ceilings()
    shapes = {}
    for shape in STAYS:
        shapes[shape] = shape_results(shape, arguments.seconds, limits)
        print(json.dumps({shape: shapes[shape]}), file=sys.stderr, flush=True)  # should the rest be cut short
    results = {
        "command": f"python benchmarks/gpu.py --seconds {arguments.seconds:g}",
        "date": time.strftime("%Y-%m-%d"),
        "device": torch.cuda.get_device_name(),
        "version": td.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "ceilings": limits,
        "shapes": shapes,
    }
    print(json.dumps(json.loads(json.dumps(results), parse_float=lambda text: float(f"{float(text):.4g}")), indent=2))


if __name__ == "__main__":
    main()
