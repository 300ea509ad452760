"""Whether a cohort's stays may be shown one by one: only where none of them is a copy of a real stay."""

from collections.abc import Sequence

from timediff.data.cohort import Cohort
from timediff.evaluation.score import Score

COPIES = {"copies": "exact copies", "near_copies": "near copies"}  # the metrics that look for them


def why_withheld(scores: Sequence[Score]) -> str:
    """Why no single stay of a cohort with these scores may be shown; empty where they may."""
    shares = {s.metric: s for s in scores if s.metric in COPIES and s.what == "share" and s.group is None}
    unknown = [what for metric, what in COPIES.items() if metric not in shares or not shares[metric].value >= 0]
    if "copies" in shares and shares["copies"].value > 0:  # also where real stays have them: they are shown
        return f"{shares['copies'].value:.2%} of the stays are exact copies of real training stays."
    if "near_copies" in shares and shares["near_copies"].excess() > 0:
        return f"{shares['near_copies'].value:.2%} of the stays are near copies of real training stays."
    if unknown:
        return f"it was not measured whether there are {' and '.join(unknown)} of real stays among them."
    return ""


def copies_of(train: Cohort, test: Cohort, synthetic: Cohort) -> list[Score]:
    """What the metrics of COPIES say, without an evaluation."""
    from timediff.evaluation.inputs.view import View
    from timediff.evaluation.metrics.copies import copies_among
    from timediff.evaluation.metrics.near_copies import near_copies

    view = View.fit(train)
    rows = [view.flat(cohort) for cohort in (train, test, synthetic)]
    return [*copies_among(train, test, synthetic, view), *near_copies(*rows)]
