"""The tables of a comparison: scores and times as CSV for programs, and in LaTeX for a paper."""

import csv
import io
import math
from dataclasses import astuple, fields

from timediff.evaluation.results import Results
from timediff.evaluation.trainings import Training


def tables(results: Results) -> dict[str, str]:
    """Their texts by file name; where nothing could be evaluated only those of times."""
    from timediff.report.latex import runtime_latex, scores_latex

    found = {"runtime.csv": runtime_csv(results), "runtime.tex": runtime_latex(results)}
    return found | ({"scores.csv": results.to_csv(), "table.tex": scores_latex(results)} if results.generators else {})


def runtime_csv(results: Results) -> str:
    """One row a training, also of one that failed, which says why."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(field.name for field in fields(Training))
    for one in results.trainings:
        writer.writerow("" if value is None or _is_nan(value) else value for value in astuple(one))
    return text.getvalue()


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
