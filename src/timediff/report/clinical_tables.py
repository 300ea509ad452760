"""Tables of what a clinician would check: by topic, one a number, a row a feature, generators side by side."""

from collections.abc import Mapping, Sequence
from itertools import count

from timediff.evaluation.metrics.extremes import EXTREMES
from timediff.evaluation.score import Score
from timediff.report.number_tables import by_number
from timediff.report.score_tables import side_by_side

TOPICS = {
    "How values are written down": ("lattice", "last_digit", "stay_lattice", "repeats"),
    "How stays differ from one another": ("stay_mean", "stay_sd", "stay_slope", "between_sd"),
    "The most extreme values": tuple(EXTREMES),
    "What no patient can have": ("order",),
}
ABOUT = (
    "Beside each number its 95 % interval and the same number for real against real stays. ▲ ▼ mark what is far worse "
    "than that and not by chance. A heading sorts."
)


def clinical_tables(scores: Mapping[str, Sequence[Score]], numbers: "count[int]") -> str:
    """Numbers of whole cohorts, generators side by side; below them a table a number."""
    overall = {name: [s for s in known if s.feature is None] for name, known in scores.items()}
    content = (side_by_side(overall) if any(overall.values()) else "") + f"<p>{ABOUT}</p>"
    for topic, whats in TOPICS.items():
        found = {
            name: [s for s in known if s.what in whats and s.feature is not None] for name, known in scores.items()
        }
        if not any(found.values()):
            continue
        content += f"<h3>{topic}</h3>\n"
        content += by_number(found, lambda s: s.feature or "", "features" if "order" in whats else "feature")
    return content
