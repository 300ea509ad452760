"""One network call on the CPU in several ways: eager, compiled, exported, and a few stays at a time.

    python benchmarks/inference.py

The network of the preset `fast` for 1,500 stays (64 units a direction), a block of 500 stays of the MIMIC-III shape (25
steps, 31 columns). Milliseconds are the median of seven calls, all ways in the same run; each is first compared with
the eager network. What samplers use is `kernels/inference.py`.
"""

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch import Tensor

from timediff import __version__
from timediff.kernels.inference import in_slices
from timediff.networks.brnn import BidirectionalRNN
from timediff.runtime.devices import CPU_CACHE_STEPS

STAYS, STEPS, COLUMNS, OUTPUTS = 500, 25, 31, 263


def ways(network: BidirectionalRNN, x: Tensor, t: Tensor) -> dict[str, Callable[[], Any]]:
    exported = torch.export.export(network, (x, t)).module()
    traced = torch.jit.optimize_for_inference(torch.jit.trace(network, (x, t)))
    compiled = torch.compile(network)
    return {
        "eager": lambda: network(x, t),
        "eager, a few stays at a time": lambda: in_slices(network, max(32, CPU_CACHE_STEPS // STEPS))(x, t),
        "torch.compile": lambda: compiled(x, t),
        "torch.export": lambda: exported(x, t),
        "torch.jit, optimised for inference": lambda: traced(x, t),
    }


def milliseconds(call: Callable[[], Any], expected: Tensor) -> Any:
    times = []
    try:
        assert torch.allclose(call(), expected, atol=1e-4)
        for _ in range(7):
            started = time.perf_counter()
            call()
            times.append(1e3 * (time.perf_counter() - started))
    except Exception as error:  # a way that does not work here is a row that says so
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0][:120]}"
    return round(median(times), 1)


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    network = BidirectionalRNN(COLUMNS, 64, outputs=OUTPUTS, dropout=0.1, noise_level_input=True).eval()
    x, t = torch.randn(STAYS, STEPS, COLUMNS), 1000 * torch.rand(STAYS)
    with torch.no_grad():
        expected = network(x, t)
        rows = {name: milliseconds(call, expected) for name, call in ways(network, x, t).items()}
    results = {
        "command": "python benchmarks/inference.py",
        "date": time.strftime("%Y-%m-%d"),
        "device": f"{os.cpu_count()} CPU cores",
        "version": __version__,
        "torch": torch.__version__,
        "milliseconds_a_call": rows,
    }
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
