"""Run by training/test_loop.py: kills a fit whenever a file becomes durable or takes its name, and resumes it.

A process of its own with one thread, so that it can fork: each try is a child that starts where the imports have ended.
Prints, for each moment, whether the resumed run ended with the weights of the run that was never killed, as it was
written, and with a log that had only been added to and tells of the same losses.
"""

import json
import os
import signal
import sys
from pathlib import Path

import torch
import torch._dynamo  # these two here, so that no child has to import them
import torch.utils.tensorboard

from timediff.data.cohort import read_cohort
from timediff.generators.run import Run
from timediff.generators.timediff.generator import TimeDiff
from timediff.settings.resolve import resolve
from timediff.training.log import read_log

torch.set_num_threads(1)


def fit(run: Path, kill_at: int = 0) -> int:
    """Fits in a child; the child kills itself at the `kill_at`-th moment. Returns the child's exit status."""
    child = os.fork()
    if child == 0:
        moments = 0

        def counted(function):
            def call(*arguments, **options):
                nonlocal moments
                moments += 1
                if moments == kill_at:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*arguments, **options)

            return call

        os.fsync, Path.replace = counted(os.fsync), counted(Path.replace)
        settings = resolve("paper", assignments=json.loads(sys.argv[2]))
        TimeDiff(settings=settings).fit(read_cohort(sys.argv[1]), seed=5, run=run, resume=True)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def main() -> None:
    folder = Path(sys.argv[3])
    assert fit(folder / "whole") == 0
    expected = (folder / "whole" / "weights.safetensors").read_bytes()
    losses = [(line["step"], line["total"]) for line in read_log(folder / "whole" / "log.jsonl")]
    results = []
    for moment in range(1, 100):
        run = folder / f"run-{moment}"
        if fit(run, kill_at=moment) == 0:  # there are no more moments
            break
        log = run / "log.jsonl"
        before = log.read_bytes() if log.exists() else b""
        if run.exists():
            assert not Run.open(run).differences
        assert fit(run) == 0
        same = (run / "weights.safetensors").read_bytes() == expected and not Run.open(run).differences
        kept = log.read_bytes().startswith(before)
        results.append(same and kept and [(line["step"], line["total"]) for line in read_log(log)] == losses)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
