"""Nearest neighbours of all stays in two sets, both ways: time and peak memory, against a loop that sorts.

    python benchmarks/neighbours.py --stays 20000 [--columns 2484] [--device cuda]

The rows are random, in the shape of eICU (276 steps × 9 channels = 2,484 columns). The loop takes, for each row, its
distances to all rows of the other set and sorts them; it is measured on --slice rows of one set and scaled up to the
rows of both. Each is measured in its own process; time and memory of ours include the copy to the device.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.float32]


def peak_megabytes() -> float:
    status = Path("/proc/self/status").read_text()
    return float(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024


def random_rows(stays: int, columns: int) -> tuple[Rows, Rows]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((stays, columns), np.float32), rng.standard_normal((stays, columns), np.float32)


def ours(stays: int, columns: int, device: str, check: int) -> dict[str, Any]:
    """All stays; afterwards, the distances of `check` of them against the loop's."""
    import torch

    from timediff.evaluation.statistics.neighbours import nearest_both

    a, b = random_rows(stays, columns)
    before = peak_megabytes()
    nearest_both(a[:8], b[:8], device=device)  # starts the device
    started = time.perf_counter()
    forth, _ = nearest_both(a, b, device=device)
    result = {"seconds": time.perf_counter() - started, "peak_megabytes": peak_megabytes()}
    result["peak_megabytes_with_the_rows_alone"] = before
    if device != "cpu":
        result["peak_megabytes_on_device"] = torch.cuda.max_memory_allocated() / 2**20
    result["largest_relative_difference"] = float(np.max(np.abs(forth[:check] / sorting(a[:check], b) - 1)))
    return result


def sorting(a: Rows, b: Rows) -> npt.NDArray[np.float64]:
    """The loop: for each row of `a`, the distances to all rows of `b`, sorted, and the first of them."""
    return np.array([np.sort(np.sqrt(((b - row) ** 2).sum(axis=1, dtype=np.float64)))[0] for row in a])


def loop(stays: int, columns: int, rows: int) -> dict[str, Any]:
    a, b = random_rows(stays, columns)
    started = time.perf_counter()
    sorting(a[:rows], b)
    seconds = time.perf_counter() - started
    return {
        "rows_measured": rows,
        "seconds_measured": seconds,
        "seconds_scaled_to_all_rows_both_ways": seconds / rows * 2 * stays,
        "peak_megabytes": peak_megabytes(),
    }


def measured(part: str, arguments: argparse.Namespace) -> dict[str, Any]:
    names = ("stays", "columns", "device", "slice")
    flags = [word for name in names for word in (f"--{name}", str(getattr(arguments, name)))]
    command = [sys.executable, __file__, "--part", part, *flags]
    result: dict[str, Any] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return result


def device_name(device: str) -> str:
    import torch

    return f"{os.cpu_count()} CPU cores" if device == "cpu" else torch.cuda.get_device_name(device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stays", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=2484)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--slice", type=int, default=50)
    parser.add_argument("--part", choices=["ours", "loop"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    rows = min(arguments.slice, arguments.stays)
    if arguments.part == "ours":
        print(json.dumps(ours(arguments.stays, arguments.columns, arguments.device, rows)))
        return
    if arguments.part == "loop":
        print(json.dumps(loop(arguments.stays, arguments.columns, rows)))
        return
    found, slow = measured("ours", arguments), measured("loop", arguments)
    from timediff import __version__

    results = {
        "command": f"python benchmarks/neighbours.py --stays {arguments.stays} --columns {arguments.columns} "
        f"--device {arguments.device} --slice {arguments.slice}",
        "date": time.strftime("%Y-%m-%d"),
        "device": device_name(arguments.device),
        "version": __version__,
        "nearest_both": found,
        "sorting_loop_on_cpu": slow,
        "times_faster": slow["seconds_scaled_to_all_rows_both_ways"] / found["seconds"],
    }
    print(json.dumps(json.loads(json.dumps(results), parse_float=lambda text: float(f"{float(text):.4g}")), indent=2))


if __name__ == "__main__":
    main()
