"""The section on training time: there where something was timed, with the headline of the protocol."""

from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from timediff.evaluation.results import Results
from timediff.evaluation.score import Score
from timediff.evaluation.trainings import Training, runtimes
from timediff.report.training_time import figure, headline, training_time

SCORES = [
    Score("nnaa", "aa_test", 0.6, floor=0.5),
    Score("discriminative", "auc", 0.8, classifier="worst", std={"cohort": 0.03}, floor=0.55),
    Score("discriminative", "score", 0.2, classifier="paper", floor=0.01),
]
TIMED = [Training("<a>", 0, 10.0, 50, 5.0, "CPU"), Training("<a>", 1, 12.0, 50, 5.0, "CPU"), Training("b", 0, 300.0)]
RESULTS = Results(("<a>", "b"), {"<a>": SCORES, "b": SCORES}, {"protocol": "strict"}, {}, trainings=TIMED)


def test_without_times_there_is_none(tmp_path: Path) -> None:
    assert training_time(replace(RESULTS, trainings=()), count()) == ""
    replace(RESULTS, trainings=()).report(tmp_path / "page.html")
    assert "training time" not in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("protocol", "metrics", "expected"),
    [
        ("strict", SCORES, ("auc", "worst")),
        ("paper", SCORES, ("score", "paper")),
        ("strict", SCORES[:1], ("aa_test", None)),
        ("strict", [], None),
    ],
)
def test_the_headline_is_that_of_the_protocol(protocol: str, metrics: list[Score], expected: object) -> None:
    key = headline(replace(RESULTS, settings={"protocol": protocol}, scores={"<a>": metrics, "b": metrics}))
    assert (key and (key[2], key[1])) == expected


def test_a_point_a_generator_with_its_spread_and_the_floor() -> None:
    drawn = figure(RESULTS, runtimes(TIMED))
    assert drawn is not None
    assert [(one["name"], one["x"], one["y"]) for one in drawn["data"]] == [
        ("&lt;a&gt;", [11], [0.8]),
        ("b", [300], [0.8]),
    ]
    assert drawn["data"][0]["error_y"]["array"] == [0.03]
    assert drawn["data"][1]["error_x"] == {"visible": False}  # one training has no spread
    assert [line["y0"] for line in drawn["layout"]["shapes"]] == [0.55]
    assert drawn["layout"]["xaxis"]["type"] == "log"


def test_failures_alone_are_told_too() -> None:
    said = training_time(replace(RESULTS, trainings=[Training("b", 0, failure="<no>")]), count())
    assert "failed: seed 0: &lt;no&gt;" in said
    assert "<figure" not in said


def test_times_come_back_from_their_folder(tmp_path: Path) -> None:
    RESULTS.write(tmp_path / "results")
    back = Results.read(tmp_path / "results")
    assert repr(back.trainings) == repr(TIMED)  # NaN is NaN
    assert "Quality against training time" in (tmp_path / "results" / "report.html").read_text()
