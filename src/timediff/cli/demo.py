"""The demo: a simulated ICU, a fitted TimeDiff, synthetic stays, and the report on them."""

import shutil
import time
from pathlib import Path
from typing import Any

from timediff.cli.console import bar, console, say, waiting
from timediff.errors import TimeDiffError

MARK = ".timediff-demo"  # only a folder with this file in it is ever replaced
STAYS, STEPS = 2400, 24
SETTINGS: dict[str, Any] = {"training.steps": 1200, "training.batch": 64}  # for two cores and three minutes in all
SKIPPED = ("tsrtr", "subgroups", "predictive", "embeddings")  # what a first look can do without


def demo(out: Path, *, seed: int = 0) -> Path:
    """Runs the whole way once and returns the path of the report."""
    from timediff.report.page import require_plotly

    started = time.monotonic()
    if out.exists():
        if not (out / MARK).is_file():
            raise TimeDiffError(f"{out} exists and is not a demo's folder: choose another with --out, or remove it.")
        shutil.rmtree(out)
    require_plotly()
    out.mkdir(parents=True)
    (out / MARK).touch()

    with waiting("loading PyTorch"):
        from timediff.data.cohort import read_cohort
        from timediff.evaluation.evaluate import evaluate_to
        from timediff.evaluation.settings import EvaluationSettings
        from timediff.generators.streaming import sample_to
        from timediff.generators.timediff.generator import TimeDiff
        from timediff.report.summary import scores_table, verdict_lines
        from timediff.sources.simulated import simulate_to

    with bar("1/4 simulating an ICU") as progress:
        simulate_to(out / "cohort", STAYS, steps=STEPS, seed=seed, progress=progress)
    train, test = read_cohort(out / "cohort").split(seed=seed)
    train.write(out / "train")
    test.write(out / "test")
    model = TimeDiff("fast", assignments=SETTINGS)
    with bar("2/4 fitting TimeDiff") as progress:
        model.fit(train, seed=seed, run=out / "run", progress=progress)
    with bar("3/4 sampling") as progress:
        sample_to(model, out / "synthetic", len(test), seed=seed + 1, progress=progress)
    settings = EvaluationSettings.quick(repetitions=1, skip=SKIPPED, seed=seed)
    with bar("4/4 evaluating") as progress:
        synthetic = {"TimeDiff": read_cohort(out / "synthetic")}
        results = evaluate_to(out / "results", train, test, synthetic, settings=settings, progress=progress)
    console.print(scores_table(results))
    for line in verdict_lines(results):
        say(line)
    report = out / "results" / "report.html"
    say(f"Done in {time.monotonic() - started:.0f} s. Open {report} in a browser.")
    return report
