"""Charts are tables of synthetic stays: complete, escaped, scrolled when wide, and left out when they must be."""

import json
from dataclasses import replace

import pytest

from timediff.evaluation.evaluate import evaluate_to
from timediff.evaluation.figure_data import Charts, FigureData, PlotlyFigure
from timediff.evaluation.registry import METRICS
from timediff.evaluation.results import Results
from timediff.evaluation.score import Score
from timediff.evaluation.settings import EvaluationSettings
from timediff.report import figures
from timediff.report.chart_tables import chart_tables
from timediff.report.clinical_tables import TOPICS, clinical_tables
from timediff.report.score_tables import value_cell
from timediff.sources.simulated import simulate

ABOUT = {"sex": "F", "<b>": "", **{f"icd{i}": "0" for i in range(20)}}
CHARTS = Charts("1h", 2, 4, ["7"], [ABOUT], ["<hr>"], ["bpm"], [[["<i>", ""]]])


def results(*names: str) -> Results:
    shown = [FigureData("charts", "charts", "Charts", CHARTS, generator=name) for name in names]
    no_copies = [Score(metric, "share", 0.0, floor=0.0, floor_high=0.0) for metric in ("copies", "near_copies")]
    return Results(names, dict.fromkeys(names, no_copies), {}, {}, figures=shown)


def test_a_chart_has_a_row_a_feature_and_a_column_an_hour() -> None:
    page = chart_tables(results("ours"))
    assert "<h2>Looks like the training file</h2>" in page
    assert "<details><summary>1 stays of ours</summary>" in page
    assert '<div class="wide"' in page  # which scrolls
    assert '<th scope="col">hour</th><th scope="col">0</th><th scope="col">1</th>' in page
    assert '<th scope="row">&lt;hr&gt; (bpm)</th><td>&lt;i&gt;</td><td></td>' in page
    assert "The first 2 of 4 steps." in page
    assert "Stay 7, sex: F, &lt;b&gt;: –, icd0: 0" in page
    assert "and 10 more" in page


def test_who_holds_copies_of_real_stays_is_not_shown() -> None:
    page = chart_tables(results("ours", "theirs"), withheld={"theirs"})
    assert "of ours" in page
    assert "of theirs" not in page
    assert chart_tables(results("ours"), withheld={"ours"}) == ""
    assert chart_tables(replace(results("ours"), figures=())) == ""


def test_charts_are_no_figure_of_a_gallery(tmp_path) -> None:
    results("ours").report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert page.count("Looks like the training file") == 1
    assert 'id="charts"' not in page
    other = FigureData("other", "charts", "Of another package", PlotlyFigure({"data": [], "layout": {}}))
    replace(results("ours"), figures=[*results("ours").figures, other]).report(tmp_path / "both.html")
    assert (tmp_path / "both.html").read_text().count('<figure data-picture="') == 1
    with pytest.raises(ValueError, match="tables"):
        figures.draw(CHARTS)


def test_a_report_is_drawn_again_without_the_cohorts(tmp_path) -> None:
    train, test = simulate(200, steps=4, seed=0).split(test=0.4, seed=0)
    settings = EvaluationSettings(only=("copies", "near_copies", "clinical"), bootstrap=5)
    evaluate_to(tmp_path / "out", train, test, {"a": simulate(80, steps=4, seed=1)}, settings=settings)
    again = Results.read(tmp_path / "out")
    again.report(tmp_path / "again.html")
    page = (tmp_path / "again.html").read_text()
    assert page == (tmp_path / "out" / "report.html").read_text()
    for heading in (*TOPICS, "Looks like the training file", "Lengths of gaps"):
        assert f">{heading}</h" in page
    assert "sbp ≥ mbp" in page
    assert len(json.dumps([figure.to_json() for figure in again.figures])) < 300_000


def test_every_number_has_its_topic() -> None:
    told = {what for whats in TOPICS.values() for what in whats} | {"event_curve"}
    assert told == set(METRICS("clinical").numbers)


def test_numbers_stand_by_topic_and_generator() -> None:
    one = [Score("clinical", "repeats", 0.2, feature="<hr>"), Score("clinical", "event_curve", 0.1)]
    page = clinical_tables({"ours": one, "theirs": []}, iter(()))
    assert page.index("time to event") < page.index("How values are written down") < page.index("&lt;hr&gt;")
    assert "Extreme" not in page


def test_a_mark_needs_more_than_chance() -> None:
    far = Score("clinical", "highest_1", 0.5, feature="x", low=0.2, high=0.8, floor=0.0)
    assert "<mark>" in value_cell(far, floor=True)
    assert "<mark>" not in value_cell(replace(far, low=-0.1), floor=True)
    assert "<mark>" in value_cell(replace(far, low=float("nan"), high=float("nan")), floor=True)
