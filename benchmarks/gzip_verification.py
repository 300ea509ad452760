"""What it costs to read every .csv.gz to its end and checksum while DuckDB extracts from it.

    python benchmarks/gzip_verification.py [--stays 6000] [--repeats 6] [--out FILE]

Simulated MIMIC-III tables are extracted with and without verification, in turns, in one run. The ratio is of wall time;
processor time is what a busy machine would notice.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

from timediff.sources.gzip_files import Verification
from timediff.sources.raw import write_raw
from timediff.sources.registry import source


def seconds(folder: Path, verified: bool) -> tuple[float, float]:
    """Wall and processor time of one extraction."""
    kind = source("mimic3")
    wall, processor = time.perf_counter(), time.process_time()
    if verified:
        kind.extract(str(folder), kind.resolve(None, {}))
    else:
        with patch.object(Verification, "add"):
            kind.extract(str(folder), kind.resolve(None, {}))
    return time.perf_counter() - wall, time.process_time() - processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stays", type=int, default=6000)
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--out", type=Path, metavar="FILE")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        write_raw("mimic3", Path(scratch) / "simulated", given.stays, seed=1)
        folder = Path(scratch) / "simulated" / "raw"
        size = sum(file.stat().st_size for file in folder.iterdir())
        seconds(folder, False)  # libraries are loaded
        measured = [(seconds(folder, True), seconds(folder, False)) for _ in range(given.repeats)]
    verified, plain = zip(*measured, strict=True)
    result = {
        "command": f"python benchmarks/gzip_verification.py --stays {given.stays} --repeats {given.repeats}",
        "cores": os.cpu_count(),
        "megabytes": round(size / 1e6, 1),
        "verified": {"wall": [round(w, 2) for w, _ in verified], "processor": [round(p, 2) for _, p in verified]},
        "plain": {"wall": [round(w, 2) for w, _ in plain], "processor": [round(p, 2) for _, p in plain]},
        "wall_ratio_of_medians": round(
            statistics.median(w for w, _ in verified) / statistics.median(w for w, _ in plain), 3
        ),
        "wall_ratio_of_minima": round(min(w for w, _ in verified) / min(w for w, _ in plain), 3),
    }
    print(json.dumps(result, indent=1))
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
