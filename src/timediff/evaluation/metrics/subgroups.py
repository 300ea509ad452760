"""Subgroups: whether some stays are generated worse than others, by a static feature such as sex or age."""

from dataclasses import replace

from timediff.data.cohort import Cohort
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.data.schema import Feature
from timediff.evaluation.case import Measurement
from timediff.evaluation.metrics.fidelity import fidelity
from timediff.evaluation.metrics.tstr import events_by_group, tstr_by_group
from timediff.evaluation.registry import Cost, metric
from timediff.evaluation.score import Score, unavailable
from timediff.evaluation.statistics.groups import groups
from timediff.runtime.progress import part

FEWEST = 30  # stays a group needs in either cohort


@metric("subgroups", "looks real", title="Groups of patients", floored=True, cost=Cost(12), quick=False)
def measure(given: Measurement) -> list[Score]:
    """Fidelity and TSTR by the values of every static feature; their scores are those metrics', with a group."""
    settings, schema = given.settings, given.test.schema
    features = [feature.name for feature in schema.features if _divides(feature)]
    scores: list[Score] = []
    for number, feature in enumerate(features):
        scores += fidelity_by_group(
            given.train, given.test, given.cohort, feature, bootstrap=settings.bootstrap, seed=settings.seed
        )
        given.progress(number + 1, 2 * len(features))
    others = [name for name in features if schema[name].role is None]
    if others and schema.label is not None and not given.floor:  # the floor of TSTR is TRTR, which it has already
        scores += tstr_by_group(
            given.view,
            given.train,
            given.test,
            given.cohort,
            others,
            seed=settings.seed,
            repetitions=1,
            bootstrap=settings.bootstrap,
            device=given.device,
            real=given.case.trained,
            progress=part(given.progress, 1, 2),
        )
        scores += events_by_group(given.test, others, given.train)
    return scores


def _divides(feature: Feature) -> bool:
    return feature.scope == "static" and feature.role in (None, "label")


def fidelity_by_group(
    train: Cohort, real: Cohort, synthetic: Cohort, feature: str, *, bootstrap: int = 200, seed: int = 0
) -> list[Score]:
    """Fidelity within each group of `feature`, of everything but `feature` itself."""
    scores: list[Score] = []
    pairs = zip(groups(real, feature, train), groups(synthetic, feature, train), strict=True)
    for (name, ours), (_, theirs) in pairs:
        if why := _too_few(int(ours.sum()), int(theirs.sum())):
            scores.append(unavailable("fidelity", "all", why, group=name))
            continue
        found = fidelity(real.take(ours), synthetic.take(theirs), bootstrap=bootstrap, seed=seed)
        within = [score for score in found if score.feature != feature]
        if real.schema[feature].role == "label":  # it is the same for all of a group
            within = [score for score in within if score.what != "label_association"]
        scores += [replace(score, group=name) for score in within]
    return scores


def _too_few(real: int, synthetic: int) -> str:
    short = [
        f"{f'fewer than {MIN_AGGREGATE}' if count < MIN_AGGREGATE else count} stays in the {name} cohort"
        for name, count in (("real", real), ("synthetic", synthetic))
        if count < FEWEST
    ]
    return f"{' and '.join(short)}; at least {FEWEST} are needed in each" if short else ""
