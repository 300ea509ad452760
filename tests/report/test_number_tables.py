"""Tables of one number each: generators side by side, one number a cell, and what is not there says why below."""

import re

import pytest

from helpers.pages import Elements
from timediff.evaluation.score import Score, unavailable
from timediff.report.number_tables import by_number


def drawn(*generators: list[Score], row: str = "feature") -> list[list[list[str]]]:
    """The text of each cell, by table and row."""
    names = "ABCDEFG"[: len(generators)]
    page = by_number(dict(zip(names, generators, strict=True)), lambda s: getattr(s, row) or "", row)
    tables = re.findall(r"<table.*?</table>", page, re.DOTALL)
    rows = [re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL) for table in tables]
    return [
        [[re.sub(r"<.*?>", "", c).strip() for c in re.findall(r"<t[hd].*?</t[hd]>", line)] for line in table]
        for table in rows
    ]


def ks(feature: str, value: float, **about: float) -> Score:
    return Score("fidelity", "ks", value, feature=feature, **about)  # type: ignore[arg-type]


def test_generators_are_columns_and_each_cell_holds_one_number() -> None:
    one = ks("a", 0.1, low=0.05, high=0.15, floor=0.02)
    other = ks("a", 0.3, low=0.2, high=0.4, floor=0.02)
    [table] = drawn([one], [other])
    assert table[0] == ["feature", "real", "A", "95 % interval", "B", "95 % interval"]
    assert table[1] == ["a", "0.020", "0.100", "0.050 to 0.150", "0.300 ▲", "0.200 to 0.400"]


def test_what_nobody_has_is_no_column() -> None:
    [table] = drawn([ks("a", 0.1)])
    assert table == [["feature", "A"], ["a", "0.100"]]


def test_a_row_that_only_one_has_is_a_dash_for_the_other() -> None:
    [table] = drawn([ks("a", 0.1)], [ks("b", 0.05)])
    assert table[1:] == [["a", "0.100", "–"], ["b", "–", "0.050"]]


def test_each_number_is_a_table_of_its_own_with_its_meaning_above() -> None:
    scores = [ks("a", 0.1), Score("fidelity", "mean", 0.05, feature="a")]
    assert [table[1] for table in drawn(scores)] == [["a", "0.100"], ["a", "0.050"]]
    page = by_number({"A": scores}, lambda s: s.feature or "", "feature")
    assert page.index("<h4>KS distance</h4>") < page.index("Kolmogorov") < page.index("<table")


def test_a_reason_stands_once_below_and_is_not_a_dash() -> None:
    lost = [
        unavailable("fidelity", "ks", why, feature=name) for name, why in (("a", "few"), ("b", "few"), ("c", "<x>"))
    ]
    [table] = drawn([*lost, ks("d", 0.1)])
    assert [row[1] for row in table[1:]] == ["not available 1", "not available 1", "not available 2", "0.100"]
    page = by_number({"A": lost}, lambda s: s.feature or "", "feature")
    assert page.count("not available: few") == 1
    assert "not available: &lt;x&gt;" in page


def test_of_several_features_it_is_the_mean_size_and_the_largest() -> None:
    scores = [Score("fidelity", "mean", v, feature=f, group="sex = F", floor=0.1) for f, v in (("a", -0.5), ("b", 0.1))]
    [table] = drawn(scores, row="group")
    assert table == [["group", "real", "A", "largest"], ["sex = F", "0.100", "0.300", "−0.500, a"]]


def test_of_several_classifiers_it_is_the_mean_with_its_sign() -> None:
    gaps = [Score("tstr", "gap", v, classifier=c, group="sex = F") for c, v in (("x", -0.1), ("y", 0.3))]
    [table] = drawn(gaps, row="group")
    assert table == [["group", "A"], ["sex = F", "0.100"]]


@pytest.mark.parametrize("generators", [1, 2, 3])
def test_on_paper_few_stand_beside_each_other(generators: int) -> None:
    scores = {name: [ks("a", 0.1)] for name in "ABC"[:generators]}
    [kind] = [a["class"] for _, a in Elements(by_number(scores, lambda s: "a", "feature")).found if "style" in a]
    assert kind == ("numbers few" if generators < 3 else "numbers")
