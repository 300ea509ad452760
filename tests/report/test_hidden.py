"""What few stays say is hidden and said to be so, and what is beside it does not give it away or seem to be all."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from timediff.data.arrays import Floats
from timediff.data.cohort import Cohort
from timediff.data.describe import distribution, statistics
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.data.schema import Feature, Schema
from timediff.evaluation.figure_data import ExtremeValues, Histogram, course_over_time, distributions
from timediff.evaluation.metrics.marginals import marginals
from timediff.report import figures
from timediff.report.cohort_page import write_cohort_page
from timediff.report.terminal import cells

STAYS = 200


def cohort(died: int, ventilated: int = 50) -> Cohort:
    """So many stays died, and so many were ventilated for one of two steps."""
    features = (
        Feature("x", "continuous"),
        Feature("ventilated", "binary"),
        Feature("died", "binary", "static", role="label"),
    )
    pump = np.zeros((STAYS, 2))
    pump[:ventilated, 0] = 1
    x = np.random.default_rng(0).normal(size=(STAYS, 2))
    outcome = np.where(np.arange(STAYS) < died, 1.0, 0.0)
    return Cohort(Schema(features, 2), np.arange(STAYS), {"x": x, "ventilated": pump}, {"died": outcome})


@pytest.mark.parametrize("died", [1, 9, STAYS - 9, STAYS - 1])
def test_a_rare_class_hides_the_other(died: int, tmp_path: Path) -> None:
    real, made = cohort(died), cohort(60)
    known = distribution(real, real.schema["died"], MIN_AGGREGATE)
    assert known.class_rates == {}
    drawn = distributions(known, made)
    assert not figures.draw(drawn).data
    assert figures.draw(drawn).layout.annotations[0].text.startswith("hidden: fewer than 10 stays")
    assert not [trace for trace in figures.distribution(real, known).data if "100" in str(trace.x)]
    assert statistics(real, MIN_AGGREGATE)["label died"] == "hidden"
    write_cohort_page(tmp_path / "page.html", real, title="t")
    text = (tmp_path / "page.html").read_text()
    [row] = re.findall(r'<tr><th scope="row">died</th>(.*?)</tr>', text)
    assert "hidden" in row
    assert "100" not in row
    [record] = [one for one in marginals(real, made) if one.feature == "died"]
    assert [cell.text for cell in cells(record)[1:4]] == ["hidden", "30.0 %", "hidden"]


@pytest.mark.parametrize(("died", "shown"), [(0, ["0"]), (10, ["0", "1"]), (60, ["0", "1"]), (STAYS, ["1"])])
def test_ten_are_shown_and_none_is_nobodys_secret(died: int, shown: list[str]) -> None:
    real = cohort(died)
    assert list(distribution(real, real.schema["died"], MIN_AGGREGATE).class_rates) == shown
    [record] = [one for one in marginals(real, real) if one.feature == "died"]
    assert cells(record)[1].text == f"{100 * died / STAYS:.1f} %"


def test_a_class_that_few_stays_ever_have_has_no_course() -> None:
    for ventilated, hidden in ((0, False), (9, True), (10, False), (STAYS - 9, False)):
        course = course_over_time(cohort(50, ventilated), cohort(50), "ventilated")
        assert (course.mean["real"][0] == [None, None]) == hidden
        assert course.mean["synthetic"][0] == [0.25, 0]


# Bins


def one_feature(values: Floats, **about: object) -> Cohort:
    feature = Feature("x", "continuous", **about)  # type: ignore[arg-type]
    return Cohort(Schema((feature,), values.shape[1]), np.arange(len(values)), {"x": values}, {})


def edges(values: Floats, **about: object) -> Floats:
    one = one_feature(values, **about)
    return distribution(one, one.schema["x"], MIN_AGGREGATE).edges


RNG = np.random.default_rng(3)
NORMAL = RNG.normal(80, 12, (300, 10))
MOSTLY = np.where(RNG.random(NORMAL.shape) < 0.3, np.round(NORMAL + 1 / 3, 3), np.round(NORMAL))


@pytest.mark.parametrize(
    ("values", "about", "step"),
    [
        (np.round(NORMAL), {}, 1),
        (np.round(NORMAL), {"resolution": 0.1}, 1),  # declared finer than it is
        (MOSTLY, {}, 1),
        (np.where(RNG.random(NORMAL.shape) < 0.8, 0, np.round(NORMAL, 1)), {}, 0.1),  # a zero lies on every lattice
        (np.round(NORMAL / 20, 1), {}, 0.1),
        (np.round(NORMAL / 20, 1), {"resolution": 0.1}, 0.1),
        (np.round(NORMAL * 2) / 2, {"resolution": 0.5}, 0.5),
        (np.round(NORMAL / 10) * 10, {"resolution": 10}, 10),
    ],
)
def test_bins_lie_half_a_step_off_the_lattice(values: Floats, about: dict[str, float], step: float) -> None:
    found = edges(values, **about) / step
    assert len(found) > 4
    assert found - 0.5 == pytest.approx(np.round(found - 0.5), abs=1e-6)
    widths = np.diff(found)
    assert widths == pytest.approx(np.full(len(widths), round(widths[0])), abs=1e-6)


def test_values_without_a_lattice_have_bins_from_end_to_end() -> None:
    known = distribution(one_feature(NORMAL), Feature("x", "continuous"), MIN_AGGREGATE)
    assert known.spacing is None
    assert known.edges[[0, -1]] == pytest.approx([known.low, known.high])


def gappy() -> Cohort:
    """Values about 20 and 80, and between them those of three stays."""
    values = np.round(np.where(np.arange(STAYS)[:, None] % 2, 20, 80) + RNG.normal(0, 3, (STAYS, 5)))
    values[:3] = 50
    return one_feature(values)


def test_hidden_bins_are_hatched_and_not_drawn_as_zero() -> None:
    real = gappy()
    known = distribution(real, real.schema["x"], MIN_AGGREGATE)
    content = distributions(known, real)
    assert isinstance(content, Histogram)
    hidden = [place for place, height in enumerate(content.real) if height is None]
    assert hidden
    for figure in (figures.draw(content), figures.distribution(real, known)):
        [hatched] = [trace for trace in figure.data if (trace.name or "").startswith("hidden: fewer than 10")]
        assert list(hatched.x) == [content.middles[place] for place in hidden]
        assert min(hatched.y) == max(height for trace in figure.data[:2] for height in trace.y if height is not None)
        assert hatched.marker.pattern.shape == "/"
        assert figure.layout.barmode == "overlay"  # beside each other, bars would leave their bins
        bars = figure.data[0]
        assert all(bars.y[place] is None for place in hidden)


def test_what_is_hatched_says_no_number() -> None:
    known = distribution(gappy(), Feature("x", "continuous"), MIN_AGGREGATE)
    drawn = json.loads(figures.draw(distributions(known, gappy())).to_json())
    hatched = drawn["data"][-1]
    assert hatched["hovertemplate"] == "%{text}: hidden<extra></extra>"
    assert len(set(hatched["y"])) == 1


# Extremes


def test_extremes_are_drawn_by_set_and_what_is_not_told_has_no_mark() -> None:
    values = {"train": [1.0, 2.0, 8.0, None], "test": [None, 2.5, 8.5, 9.5], "synthetic": [0.0, 2.0, 8.0, 9.0]}
    drawn = figures.draw(ExtremeValues("bpm", [0.001, 0.01, 0.99, 0.999], values))
    assert {trace.name: list(trace.x) for trace in drawn.data} == {
        figures.SET_NAMES[name]: numbers for name, numbers in values.items()
    }
    assert list(drawn.layout.yaxis.ticktext) == ["lowest 0.1 %", "lowest 1 %", "highest 1 %", "highest 0.1 %"]
    assert len({y for trace in drawn.data for y in trace.y}) == 12  # equal values do not cover one another
    assert drawn.layout.yaxis.range[0] > drawn.layout.yaxis.range[1]  # the lowest on top, as in a table
    nothing = figures.draw(ExtremeValues(None, [0.001], {name: [None] for name in values}))
    assert not nothing.data
    assert nothing.layout.annotations[0].text.startswith("hidden: fewer than 10 stays")


# Bands


def test_no_band_is_below_what_can_be() -> None:
    counts = RNG.poisson(0.3, (STAYS, 5)).astype(np.float64)
    course = course_over_time(one_feature(counts), one_feature(counts), "x")
    assert all(low == 0 for low in course.low["real"][0])
    bounded = one_feature(np.where(RNG.random((STAYS, 5)) < 0.1, 90.0, 100.0), bounds=(90, 100))
    high = course_over_time(bounded, bounded, "x").high["real"][0]
    assert high == [100] * 5
    below = one_feature(RNG.normal(size=(STAYS, 5)))
    assert all(low is not None and low < -0.5 for low in course_over_time(below, below, "x").low["real"][0])
