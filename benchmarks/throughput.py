"""Training and sampling throughput, and memory, on the shapes of the paper's three databases.

    python benchmarks/throughput.py [--seconds 8] [--shapes mimic3 mimic4 eicu]

For each shape: the paper's procedure as published (batch 32 accumulated twice; all 1,000 steps, batch 100) and the
preset `fast`, measured in the same run, in stays a second, with their ratio. A measurement lasts about --seconds;
sampling that would last longer is timed over some of its network calls, and `calls_timed` says how many. Data are
simulated.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import timediff as td
from timediff.data.cohort import Cohort
from timediff.data.schema import Schema
from timediff.runtime.randomness import BLOCK
from timediff.settings.resolve import generator_of, resolve

STAYS = 1500  # to train on
SHAPES = {
    "mimic3": {"vitals": ["heart_rate", "sbp", "dbp", "mbp", "resp_rate", "temperature", "spo2"], "steps": 25},
    "mimic4": {"vitals": ["heart_rate", "sbp", "dbp", "resp_rate", "spo2"], "steps": 72},
    "eicu": {"vitals": ["heart_rate", "resp_rate", "spo2", "mbp"], "steps": 276},
}
PAPER = {"eicu": "paper-eicu"}  # with its published width; of the other shapes the preset `paper`


class EnoughTimed(td.TimeDiffError):
    """Of other errors in a progress callback the work goes on."""


def cohort(shape: str, stays: int = STAYS) -> Cohort:
    """Vital signs with their masks, and death: the paper's channels."""
    spec = SHAPES[shape]
    whole = td.simulate(stays, steps=spec["steps"], seed=0)
    kept = (*spec["vitals"], "died")
    schema = Schema(tuple(f for f in whole.schema.features if f.name in kept), spec["steps"])
    series = {name: whole.series[name] for name in spec["vitals"]}
    return replace(whole, schema=schema, series=series, static={"died": whole.static["died"]})


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def training(preset: str, shape: str, seconds: float, more: dict[str, Any] | None = None) -> dict[str, Any]:
    changes = {**(more or {}), "training.steps": 1_000_000, "training.log_every": 10**9, "training.validation": 0.0}
    model = td.generator(generator_of(preset))(settings=resolve(preset, assignments=changes))
    times: list[float] = []

    def watch(done: int, total: int, **values: float) -> None:
        if done % 5 == 0:
            synchronize()
            times.append(time.perf_counter())
            if len(times) > 3 and times[-1] - times[1] > seconds:
                raise EnoughTimed

    with suppress(EnoughTimed):
        model.fit(cohort(shape), seed=0, progress=watch)
    updates, used = 5 * (len(times) - 2), model.settings.training
    batch = used.batch_for(STAYS) * used.accumulate
    rate = updates * batch / (times[-1] - times[1])
    return {"stays_per_second": rate, "stays_an_update": batch, "updates_timed": updates}


def sampling(model: td.Generator, stays: int, seconds: float, **options: Any) -> dict[str, Any]:
    times: list[float] = []
    calls = options["steps"]

    def watch(done: int, total: int, **values: float) -> None:
        synchronize()
        times.append(time.perf_counter())
        if len(times) > 5 and times[-1] - times[1] > seconds:
            raise EnoughTimed

    with suppress(EnoughTimed):
        model.sample(stays, seed=0, progress=watch, **options)
    timed = len(times) - 2
    each = (times[-1] - times[1]) / timed
    return {"stays_per_second": stays / (each * calls), "batch": stays, "calls": calls, "calls_timed": timed}


def untrained(preset: str, shape: str) -> td.Generator:
    settings = resolve(preset, assignments={"training.steps": 1, "training.warmup": 0})
    return td.generator(generator_of(preset))(settings=settings).fit(cohort(shape), seed=0)


def shape_results(shape: str, seconds: float) -> dict[str, Any]:
    print(f"{shape} …", file=sys.stderr)
    name = PAPER.get(shape, "paper")
    paper, fast = training(name, shape, seconds), training("fast", shape, seconds)
    large = BLOCK * (20 if torch.cuda.is_available() else 1)
    published, quick = untrained(name, shape), untrained("fast", shape)
    slow = sampling(published, 100, seconds, steps=1000)
    strided = sampling(published, large, seconds, sampler="ddim", steps=50)
    default = sampling(quick, large, seconds, steps=quick.settings.sampling.steps)
    return {
        "width": {"fast": quick.settings.model.hidden},
        "training": {"paper": paper, "fast": fast, "ratio": fast["stays_per_second"] / paper["stays_per_second"]},
        "sampling": {
            "paper": slow,
            "paper_with_ddim": strided,
            "fast": default,
            "ratio": default["stays_per_second"] / slow["stays_per_second"],
        },
    }


def peak_memory() -> dict[str, Any]:
    """Peak resident memory of sampling to disk, for more and more stays, each in a process of its own."""
    peaks = {}
    with tempfile.TemporaryDirectory() as folder:
        untrained("fast", "mimic3").save(Path(folder) / "run")
        for stays in (5_000, 20_000, 80_000):
            command = [sys.executable, __file__, "--sample", folder, str(stays)]
            peaks[str(stays)] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {"shape": "mimic3", "network_calls": 2, "peak_megabytes_by_stays": peaks}


def sample_once(folder: Path, stays: int) -> None:
    td.sample_to(td.load(folder / "run"), folder / f"out-{stays}", stays, steps=2)
    print(json.dumps(round(peak_kilobytes() / 1024)))


def peak_kilobytes() -> float:
    """Of this process alone; Linux's getrusage would count the process that started it as well."""
    status = Path("/proc/self/status")
    if status.exists():
        return float(next(line for line in status.read_text().splitlines() if line.startswith("VmHWM")).split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def help_seconds() -> float:
    """The quickest of five `timediff --help`."""
    times = []
    for _ in range(5):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-m", "timediff", "--help"], capture_output=True, check=True)
        times.append(time.perf_counter() - started)
    return min(times)


def simulation() -> dict[str, Any]:
    started = time.perf_counter()
    td.simulate(100_000, steps=48, seed=0)
    return {"stays": 100_000, "steps": 48, "seconds": round(time.perf_counter() - started, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--sample", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.sample:
        sample_once(Path(arguments.sample[0]), int(arguments.sample[1]))
        return
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"{os.cpu_count()} CPU cores"
    results = {
        "command": f"python benchmarks/throughput.py --seconds {arguments.seconds:g}",
        "date": time.strftime("%Y-%m-%d"),
        "device": device,
        "version": td.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "shapes": {shape: shape_results(shape, arguments.seconds) for shape in arguments.shapes},
        "sampling_memory": peak_memory(),
        "simulation": simulation(),
        "help_seconds": help_seconds(),
    }
    print(json.dumps(json.loads(json.dumps(results), parse_float=lambda text: float(f"{float(text):.4g}")), indent=2))


if __name__ == "__main__":
    main()
