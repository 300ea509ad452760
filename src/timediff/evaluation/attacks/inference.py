"""What of a patient a synthetic cohort gives away beyond what it tells of anyone (Giomi et al. 2023, Anonymeter).

Each attack makes guesses about candidates. Guesses about training stays that are right more often than those about
other patients are what the cohort knows of single people, and not of medicine.
"""

from collections.abc import Iterator

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.schema import Feature
from timediff.errors import TimeDiffError
from timediff.evaluation.attacks.case import AttackCase
from timediff.evaluation.attacks.registry import attack

SECRETS = 6  # at most, that are guessed
CLOSE = 0.1  # of a standard deviation: a guessed number is right
PREDICATES = 4  # features that a candidate is singled out by
TRIES = 20  # predicates for each synthetic stay that is used
GUESSES = 500  # synthetic stays that are used
LINKED = 5  # nearest synthetic stays of either half


@attack(
    "attribute",
    "cohort",
    kind="inference",
    title="attribute inference",
    sentence="Knows a whole stay but one secret (the outcome, a category, the mean of a measurement), and takes that "
    "of the nearest synthetic stay.",
    source="Giomi et al., Anonymeter, 2023",
    reference=True,
)
def attribute(case: AttackCase) -> Floats:
    return _guessed(case, part=1.0)


@attack(
    "partial-record",
    "cohort",
    kind="inference",
    title="attribute inference from a partial record",
    sentence="The same, by someone who knows the first half of the stay only.",
    source="Giomi et al., Anonymeter, 2023",
    reference=True,
)
def partial_record(case: AttackCase) -> Floats:
    return _guessed(case, part=0.5)


@attack(
    "linkability",
    "cohort",
    kind="inference",
    title="linkability",
    sentence="Has two lists, each with half of the features, and links their rows by the synthetic stays that are "
    "nearest to both.",
    source="Giomi et al., Anonymeter, 2023",
    reference=True,
)
def linkability(case: AttackCase) -> Floats:
    """Whether the halves of a candidate's features have a nearest synthetic stay in common, (candidates, 1)."""
    names = [feature.name for feature in case.view.schema.features if _is_seen(case, feature)]
    if len(names) < 2:
        raise TimeDiffError("linkability needs two features at least.")
    order = case.rng(42).permutation(len(names))
    sides = []
    for half in (order[: len(names) // 2], order[len(names) // 2 :]):
        chosen = [names[i] for i in half]
        rows, others = (_rows(case, cohort, only=chosen) for cohort in (case.candidates, case.attacked))
        sides.append(_nearest_index(rows, others, LINKED))
    linked = np.array([bool(set(one) & set(other)) for one, other in zip(*sides, strict=True)])
    return linked[:, None].astype(np.float64)


@attack(
    "singling-out",
    "cohort",
    kind="description",
    title="singling out",
    sentence="Describes a synthetic stay by a few of its features so that no other fits, and guesses that exactly one "
    "real patient fits too.",
    source="Giomi et al., Anonymeter, 2023",
    reference=True,
)
def singling_out(case: AttackCase) -> Floats:
    """Which candidates fit each description, (candidates, descriptions)."""
    rng = case.rng(43)
    known = np.concatenate([_summaries(case, one) for one in (case.attacked, case.reference)])
    scale = known.std(axis=0) + 1e-9
    synthetic, candidates = (_summaries(case, one) / scale for one in (case.attacked, case.candidates))
    fits = []
    for stay in rng.permutation(len(synthetic))[:GUESSES]:
        for _ in range(TRIES):
            columns = rng.choice(synthetic.shape[1], min(PREDICATES, synthetic.shape[1]), replace=False)
            here = _fits(synthetic, synthetic[stay], columns)
            if here.sum() == 1:
                fits.append(_fits(candidates, synthetic[stay], columns))
                break
    return np.stack(fits, axis=1).astype(np.float64) if fits else np.zeros((len(candidates), 0))


def _fits(rows: Floats, stay: Floats, columns: Array) -> Array:
    return np.asarray((np.abs(rows[:, columns] - stay[columns]) <= CLOSE).all(axis=1))


def _guessed(case: AttackCase, part: float) -> Floats:
    """Whether each secret of each candidate was guessed right, (candidates, secrets); NaN where it has none."""
    right = []
    for feature in _secrets(case):
        rows, others = (
            _rows(case, cohort, without=feature.name, part=part) for cohort in (case.candidates, case.attacked)
        )
        nearest = _nearest_index(rows, others, 1)[:, 0]
        truth, known = _secret(case.candidates, feature), _secret(case.attacked, feature)
        guess = known[nearest]
        close = 0.0 if feature.discrete else CLOSE * float(np.nanstd(_secret(case.reference, feature)))
        right.append(np.where(np.isnan(truth) | np.isnan(guess), np.nan, np.abs(truth - guess) <= close))
    if not right:
        raise TimeDiffError("there is no secret to guess: no label, no static category, no measurement.")
    return np.stack(right, axis=1)


def _secrets(case: AttackCase) -> Iterator[Feature]:
    """The label, other static classes, then measurements."""
    schema = case.view.schema
    ordered = [f for f in schema.static if f.role == "label"]
    ordered += [f for f in schema.static if f.discrete and f not in ordered]
    ordered += [f for f in schema.temporal if not f.discrete]
    yield from ordered[:SECRETS]


def _secret(cohort: Cohort, feature: Feature) -> Floats:
    """A class, or the mean of a stay's measurements."""
    values = np.asarray(cohort.values(feature.name), np.float64).reshape(len(cohort), -1)
    count = (~np.isnan(values)).sum(axis=1)
    found: Floats = np.where(count > 0, np.nansum(values, axis=1) / np.maximum(count, 1), np.nan)
    return found


def _is_seen(case: AttackCase, feature: Feature) -> bool:
    return any(channel.feature == feature.name for channel in case.view.channels)


def _rows(
    case: AttackCase, cohort: Cohort, *, without: str = "", only: list[str] | None = None, part: float = 1.0
) -> Floats:
    """What is known of each stay, scaled, (N, columns): values and masks of the first steps, and static values."""
    view = case.view
    kept = [c.feature != without and (only is None or c.feature in only) for c in view.channels]
    steps = max(1, round(part * cohort.schema.steps))
    rows = view.series(cohort)[:, :steps, kept].reshape(len(cohort), -1)
    static = [f for f in view.schema.static if f.name != without and (only is None or f.name in only)]
    known = [rows.astype(np.float64)]
    for feature in static:
        values, usual = (np.asarray(one.values(feature.name), np.float64) for one in (cohort, case.reference))
        # A static value weighs as much as a feature at every step.
        scale = np.sqrt(steps) / (float(np.nanstd(usual)) + 1e-9)
        known.append(np.nan_to_num((values - np.nanmean(usual)) * scale)[:, None])
    return np.concatenate(known, axis=1)


def _summaries(case: AttackCase, cohort: Cohort) -> Floats:
    """Mean, lowest and highest value of each temporal feature, and static values, (N, columns)."""
    columns = []
    for feature in case.view.schema.features:
        values = np.asarray(cohort.values(feature.name), np.float64).reshape(len(cohort), -1)
        known = ~np.isnan(values)
        count, some = known.sum(axis=1), known.any(axis=1)
        columns.append(np.where(some, np.nansum(values, axis=1) / np.maximum(count, 1), 0.0))
        if feature.scope == "temporal" and not feature.discrete:
            columns.append(np.where(some, np.where(known, values, np.inf).min(axis=1), 0.0))
            columns.append(np.where(some, np.where(known, values, -np.inf).max(axis=1), 0.0))
    return np.stack(columns, axis=1)


def _nearest_index(rows: Floats, others: Floats, count: int) -> Array:
    """Positions of the nearest of the others, (N, count)."""
    from sklearn.neighbors import NearestNeighbors

    count = min(count, len(others))
    return np.asarray(NearestNeighbors(n_neighbors=count).fit(others).kneighbors(rows, return_distance=False))
