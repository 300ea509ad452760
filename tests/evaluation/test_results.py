"""A results folder is read as what it is, or a sentence says what is wrong; whatever is read can be drawn."""

import copy
import json
import math
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from timediff.errors import TimeDiffError
from timediff.evaluation.evaluate import evaluate_to
from timediff.evaluation.figure_data import DensityMap, FigureData, PlotlyFigure, Points
from timediff.evaluation.results import Results, read_score, write_score
from timediff.evaluation.score import Score
from timediff.evaluation.settings import EvaluationSettings
from timediff.report.figures import figure_json
from timediff.report.summary import scores_table, verdict_lines
from timediff.runtime.files import locked
from timediff.runtime.parsing import Unreadable
from timediff.sources.simulated import simulate

GOLDEN = Path(__file__).parents[1] / "golden" / "results-0.1.0"
TRAIN, TEST = simulate(240, steps=4, seed=0).split(seed=0)
FRESH = simulate(60, steps=4, seed=1)
QUICK = EvaluationSettings(only=("fidelity", "copies"), bootstrap=10)
MAPS = [
    FigureData("map", "embeddings", "t-SNE", DensityMap("train", [0, 1], [0], [-1, 2], [-1, 1], [[0.5], [None]], 0.5)),
    FigureData("points", "embeddings", "t-SNE", Points([0, 1], [1, 0], ["test", "synthetic"]), generator="a"),
]
ODD: list[Any] = [
    None, True, -1, 2**63 - 1, 1.5, 1e308, math.nan, math.inf, "", "<b>", [], {}, [[]], {"a": 1}, [None], ["x"], [1, 2],
]  # fmt: skip


def test_a_score_without_some_numbers_equals_itself() -> None:
    """Most scores have no floor; from Python 3.13 on no dataclass with a NaN would equal itself."""
    score = Score("mir", "f1", 0.5, std={"classifier": 0.1}, floor=math.nan)
    again = Score("mir", "f1", 0.5, std={"classifier": 0.1}, floor=float("nan"))
    assert score == score == again
    assert score != Score("mir", "f1", 0.5, std={"classifier": 0.1}, floor=0.5)
    assert score != Score("mir", "f1", math.nan, std={"classifier": 0.1})
    assert score != score.key


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results with figures of every kind; without a manifest, so that they may be edited."""
    folder = tmp_path_factory.mktemp("results") / "new"
    evaluate_to(folder, TRAIN, TEST, {"a": FRESH}, settings=QUICK)
    (folder / "manifest.json").unlink(missing_ok=True)
    for figure in MAPS:
        (folder / "figures" / f"{figure.name}.json").write_text(json.dumps(figure.to_json()))
    return folder


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inner:
        yield (*path, key)
        yield from places(value, (*path, key))


def mutated(tree: Any, rng: random.Random) -> Any:
    """The tree with one value that is another one, is gone, or has come."""
    tree = copy.deepcopy(tree)
    *path, key = rng.choice(list(places(tree)))
    node = tree
    for name in path:
        node = node[name]
    how = rng.randrange(4)
    if how < 2:
        node[key] = rng.choice(ODD)
    elif how == 2:
        del node[key]
    elif isinstance(node, list):
        node.append(rng.choice(ODD))
    else:
        node[rng.choice(["x", "kind", "name", "std"])] = rng.choice(ODD)
    return tree


def test_a_changed_figure_is_drawn_or_refused(results: Path) -> None:
    rng = random.Random(0)
    for file in sorted((results / "figures").glob("*.json")):
        table, drawn = json.loads(file.read_text()), 0
        for _ in range(12):
            try:
                figure = FigureData.from_json(mutated(table, rng), "here")
            except Unreadable:
                continue
            json.dumps(figure_json(figure.content))
            drawn += 1
        assert drawn < 12


@pytest.mark.parametrize("seed", range(6))
def test_changed_results_give_a_page_or_a_sentence(seed: int, results: Path, tmp_path: Path) -> None:
    rng = random.Random(seed)
    folder = tmp_path / "results"
    shutil.copytree(GOLDEN if seed % 2 else results, folder)
    table = json.loads((folder / "results.json").read_text())
    for _ in range(12):
        (folder / "results.json").write_text(json.dumps(mutated(table, rng)))
        try:
            read = Results.read(folder)
        except TimeDiffError:
            continue
        read.to_csv()
        scores_table(read)
        list(verdict_lines(read))
    try:  # a page takes longer: once is enough
        Results.read(folder).report(tmp_path / "page.html")
    except TimeDiffError:
        return
    assert (tmp_path / "page.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "not valid JSON"),
        ("[" * 100_000, "nested more than"),
        ('{"format": 1' + "0" * 5000 + "}", "digits"),
        ('{"format": 1, "warnings": ["\\ud800"]}', "not valid Unicode"),
        ("[]", "has no format"),
        ('{"format": {"a": 1}}', "has format"),
        ('{"format": 1, "settings": [], "facts": {}, "generators": []}', "settings is not a table"),
        ('{"format": 1, "settings": {}, "facts": {"a": 1}, "generators": []}', r"facts\.a is not a text"),
        ('{"format": 1, "settings": {}, "facts": {}, "generators": [{"name": "a"}]}', "lacks 'scores'"),
        (
            '{"format": 1, "settings": {}, "facts": {}, "generators": [{"name": "a", "scores": [{"value": "x"}]}]}',
            "lacks 'metric', 'what'",
        ),
        (
            '{"format": 1, "settings": {}, "facts": {}, "generators": [{"name": "a", "scores": []},'
            ' {"name": "a", "scores": []}]}',
            "two generators have the same name",
        ),
    ],
)
def test_what_is_wrong_with_results_is_said(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(content)
    with pytest.raises(TimeDiffError, match=said):
        Results.read(tmp_path)


def test_results_of_version_0_1_0_are_read_with_their_figures() -> None:
    read = Results.read(GOLDEN)
    assert read.generators == ("a",)
    assert [type(figure.content) for figure in read.figures] == [PlotlyFigure, PlotlyFigure]
    assert read.scores["a"][0].std == {"cohort": 0.0}


def test_scores_that_are_not_finite_come_back() -> None:
    score = Score("m", "x", math.inf, std={"classifier": math.nan}, low=-math.inf)
    again = read_score(json.loads(json.dumps(write_score(score))), "here")
    assert (again.value, again.low) == (math.inf, -math.inf)
    assert math.isnan(again.std["classifier"])


def test_numbers_that_a_page_cannot_hold_are_missing() -> None:
    assert PlotlyFigure({"y": [1.0, math.nan, math.inf]}).figure == {"y": [1.0, None, None]}


def test_a_mistaken_evaluation_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    for synthetic, changes in (
        ({"real against real": FRESH}, {}),
        ({"a/b": FRESH}, {}),
        ({"a": []}, {}),
        ({"a": FRESH.horizon(2)}, {}),
        ({"a": FRESH}, {"seed": 2**63}),
        ({"a": FRESH}, {"repetitions": 0}),
        ({"a": FRESH}, {"mir_threshold": math.nan}),
    ):
        settings = EvaluationSettings(**{"only": ("copies",), **changes})
        with pytest.raises(TimeDiffError):
            evaluate_to(tmp_path / "out", TRAIN, TEST, synthetic, settings=settings)
    assert list(tmp_path.iterdir()) == []


def test_of_two_evaluations_into_one_folder_the_second_is_refused(tmp_path: Path) -> None:
    settings = EvaluationSettings(only=("copies",))
    with (
        locked(tmp_path / ".out.parts", tmp_path / "out"),
        pytest.raises(TimeDiffError, match="another process is writing"),
    ):
        evaluate_to(tmp_path / "out", TRAIN, TEST, FRESH, settings=settings, resume=True)
    evaluate_to(tmp_path / "no" / ".." / "out", TRAIN, TEST, FRESH, settings=settings)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_damaged_part_is_measured_again(tmp_path: Path) -> None:
    from timediff.evaluation.evaluate import evaluate

    settings = EvaluationSettings(only=("copies",))
    whole = evaluate(TRAIN, TEST, FRESH, settings=settings, parts=tmp_path)
    for file in tmp_path.glob("*.json"):
        file.write_text('{"scores": [{"metric": 3}], "figures": []}')
    again = evaluate(TRAIN, TEST, FRESH, settings=settings, parts=tmp_path)
    assert again.scores == whole.scores
