"""Compiles Triton's kernels for GPUs that are not here."""

import os
import subprocess
import sys
from pathlib import Path


def fits(program: str, cache: Path) -> dict[str, int]:
    """By a GPU's generation how many shapes fit it, as a program prints them that does not interpret kernels."""
    environment = {"TRITON_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", program],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return {generation: int(count) for generation, count in map(str.split, done.stdout.splitlines())}
