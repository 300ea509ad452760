"""Verdicts: the reason that decided is said first, and where the data cannot say, the verdict says so."""

import io
import math
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from helpers.foreign_attack import found, installed
from timediff.data.cohort import Cohort
from timediff.evaluation.evaluate import evaluate
from timediff.evaluation.metrics.tstr import events
from timediff.evaluation.results import Results
from timediff.evaluation.score import Score
from timediff.report.evaluation_page import write_report
from timediff.report.summary import scores_table, verdict_lines
from timediff.report.verdicts import (
    AVERAGES,
    FEWEST_EVENTS,
    FEWEST_STAYS,
    RULES,
    Verdict,
    exposes,
    leaks,
    looks_real,
    useful,
    verdicts,
)
from timediff.sources.simulated import simulate


@pytest.fixture(scope="module", autouse=True)
def foreign_attack() -> Iterator[None]:
    with installed():
        yield


def averages(worse: float = 0.0) -> list[Score]:
    """NNAA and MIR, so far above their floors, and surely so."""
    ideal = {("nnaa", "nnaa"): 0.0}
    return [
        Score(m, w, v + worse, n=500, low=v + worse - 0.02, high=v + worse + 0.02, floor=v, floor_high=v + 0.02)
        for m, w in AVERAGES
        for v in [ideal.get((m, w), 0.5)]
    ]


def no_copies() -> list[Score]:
    near = Score("near_copies", "share", 0.003, n=400, floor=0.002, floor_low=0.0, floor_high=0.03)
    return [Score("copies", "share", 0.0, n=400, floor=0.0), near]


def safe() -> list[Score]:
    """Without copies, and an attack that finds nothing."""
    return [*no_copies(), found(), *averages()]


def result(*scores: Score) -> Results:
    return Results(("a",), {"a": scores}, {}, {})


def loss(value: float, low: float, high: float, count: float = 200) -> list[Score]:
    who = "mean of five, flattened"
    held_out = 1000
    known = Score("tstr", "events", count, n=held_out)
    if count < 10:
        known = Score("tstr", "events", math.nan, n=held_out, note="fewer than 10 unseen stays have the rarer outcome")
    gap = Score("tstr", "gap", value, classifier=who, n=held_out, low=low, high=high)
    return [gap, Score("tstr", "trtr", 0.85, classifier=who, n=held_out), known]


def auc(value: float, half: float = 0.01, classifier: str = "strong", **about: object) -> Score:
    ends = {"low": value - half, "high": value + half, "floor": 0.51, "floor_low": 0.5, "floor_high": 0.52}
    return Score("discriminative", "auc", value, classifier=classifier, **{**ends, **about})  # type: ignore[arg-type]


# The reason that decided


def deciding(place: int) -> tuple[Verdict, str]:
    """The verdict where one of three numbers is bad, and what its first sentence must name."""
    known = safe()
    bad = known[place].value + 0.3
    known[place] = replace(known[place], value=bad, low=bad - 0.02, high=bad + 0.02)
    return exposes(known), ["30.00% ", "30.30% ", "Foreign attack: 0.800"][place]


@pytest.mark.parametrize("place", range(3))
def test_the_first_sentence_is_the_number_that_decided(place: int) -> None:
    verdict, words = deciding(place)
    assert verdict.grade == "poor"
    assert verdict.sentences[0].startswith(words)


def test_it_has_the_value_the_floor_and_the_limit() -> None:
    assert deciding(2)[0].sentences[0] == (
        "Foreign attack: 0.800 (95 % interval 0.780 to 0.820); real stays 0.500: "
        "0.300 above the floor, more than the limit of 0.05."
    )
    assert deciding(1)[0].sentences[0] == (
        "30.30% of the synthetic stays are near copies: they lie closer to one training stay than real stays do "
        "(real stays: 0.20%; chance explains at most 3.00%)."
    )
    assert looks_real([auc(0.7), auc(0.52, classifier="strong, masks alone")]).sentences[0] == (
        "Two-layer GRU tells synthetic from real stays with AUC 0.700 (95 % interval 0.690 to 0.710); real against "
        "real 0.510 (95 % interval 0.500 to 0.520): 0.190 above the floor, more than the limit of 0.15."
    )
    assert useful(loss(0.09, 0.06, 0.12)).sentences[0] == (
        "Training on synthetic instead of real stays costs 0.090 AUROC (95 % interval 0.060 to 0.120), more than the "
        "limit of 0.05 (mean of five, flattened; 200 of 1,000 unseen stays have the rarer outcome; real stays reach "
        "0.850)."
    )


def test_the_terminal_shows_the_same_reason() -> None:
    verdict, words = deciding(2)
    known = safe()
    known[2] = replace(known[2], value=0.8, low=0.78, high=0.82)
    line = next(line for line in verdict_lines(result(*known)) if "expose" in line)
    assert line == f"Whom could it expose? signs of a leak. {verdict.sentences[0]}"
    assert words in line
    assert "copies" not in line  # of which there are none more than usual


def test_a_good_verdict_says_which_attack_came_closest_to_the_limit() -> None:
    known = safe()
    known[2] = replace(known[2], value=0.515)
    verdict = exposes(known)
    assert (verdict.grade, verdict.word) == ("good", "no sign of a leak")
    assert verdict.sentences[0].startswith("Foreign attack: 0.515")
    assert verdict.sentences[1] == "No exact copies or near copies beyond chance were found."


@pytest.mark.parametrize(("place", "absent"), [(0, "copies"), (1, "near copies")])
@pytest.mark.parametrize("more", [[], averages(), [found()], [found(), *averages()]])
def test_what_was_not_measured_is_the_reason_where_it_decides(place: int, absent: str, more: list[Score]) -> None:
    known = no_copies()
    for left in ([known[1 - place]], [known[1 - place], replace(known[place], value=math.nan)]):
        verdict = exposes([*left, *more])
        assert (verdict.grade, verdict.sentences[0]) == ("with care", f"Not measured: {absent}.")


# Without an attack


def test_no_copies_show_nothing_and_it_says_who_asks_further() -> None:
    for known in (no_copies(), [*no_copies(), *averages()], [*averages(), *no_copies()]):
        verdict = exposes(known)
        assert verdict.grade == verdict.word == "not shown"
        assert verdict.sentences[0] == (
            "No exact copies or near copies beyond chance were found; whether single patients can be recognised is a "
            "question for timediff audit, which was not made."
        )


def test_averages_over_distances_are_shown_with_their_floors() -> None:
    assert exposes([*no_copies(), *averages(0.3)]).sentences[1] == (
        "NNAA and MIR are averages over distances and decide nothing: NNAA risk 0.300 (real stays 0.000); nearer to "
        "training 0.800 (real stays 0.500); attack's AUC 0.800 (real stays 0.500)."
    )
    assert not any("NNAA" in sentence for sentence in exposes(no_copies()).sentences)


def cases() -> Iterator[list[Score]]:
    """Every word the third question can have."""
    copies, near = no_copies()
    yield [copies, near]  # not shown
    yield [replace(copies, value=0.1), near]  # signs of a leak
    yield [copies, replace(near, value=0.2)]
    yield [copies]  # with care
    yield [copies, replace(near, floor_high=0.1, note="Up to 40.")]  # too few to say
    yield [copies, near, found()]  # no sign of a leak
    yield [copies, near, found(0.8)]
    yield []  # not measured


@pytest.mark.parametrize("place", range(8))
@pytest.mark.parametrize("held_out", [None, 60, 1000])
def test_averages_over_distances_decide_nothing(place: int, held_out: int | None) -> None:
    known = list(cases())[place]
    alone = exposes(known, held_out=held_out)
    halves = [Score("nnaa", "real_apart", 1.0), Score("nnaa", "synthetic_apart", 0.0)]
    numbers = [replace(s, metric=m, what=w) for m, w in (("mir", "f1"), ("nnaa", "aa_train")) for s in averages(0.4)]
    wide = [replace(s, low=0.0, high=1.0) for s in averages()]
    few = [replace(s, n=20) for s in averages()]
    lost = [replace(s, value=math.nan, note="too few") for s in averages()]
    for beside in (averages(), averages(0.3), averages(-0.3), halves, numbers, wide, few, lost):
        verdict = exposes([*beside, *known], held_out=held_out)
        assert verdict.grade == alone.grade
        assert verdict.sentences[0] == alone.sentences[0]


def test_averages_alone_answer_nothing() -> None:
    verdict = exposes(averages())
    assert verdict.grade == "not measured"
    assert (
        verdict.sentences[0] == "It was not measured whether there are exact copies or near copies of training stays."
    )
    assert "decide nothing" in verdict.sentences[1]
    assert exposes([]).sentences == verdict.sentences[:1]


# Too few to say


@pytest.mark.parametrize("count", [2, 19])
@pytest.mark.parametrize("value", [-0.01, 0.04, 0.2])
def test_few_events_say_nothing_whatever_the_loss(count: int, value: float) -> None:
    verdict = useful(loss(value, value - 0.01, value + 0.01, count))
    assert verdict.grade == verdict.word == "too few to say"
    said = "fewer than 10" if count < 10 else "19 of 1,000"
    assert said in verdict.sentences[0].lower()
    assert f"fewer than {FEWEST_EVENTS}" in verdict.sentences[0]
    assert str(FEWEST_EVENTS) in RULES["Is it useful?"]


def test_few_events_do_not_even_say_that_the_outcome_cannot_be_predicted() -> None:
    gap, real, known = loss(0.0, -0.1, 0.1, 12)
    assert useful([gap, replace(real, value=0.5), known]).grade == "too few to say"


def test_twenty_events_are_enough_to_say_poor() -> None:
    assert useful(loss(0.2, 0.1, 0.3, FEWEST_EVENTS)).grade == "poor"


def test_poor_only_where_the_whole_interval_lies_beyond_the_limit() -> None:
    assert useful(loss(0.08, 0.051, 0.11)).grade == "poor"
    verdict = useful(loss(0.08, 0.049, 0.11))
    assert verdict.grade == "with care"
    assert "more than 0.05 is not sure" in verdict.sentences[0]
    assert useful(loss(0.08, 0.001, 0.16)).grade == "with care"
    verdict = useful(loss(0.08, -0.001, 0.16))
    assert verdict.grade == "too few to say"
    assert "from no loss to more than 0.05" in verdict.sentences[0]
    assert useful(loss(0.0, -0.1, 0.1)).grade == "too few to say"  # nor good where a great loss is as likely
    assert useful(loss(0.03, -0.01, 0.05)).grade == "with care"
    assert useful(loss(0.01, -0.03, 0.04)).grade == "good"


@pytest.mark.parametrize(
    ("value", "grade"), [(0.019, "good"), (0.021, "with care"), (0.049, "with care"), (0.053, "poor")]
)
def test_the_limits_of_a_loss_and_of_a_leak_are_two_and_five_hundredths(value: float, grade: str) -> None:
    """Where the interval excludes the floor."""
    assert useful(loss(value, value - 0.001, value + 0.001)).grade == grade
    attack = replace(found(0.5 + value, half=0.001), floor_high=0.5)
    assert exposes([*no_copies(), attack]).grade == grade


@pytest.mark.parametrize(("high", "grade"), [(0.599, "good"), (0.601, "too few to say")])
def test_an_interval_a_tenth_above_the_floor_rules_no_leak_out(high: float, grade: str) -> None:
    assert exposes([*no_copies(), replace(found(0.51), low=0.45, high=high)]).grade == grade


@pytest.mark.parametrize(("high", "grade"), [(0.049, "not shown"), (0.051, "too few to say")])
def test_near_copies_can_hide_among_a_twentieth(high: float, grade: str) -> None:
    exact, near = no_copies()
    assert exposes([exact, replace(near, floor_high=high)]).grade == grade


def test_other_real_stays_to_train_on_widen_the_interval() -> None:
    def verdict(value: float, half: float, reach: float) -> Verdict:
        gap, *others = loss(value, value - half, value + half)
        return useful([replace(gap, floor=0.0, floor_low=-reach, floor_high=reach), *others])

    assert verdict(0.1, 0.03, 0.0).grade == "poor"
    assert verdict(0.1, 0.03, 0.039).grade == "poor"  # .03 and .039 are .0492 together
    assert verdict(0.1, 0.03, 0.041).grade == "with care"  # .0508
    assert verdict(0.1, 0.06, 0.09).grade == "too few to say"
    assert verdict(0.0, 0.03, 0.039).grade == "good"
    assert verdict(0.0, 0.03, 0.041).grade == "too few to say"
    assert "(95 % interval 0.050 to 0.150)" in verdict(0.1, 0.03, 0.04).sentences[0]
    gap, *others = loss(0.1, 0.07, 0.13)  # results without such a floor: as if there were no other real stays
    assert useful([replace(gap, classifier=None), *others]).grade == "poor"


def test_several_classifiers_without_a_mean_widen_it_as_well() -> None:
    gap, _, known = loss(0.1, 0.07, 0.13)
    floors = [(-0.03, 0.03), (-0.06, 0.06)]
    gaps = [replace(gap, classifier=f"c{low}", floor_low=low, floor_high=high) for low, high in floors]
    assert "(95 % interval 0.046 to 0.154)" in useful([*gaps, known]).sentences[0]  # .03 and .045: .054


def test_the_forecast_as_well() -> None:
    def grade(low: float) -> str:
        return useful([Score("predictive", "error", 0.13, floor=0.1, low=low, high=0.16)]).grade

    assert (grade(0.101), grade(0.099)) == ("poor", "too few to say")


@pytest.mark.parametrize("known", [no_copies(), safe()])
def test_few_stays_rule_no_leak_out_and_prove_one_all_the_same(known: list[Score]) -> None:
    def facts(stays: str) -> Results:
        return Results(("a",), {"a": known}, {}, {"held-out stays": stays})

    for stays, few in ((60, True), (FEWEST_STAYS - 1, True), (FEWEST_STAYS, False), (1000, False)):
        answer = verdicts(facts(f"{stays:,}"), "a")[2]
        assert (answer.grade == "too few to say") == few
        assert answer.sentences[0].startswith(f"Only {stays} unseen stays") == few
    known = [replace(known[0], value=0.1), *known[1:]]
    assert verdicts(facts("60"), "a")[2].grade == "poor"


@pytest.mark.parametrize("known", [no_copies(), safe()])
def test_many_near_copies_that_could_hide_are_no_good_news(known: list[Score]) -> None:
    hiding = replace(known[1], floor_high=0.1, note="Up to 40 near copies among 400 cannot be told from chance.")
    verdict = exposes([known[0], hiding, *known[2:]])
    assert (verdict.grade, verdict.sentences[0][:23]) == ("too few to say", "Up to 40 near copies am")


def test_events_are_counted_from_ten_on_and_named_beside_every_number(tmp_path) -> None:
    icu = simulate(200, steps=4, seed=0)
    for count, value in ((0, math.nan), (9, math.nan), (10, 10), (60, 60), (150, 50)):
        died = np.where(np.arange(200) < count, 1.0, 0.0)
        (score,) = events("tstr", Cohort(icu.schema, icu.stay_id, icu.series, {**icu.static, "died": died}))
        assert score.value == pytest.approx(value, nan_ok=True)
        assert "9" not in score.note
    results = result(*loss(0.0, -0.01, 0.01, 57))
    write_report(tmp_path / "page.html", results)
    text = (tmp_path / "page.html").read_text()
    assert text.count("57 of 1,000 unseen stays have the rarer outcome") == 2  # in the verdict and above the table
    written = io.StringIO()
    Console(width=200, file=written).print(scores_table(results))
    assert "57 " in next(line for line in written.getvalue().splitlines() if "events" in line)


# The panel of classifiers


def panel(worst: Score) -> list[Score]:
    return [auc(0.52, classifier="paper"), auc(0.54), auc(0.93, classifier="trees"), worst]


def test_the_worst_of_the_panel_decides_alone() -> None:
    assert looks_real(panel(auc(0.55, classifier="worst", note="trees"))).grade == "good"
    verdict = looks_real(panel(auc(0.93, classifier="worst", note="trees")))
    assert verdict.grade == "poor"
    assert verdict.sentences[0] == (
        "The best of 3 classifiers (trees on statistics of a stay) tells synthetic from real stays with AUC 0.930 "
        "(95 % interval 0.920 to 0.940); real against real 0.510 (95 % interval 0.500 to 0.520): 0.420 above the "
        "floor, more than the limit of 0.15."
    )


def test_its_note_may_be_a_sentence() -> None:
    named = looks_real(panel(auc(0.6, classifier="worst", note="the worst of five: strong"))).sentences[0]
    assert named.startswith("The best of 3 classifiers (two-layer GRU) tells")


def test_an_interval_from_the_floor_to_poor_says_nothing() -> None:
    assert looks_real([auc(0.6, half=0.2)]).grade == "too few to say"
    assert looks_real([auc(0.52, half=0.2)]).grade == "too few to say"
    assert looks_real([auc(0.75, half=0.2)]).grade == "poor"


# Collapse


def test_a_collapsed_generator_is_not_at_the_best_adversarial_accuracy(tmp_path) -> None:
    icu = simulate(600, steps=8, seed=0)
    train, test = icu.take(np.arange(300)), icu.take(np.arange(300, 600))
    # As a generator that has learnt little: real stays have real neighbours, and so have synthetic ones.
    made, rng = simulate(300, steps=8, seed=1), np.random.default_rng(0)
    series = {name: v + rng.normal(0, 2 * np.nanstd(v), v.shape) for name, v in made.series.items()}
    collapsed = replace(made, series=series)
    results = evaluate(train, test, collapsed, only=["copies", "near_copies", "nnaa", "mir"])
    by_what = {s.what: s for s in results.scores["synthetic"] if s.metric == "nnaa"}
    assert by_what["aa_test"].value == pytest.approx(0.5, abs=0.02)
    assert by_what["aa_train"].value == pytest.approx(0.5, abs=0.02)
    assert abs(by_what["real_apart"].value - by_what["synthetic_apart"].value) > 0.8
    verdict = exposes(results.scores["synthetic"])
    assert verdict.grade == "not shown"
    assert any("do not lie among each other" in sentence for sentence in verdict.sentences)
    assert any("distances say little of a leak" in sentence for sentence in verdict.sentences)
    results.report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "synthetic half" in text
    assert re.findall(r"adversarial accuracy.*?Best: (.*?)\.</span>", text) == ["0.5 in both halves"] * 2


def test_halves_of_real_stays_are_no_collapse() -> None:
    for real, synthetic, said in ((0.5, 0.5, False), (0.3, 0.6, False), (0.9, 0.1, True), (0.1, 0.9, True)):
        halves = [Score("nnaa", "real_apart", real), Score("nnaa", "synthetic_apart", synthetic)]
        sentences = exposes([*no_copies(), *halves]).sentences
        assert any("do not lie among each other" in sentence for sentence in sentences) == said


def test_who_leaks_is_told_by_name() -> None:
    leaking = [Score("copies", "share", 0.1, floor=0.0), *safe()[1:]]
    near = [safe()[0], replace(safe()[1], value=0.2), *safe()[2:]]
    average = [*no_copies(), *averages(0.4)]
    scores = {"a": safe(), "b": leaking, "c": average, "d": near}
    assert leaks(Results(tuple(scores), scores, {}, {})) == ["b", "d"]
