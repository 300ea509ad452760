"""The suite: what `evaluate` measures, metric by metric, and on which of the cohorts.

Every measure takes the case, the cohort to judge (synthetic, or training stays that stand in for it), its generator's
name, whether it is the floor that is measured, and a progress; it returns scores and pictures.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from timediff.cohort import Cohort
from timediff.metrics.record import Score
from timediff.metrics.views import View, windows
from timediff.progress import Progress, part
from timediff.results import Picture
from timediff.schema import Feature

if TYPE_CHECKING:
    from timediff.evaluation import Case
    from timediff.metrics.embeddings import Method

Measured = tuple[list[Score], list[Picture]]
Measure = Callable[["Case", Cohort, str, bool, Progress], Measured]

METHODS: tuple["Method", ...] = ("tsne", "umap")


def _copies(case: "Case", cohort: Cohort, name: str, floor: bool, progress: Progress) -> Measured:
    from timediff.metrics.privacy import copied

    train, test, other = (case.view.flat(one) for one in (case.train, case.test, cohort))
    return copied(train, test, other, seed=case.settings.seed), []


def _nnaa(case: "Case", cohort: Cohort, name: str, floor: bool, progress: Progress) -> Measured:
    from timediff.metrics.privacy import nnaa

    settings = case.settings
    rows = (case.view.flat(one) for one in (case.train, case.test, cohort))
    return nnaa(*rows, seed=settings.seed, repetitions=settings.repetitions, device=case.device), []


def _mir(case: "Case", cohort: Cohort, name: str, floor: bool, progress: Progress) -> Measured:
    from timediff.metrics.privacy import mir

    view = View.fit(case.train, case.settings.protocol, scaling="minmax")
    rows = (view.flat(one) for one in (case.train, case.test, cohort))
    return mir(*rows, threshold=case.settings.mir_threshold, seed=case.settings.seed, device=case.device), []


def _fidelity(case: "Case", cohort: Cohort, name: str, floor: bool, progress: Progress) -> Measured:
    from timediff.metrics.fidelity import fidelity

    return fidelity(case.test, cohort, bootstrap=case.settings.bootstrap, seed=case.settings.seed), []


def _discriminative(case: "Case", cohort: Cohort, name: str, floor: bool, progress: Progress) -> Measured:
    from timediff.metrics.discriminative import Judge, discriminative
    from timediff.metrics.judges import at_once

    settings, view = case.settings, case.view
    real = case.test
    judges: list[tuple[Judge, str, View]] = [("paper", "paper", view)]
    if settings.protocol == "paper":  # TimeGAN's judge sees what the generator learnt from
        real, cohort = case.train, case.test if floor else cohort
    else:
        judges.append(("strong", "strong", view))
        if view.masks.channels:
            judges.append(("strong", "strong, masks alone", view.masks))

    def scored(number: int, progress: Progress) -> list[Score]:
        judge, called, seen = judges[number]
        return discriminative(
            seen.series(real), seen.series(cohort), judge=judge, name=called, seed=settings.seed,
            repetitions=settings.repetitions, device=case.device, progress=progress,
        )  # fmt: skip

    if settings.repetitions == 1 and case.device == "cpu":  # more of them share the cores by themselves
        found = at_once(scored, len(judges), progress)
    else:
        found = [scored(number, part(progress, number, len(judges))) for number in range(len(judges))]
    return [score for scores in found for score in scores], []


def _predictive(case: "Case", cohort: Cohort, name: str, floor: bool, progress: Progress) -> Measured:
    from timediff.metrics.predictive import predictive

    settings = case.settings
    scalar = settings.protocol == "paper" and windows(case.test.schema)  # TimeGAN's, for values scaled to [0, 1]
    scores = predictive(
        case.view.series(cohort), case.view.series(case.test), seed=settings.seed, repetitions=settings.repetitions,
        target="scalar" if scalar else "vector", device=case.device, progress=progress,
    )  # fmt: skip
    return scores, []


def _tstr(case: "Case", cohort: Cohort, name: str, floor: bool, progress: Progress) -> Measured:
    from timediff.metrics.usefulness import tstr

    settings = case.settings
    scores = tstr(
        case.view, case.train, case.test, cohort, seed=settings.seed, repetitions=settings.repetitions,
        bootstrap=settings.bootstrap, device=case.device, real=case.trained, progress=progress,
    )  # fmt: skip
    return scores, []


def _tsrtr(case: "Case", cohort: Cohort, name: str, floor: bool, progress: Progress) -> Measured:
    from timediff.metrics.augmentation import tsrtr

    settings = case.settings
    scores = tsrtr(
        case.view, case.train, case.test, cohort, seed=settings.seed, real=settings.tsrtr_real,
        bootstrap=settings.bootstrap, device=case.device, progress=progress,
        trained_on_these=len(case.train) <= settings.tsrtr_real,
    )  # fmt: skip
    return scores, []


def _subgroups(case: "Case", cohort: Cohort, name: str, floor: bool, progress: Progress) -> Measured:
    """Fidelity and TSTR by the values of every static feature."""
    from timediff.metrics.groups import fidelity_by_group
    from timediff.metrics.usefulness import tstr_by_group

    settings = case.settings
    features = [feature.name for feature in case.test.schema.features if _divides(feature)]
    scores: list[Score] = []
    for number, feature in enumerate(features):
        scores += fidelity_by_group(
            case.train, case.test, cohort, feature, bootstrap=settings.bootstrap, seed=settings.seed
        )
        progress(number + 1, 2 * len(features))
    others = [name for name in features if case.test.schema[name].role is None]
    if others and case.test.schema.label is not None and not floor:  # the floor of TSTR is TRTR, which it has already
        scores += tstr_by_group(
            case.view, case.train, case.test, cohort, others, seed=settings.seed, repetitions=1,
            bootstrap=settings.bootstrap, device=case.device, real=case.trained, progress=part(progress, 1, 2),
        )  # fmt: skip
    return scores, []


def _divides(feature: Feature) -> bool:
    return feature.scope == "static" and feature.generated


def _embeddings(case: "Case", cohort: Cohort, name: str, floor: bool, progress: Progress) -> Measured:
    from timediff.metrics.embeddings import embed
    from timediff.report.pictures import map_pictures

    settings, view = case.settings, View.fit(case.train, case.settings.protocol, scaling="standard")
    pictures: list[Picture] = []
    for number, method in enumerate(METHODS):
        found = embed(view, case.train, case.test, cohort, method=method, samples=settings.samples, seed=settings.seed)
        if not isinstance(found, str):
            pictures += map_pictures(found, name, internal=settings.internal)
        progress(number + 1, len(METHODS))
    return [], pictures


# About how many seconds each takes, once and for every repetition: 5,000 stays of the MIMIC-III shape on two cores. For
# the time that is left only the proportions matter.
MEASURES: dict[str, tuple[Measure, tuple[float, float]]] = {
    "copies": (_copies, (1, 0)),
    "nnaa": (_nnaa, (0.5, 0.1)),
    "mir": (_mir, (0.5, 0)),
    "fidelity": (_fidelity, (1, 0)),
    "discriminative": (_discriminative, (0, 24)),
    "predictive": (_predictive, (0, 17)),
    "tstr": (_tstr, (70, 18)),
    "tsrtr": (_tsrtr, (50, 0)),
    "subgroups": (_subgroups, (12, 0)),
    "embeddings": (_embeddings, (50, 0)),
}
# What real stays in place of synthetic ones give a floor to; the others have one of their own.
FLOORED = frozenset({"fidelity", "discriminative", "predictive", "subgroups"})
