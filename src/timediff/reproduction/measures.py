"""What is measured of synthetic cohorts: metrics of the paper's protocol, TSRTR in all its forms, and pictures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.evaluation.case import Case
from timediff.evaluation.evaluate import evaluate
from timediff.evaluation.figure_data import FigureData, cohort_figures
from timediff.evaluation.metrics.embeddings import Method, embed, maps
from timediff.evaluation.score import Score, combined
from timediff.evaluation.settings import EvaluationSettings
from timediff.evaluation.single_stays import copies_of, why_withheld
from timediff.runtime.progress import Progress, silent

PICTURED = ("trajectories", "stays")
SEED = 2023
NAME = "synthetic"  # whichever method: two whose cohorts are the same are measured once
WINDOWS_SHOWN, SHOWN = 700, 2000  # points of each set, as in the paper


@dataclass(frozen=True)
class Asked:
    """Real stays, synthetic cohorts that differ by seed alone, and how they are measured."""

    train: Cohort
    test: Cohort
    cohorts: Sequence[Cohort]
    repetitions: int = 10
    mir_threshold: float = 0.08
    parts: Path | None = None  # where evaluations keep what is finished
    progress: Progress = silent

    @property
    def settings(self) -> EvaluationSettings:
        return EvaluationSettings(
            protocol="paper", seed=SEED, repetitions=self.repetitions, mir_threshold=self.mir_threshold
        )


@dataclass(frozen=True)
class MeasuredScores:
    scores: list[Score] = field(default_factory=list)
    figures: list[FigureData] = field(default_factory=list)


def _metric(name: str) -> Callable[[Asked], MeasuredScores]:
    """A metric as `timediff evaluate --protocol paper` has it, with its floor."""

    def measure(asked: Asked) -> MeasuredScores:
        settings = replace(asked.settings, only=(name,))
        results = evaluate(
            asked.train, asked.test, {NAME: asked.cohorts}, settings=settings, parts=asked.parts,
            progress=asked.progress,
        )  # fmt: skip
        return MeasuredScores(list(results.scores[NAME]))

    return measure


def _tsrtr(asked: Asked) -> MeasuredScores:
    """Flattened and as summaries; the real stays are all those that the generator was trained on."""
    from timediff.evaluation.metrics.tsrtr import SOME, tsrtr

    view, found = Case(asked.train, asked.test, asked.settings).view, []
    for cohort in asked.cohorts:
        scores = []
        for kind in ("flattened", "summary"):
            scores += tsrtr(
                view, asked.train, asked.test, cohort, seed=SEED, repetitions=asked.repetitions, real=len(asked.train),
                kind=kind, trained_on_these=True, progress=asked.progress,
            )  # fmt: skip
        found.append([score for score in scores if score.what.startswith(SOME)])
    return MeasuredScores(combined(found))


def _map(method: Method) -> Callable[[Asked], MeasuredScores]:
    """Of the first seed; as densities, since points would show single real stays."""

    def measure(asked: Asked) -> MeasuredScores:
        case = Case(asked.train, asked.test, asked.settings)
        samples = WINDOWS_SHOWN if len(asked.test) < SHOWN else SHOWN
        found = embed(
            case.scaled("standard"), asked.train, asked.test, asked.cohorts[0], method=method, samples=samples,
            seed=SEED,
        )  # fmt: skip
        if isinstance(found, str):
            raise TimeDiffError(f"{found}.")
        return MeasuredScores(figures=maps(found, NAME))

    return measure


def _courses(asked: Asked) -> MeasuredScores:
    """Means over time of the first seed's stays, and single ones where none is a copy."""
    cohort = asked.cohorts[0]
    single = not why_withheld(copies_of(asked.train, asked.test, cohort))
    drawn = cohort_figures(asked.test, cohort, NAME, single=single)
    return MeasuredScores(figures=[figure for figure in drawn if figure.section in PICTURED])


@dataclass(frozen=True)
class Measure:
    """A function, and about how many seconds of two cores it takes: once, and for each repetition."""

    function: Callable[[Asked], MeasuredScores]
    once: float = 1.0
    each: float = 0.0
    grows: Literal["steps", "stays"] = "stays"  # with 25 steps of a stay, or with 5,000 stays
    needs_label: bool = False
    synthetic: int = 1  # as many stays as to train on, times this


MEASURES: Mapping[str, Measure] = {
    "discriminative": Measure(_metric("discriminative"), 2, 9, "steps"),
    "predictive": Measure(_metric("predictive"), 2, 17, "steps"),
    "nnaa": Measure(_metric("nnaa"), 4, 1),
    "mir": Measure(_metric("mir"), 4, 1),
    "tstr": Measure(_metric("tstr"), 70, 18, needs_label=True),
    "tsrtr": Measure(_tsrtr, 100, 150, needs_label=True, synthetic=9),
    "tsne": Measure(_map("tsne"), 25),
    "umap": Measure(_map("umap"), 25),
    "courses": Measure(_courses, 10),
}


def seconds_of(name: str, stays: int, steps: int, repetitions: int, slower: float) -> float:
    """About how long it takes on a machine so much slower than the reference."""
    measure = MEASURES[name]
    size = steps / 25 if measure.grows == "steps" else max(0.05, stays / 5000)
    return slower * (2 + size * (measure.once + measure.each * repetitions))
