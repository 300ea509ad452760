"""`timediff describe` as a function: what a cohort holds, as records and as text."""

from dataclasses import dataclass
from pathlib import Path

from timediff.data.cohort import Cohort, read_cohort
from timediff.data.describe import Description, Extracted, missing_rate, read_extraction, statistics
from timediff.data.describe import describe as records
from timediff.runtime.files import require_new

MOST_CLASSES = 6  # of a feature in a line


@dataclass(frozen=True)
class Summary:
    cohort: Cohort
    features: list[Description]
    statistics: dict[str, str]  # the paper's table of data set statistics
    extraction: Extracted | None  # what extraction.json says

    def __str__(self) -> str:
        lines = [str(self.cohort), f"  {missing_rate(self.cohort):.1%} of temporal values missing", ""]
        rows = [("feature", "kind", "missing", "mean ± SD (range), or rate of each class"), *map(_row, self.features)]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines += ["  ".join([*(row[i].ljust(widths[i]) for i in range(3)), row[3]]).rstrip() for row in rows]
        if self.extraction is not None:
            lines += ["", *(f"{rule}: {stays}" for rule, stays in self.extraction.rows()), *self.extraction.losses()]
        return "\n".join(lines)

    __repr__ = __str__


def describe(cohort: Cohort | str | Path, html: str | Path | None = None) -> Summary:
    """What is in a cohort or a cohort folder; with `html`, also a page with a picture a feature."""
    folder = None if isinstance(cohort, Cohort) else Path(cohort)
    data = cohort if isinstance(cohort, Cohort) else read_cohort(cohort)
    extraction = None if folder is None else read_extraction(folder)
    if html is not None:
        from timediff.report.cohort_page import write_cohort_page
        from timediff.report.page import require_plotly

        require_new(Path(html))
        require_plotly()
        title = "cohort" if folder is None else folder.resolve().name
        write_cohort_page(Path(html), data, title=title, extraction=extraction)
    return Summary(data, records(data), statistics(data), extraction)


def _row(record: Description) -> tuple[str, str, str, str]:
    feature = record.feature
    values = f"{record.mean:.4g} ± {record.sd:.3g} ({record.low:.4g} to {record.high:.4g}) {feature.unit or ''}"
    if feature.discrete:
        rates = [f"{name}: {rate:.1%}" for name, rate in record.class_rates.items()]
        more = f" and {len(rates) - MOST_CLASSES} more" if len(rates) > MOST_CLASSES else ""
        values = ", ".join(rates[:MOST_CLASSES]) + more
    return feature.name, f"{feature.kind}, {feature.role or feature.scope}", f"{record.missing:.1%}", values
