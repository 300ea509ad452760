"""An evaluation: the same numbers from every door, floors, several cohorts side by side, stopped and gone on with."""

import importlib
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from timediff import evaluation
from timediff.cli import app
from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.evaluation.case import Case
from timediff.evaluation.classifiers import panel
from timediff.evaluation.evaluate import evaluate, evaluate_to
from timediff.evaluation.inputs.view import View
from timediff.evaluation.metrics.nnaa import nnaa
from timediff.evaluation.registry import METRICS
from timediff.evaluation.results import Results
from timediff.evaluation.score import Score, combined
from timediff.evaluation.settings import EvaluationSettings
from timediff.runtime.seeding import stream
from timediff.sources.simulated import simulate

TRAIN, TEST = simulate(400, steps=6, seed=0).split(test=0.4, seed=0)
FRESH, OTHER = simulate(180, steps=6, seed=1), simulate(150, steps=6, seed=2)
PRIVACY = ("copies", "nnaa", "mir")


def find(results, generator="synthetic", **about):
    found = [s for s in results.scores[generator] if all(getattr(s, k) == v for k, v in about.items())]
    assert len(found) == 1, f"{about}: {len(found)} scores"
    return found[0]


def test_only_one_metric_gives_the_numbers_of_the_function_itself():
    view = View.fit(TRAIN, "strict")
    rows = [view.flat(cohort) for cohort in (TRAIN, TEST, FRESH)]
    apart = Case(TRAIN, TEST, EvaluationSettings(seed=3)).apart
    direct = nnaa(*rows, apart=apart, seed=3, repetitions=2)
    results = evaluate(TRAIN, TEST, FRESH, only=["nnaa"], seed=3, repetitions=2)
    assert results.scores["synthetic"] == direct


def test_the_command_gives_the_numbers_of_the_python_call(tmp_path):
    for name, cohort in (("train", TRAIN), ("test", TEST), ("fresh", FRESH)):
        cohort.write(tmp_path / name)
    paths = [f"--{name}={tmp_path / name}" for name in ("train", "test")]
    command = ["evaluate", *paths, f"--synthetic=a={tmp_path / 'fresh'}", f"--out={tmp_path / 'out'}"]
    run = CliRunner().invoke(app, [*command, "--only=nnaa", "--only=fidelity"], catch_exceptions=False)
    assert run.exit_code == 0
    read = Results.read(tmp_path / "out")
    again = evaluate(TRAIN, TEST, {"a": FRESH}, only=["nnaa", "fidelity"])
    assert [s.key for s in read.scores["a"]] == [s.key for s in again.scores["a"]]
    for ours, theirs in zip(read.scores["a"], again.scores["a"], strict=True):
        assert ours.value == pytest.approx(theirs.value, nan_ok=True)
        assert ours.floor == pytest.approx(theirs.floor, nan_ok=True)
    assert (tmp_path / "out" / "scores.csv").read_text().startswith("generator,metric,what,value")
    assert "report.html" in run.stdout


def test_the_floor_is_the_score_of_training_stays():
    results = evaluate(TRAIN, TEST, FRESH, only=["fidelity"])
    stand_in = TRAIN.take(np.sort(stream("evaluation", 0, 1).permutation(len(TRAIN))[: len(FRESH)]))
    direct = evaluate(TRAIN, TEST, stand_in, only=["fidelity"])
    one, floor = (find(r, what="ks", feature="heart_rate") for r in (results, direct))
    assert one.floor == pytest.approx(floor.value)


def test_results_come_back_from_their_folder(tmp_path):
    results = evaluate_to(tmp_path / "out", TRAIN, TEST, {"a": FRESH, "b": OTHER}, settings=quick("fidelity", "copies"))
    read = Results.read(tmp_path / "out")
    assert read.generators == ("a", "b")
    assert read.settings["protocol"] == "strict"
    assert read.figures == sorted(results.figures, key=lambda figure: figure.name)
    assert [replace(s, value=0.0) for s in read.scores["b"] if math.isnan(s.value)] == [
        replace(s, value=0.0) for s in results.scores["b"] if math.isnan(s.value)
    ]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Does it look real?" in page


def test_no_stay_of_the_real_cohorts_is_in_what_is_written(tmp_path):
    marked = replace(TEST, stay_id=np.arange(len(TEST)) + 771_133_000)
    evaluate_to(tmp_path / "out", TRAIN, marked, FRESH, settings=quick("fidelity", "copies"))
    for file in (tmp_path / "out").rglob("*"):
        assert file.is_dir() or not re.search(r"771133\d{3}", file.read_text()), file


def quick(*only, **changes):
    return EvaluationSettings.quick(only=only, **changes)


def test_several_cohorts_of_one_name_are_seeds_of_one_generator():
    alone = [evaluate(TRAIN, TEST, one, only=["fidelity"]) for one in (FRESH, OTHER)]
    both = evaluate(TRAIN, TEST, {"a": [FRESH, OTHER]}, only=["fidelity"])
    about = {"what": "wasserstein", "feature": "heart_rate"}
    values = [find(one, **about).value for one in alone]
    score = find(both, "a", **about)
    assert score.value == pytest.approx(np.mean(values))
    assert score.std["cohort"] == pytest.approx(np.std(values, ddof=1))


def test_a_number_that_one_seed_lacks_is_the_mean_of_the_others():
    known, unknown = Score("m", "x", 0.25, std={"classifier": 0.1}), Score("m", "x", math.nan, note="too few")
    assert combined([[known], [unknown]]) == [known]
    assert combined([[unknown], [unknown]]) == [unknown]


def test_a_cohort_that_is_the_training_cohort_is_told_at_the_top():
    results = evaluate(TRAIN, TEST, TRAIN, only=["copies"])
    assert results.warnings == ["synthetic is identical to the training cohort: it is real data, not synthetic."]
    half = Cohort(
        TRAIN.schema,
        np.arange(200),
        {n: np.concatenate([v[:100], FRESH.series[n][:100]]) for n, v in TRAIN.series.items()},
        {n: np.concatenate([v[:100], FRESH.static[n][:100]]) for n, v in TRAIN.static.items()},
    )
    warning = evaluate(TRAIN, TEST, half, only=["copies"]).warnings[0]
    assert warning.startswith("50.0% of the stays of synthetic are exact copies")


def test_what_was_measured_before_a_stop_is_not_measured_again(tmp_path, monkeypatch):
    calls = []

    def counted(name, breaks):
        metric = METRICS(name)

        def wrapped(given):
            calls.append(name)
            if breaks:
                raise KeyboardInterrupt
            return metric.measure(given)

        monkeypatch.setitem(METRICS._parts, name, replace(metric, measure=wrapped))

    whole = evaluate(TRAIN, TEST, FRESH, settings=quick("copies", "mir"))
    counted("copies", False)
    counted("mir", True)
    with pytest.raises(KeyboardInterrupt):
        evaluate_to(tmp_path / "out", TRAIN, TEST, FRESH, settings=quick("copies", "mir"))
    assert not (tmp_path / "out").exists()
    with pytest.raises(TimeDiffError, match="--resume"):
        evaluate_to(tmp_path / "out", TRAIN, TEST, FRESH, settings=quick("copies", "mir"))
    with pytest.raises(TimeDiffError, match="another evaluation"):
        evaluate_to(tmp_path / "out", TRAIN, TEST, OTHER, settings=quick("copies", "mir"), resume=True)
    monkeypatch.undo()
    counted("copies", False)
    calls.clear()
    results = evaluate_to(tmp_path / "out", TRAIN, TEST, FRESH, settings=quick("copies", "mir"), resume=True)
    assert calls == []
    assert [s.value for s in results.scores["synthetic"]] == [s.value for s in whole.scores["synthetic"]]
    assert not list(tmp_path.glob(".out*"))


def test_one_class_only_is_said_and_the_rest_is_measured():
    died = {**FRESH.static, "died": np.zeros(len(FRESH))}
    results = evaluate(TRAIN, TEST, replace(FRESH, static=died), only=["tstr", "copies"], repetitions=1)
    tstr = [s for s in results.scores["synthetic"] if s.what == "tstr"]
    assert all(math.isnan(score.value) for score in tstr)
    assert "synthetic stays have died" in tstr[0].note
    assert not math.isnan(find(results, metric="copies").value)


def test_an_all_missing_feature_is_said_and_the_rest_is_measured():
    empty = {**FRESH.series, "heart_rate": np.full_like(FRESH.series["heart_rate"], np.nan)}
    results = evaluate(TRAIN, TEST, replace(FRESH, series=empty), only=["fidelity"])
    assert find(results, what="ks", feature="heart_rate").note
    assert not math.isnan(find(results, what="missing", feature="heart_rate").value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"synthetic": FRESH.take(np.arange(20))}, "'synthetic' has 20 stays; an evaluation needs at least 50"),
        ({"synthetic": simulate(60, steps=8, seed=0)}, "has 8 steps and the test cohort 6"),
        ({"only": ["nnnaa"]}, "there is no metric 'nnnaa'; did you mean nnaa"),
        ({"protocol": "loose"}, "expected strict or paper"),
        ({"synthetic": {}}, "no synthetic cohort"),
    ],
)
def test_a_mistake_is_one_sentence(change, said):
    given = {"synthetic": FRESH, "only": ["copies"], **change}
    with pytest.raises(TimeDiffError, match=said):
        evaluate(TRAIN, TEST, given.pop("synthetic"), **given)


def test_cohorts_of_different_schemas_say_which_features_differ():
    features = tuple(replace(f, unit="furlong") if f.name == "heart_rate" else f for f in FRESH.schema.features)
    other = replace(FRESH, schema=replace(FRESH.schema, features=features))
    with pytest.raises(TimeDiffError, match=r"the test cohort and the synthetic cohort .* differ .* heart_rate"):
        evaluate(TRAIN, TEST, other)


def test_every_discriminator_compares_with_held_out_stays(monkeypatch):
    seen = []

    class Recorded(panel.Panel):
        def train(self, progress):
            seen.append((int(self.is_real.sum()), int((~self.is_real).sum())))

        def scores(self):
            return []

    monkeypatch.setattr(panel, "Panel", Recorded)
    for protocol in ("paper", "strict"):
        evaluate(TRAIN, TEST, FRESH, only=["discriminative"], protocol=protocol)
        assert {real for real, _ in seen} == {len(TEST)}
        seen.clear()


def test_discriminators_and_predictors_see_no_outcome_and_the_papers_no_masks(monkeypatch):
    """The paper's predictor is trained on no more stays than it predicts."""
    seen = {}

    class Recorded(panel.Panel):
        def add_network(self, architecture, name, real, synthetic):
            seen[name] = real.shape[2], synthetic.shape[2]

        def add_trees(self, table): ...

        def train(self, progress): ...

        def scores(self):
            return []

    def predicted(train_series, test_series, **options):
        seen["predictor"] = train_series.shape, test_series.shape
        return []

    monkeypatch.setattr(panel, "Panel", Recorded)
    monkeypatch.setattr(importlib.import_module("timediff.evaluation.metrics.predictive"), "predictive", predicted)
    vital, static = 7, 2
    for protocol, few, channels in (("paper", len(TEST), vital + static), ("strict", len(FRESH), 2 * vital)):
        evaluate(TRAIN, TEST, FRESH, only=["discriminative", "predictive"], protocol=protocol)
        assert seen["paper"] == (channels, channels)
        assert seen["predictor"] == ((few, 6, channels), (len(TEST), 6, channels))


@pytest.mark.parametrize("protocol", ["paper", "strict"])
@pytest.mark.parametrize("name", ["discriminative", "fidelity", "predictive", "subgroups"])
def test_a_floor_sees_as_many_stays_as_what_stands_beside_it(name, protocol, monkeypatch):
    """Of synthetic cohorts smaller than the test cohort, between both, and larger than the training cohort."""
    seen = {}
    metric = METRICS(name)

    def noted(given):
        seen.setdefault((given.floor, given.generator), []).append(sizes(given))
        return []

    def sizes(given):
        if name == "discriminative":
            with monkeypatch.context() as patched:
                patched.setattr(panel.Panel, "train", lambda self, progress: kinds.append(self.is_real))
                patched.setattr(panel.Panel, "scores", lambda self: [])
                kinds = []
                metric.measure(given)
            return [min(kind.sum(), (~kind).sum()) for kind in kinds]
        return len(given.test), len(given.cohort)

    monkeypatch.setitem(METRICS._parts, name, replace(metric, measure=noted))
    large = simulate(400, steps=6, seed=3)
    cohorts = {"small": FRESH.take(np.arange(60)), "middle": FRESH, "large": large}
    evaluate(TRAIN, TEST, cohorts, only=[name], protocol=protocol)
    floors = seen[True, "real against real"]
    assert floors == [one for cohort in cohorts for one in seen[False, cohort]]


def test_each_cohort_has_the_floor_of_its_own_size():
    small = FRESH.take(np.arange(60))
    together = evaluate(TRAIN, TEST, {"a": [FRESH, OTHER], "b": small}, only=["fidelity"])
    alone = evaluate(TRAIN, TEST, small, only=["fidelity"])
    about = {"what": "ks", "feature": "heart_rate"}
    assert find(together, "b", **about) == find(alone, **about)
    assert find(together, "a", **about).floor != find(together, "b", **about).floor


def test_results_that_are_none_are_refused(tmp_path):
    with pytest.raises(TimeDiffError, match="holds no results"):
        Results.read(tmp_path)
    (tmp_path / "results.json").write_text(json.dumps({"format": 1}))
    with pytest.raises(TimeDiffError, match="not what TimeDiff writes"):
        Results.read(tmp_path)
    (tmp_path / "results.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(TimeDiffError, match="has format 99"):
        Results.read(tmp_path)


def test_a_scores_file_has_the_columns_of_version_0_1_0():
    score = Score("m", "x", 0.5, classifier="strong", std={"classifier": 0.1, "cohort": 0.2})
    head, row = Results(("a",), {"a": [score]}, {}, {}).to_csv().splitlines()
    named = dict(zip(head.split(","), row.split(","), strict=True))
    assert (named["judge"], named["spread_judge"], named["spread_cohort"]) == ("strong", "0.1", "0.2")


def test_evaluation_knows_nothing_of_reports_but_how_to_ask_for_one_and_how_it_is_shown():
    folder = Path(evaluation.__file__).parent
    asking = {
        (file.name, line.strip())
        for file in folder.rglob("*.py")
        for line in file.read_text().splitlines()
        if re.search(r"import.*timediff\.report|from timediff\.report", line)
    }
    assert asking == {
        ("results.py", "from timediff.report.evaluation_page import write_report"),
        ("audit_results.py", "from timediff.report.audit_page import write_audit_page"),
        *(
            (f"{file}.py", f"from timediff.report.notebook import {shown}")
            for file, *many in (
                ("results", "results_lines", "results_html"),
                ("audit_results", "audit_lines", "audit_html"),
                ("settings", "facts_html"),
            )
            for shown in many
        ),
    }


def test_what_is_measured_can_be_read_while_the_rest_is_measured(tmp_path):
    seen, said = [], []

    def look(done: int, total: int, **values: float) -> None:
        file = tmp_path / ".out.parts" / "scores.csv"
        seen.append({line.split(",")[1] for line in file.read_text().splitlines()[1:]} if file.exists() else set())

    settings = EvaluationSettings(only=("copies", "nnaa"), bootstrap=5)
    evaluate_to(tmp_path / "out", TRAIN, TEST, FRESH, settings=settings, progress=look, say=said.append)
    assert {"copies"} in seen
    assert [line.rpartition(", ")[0] for line in said] == ["synthetic: Exact copies", "synthetic: Nearest neighbours"]


def test_what_is_kept_is_of_the_same_cohorts_and_settings_alone(tmp_path):
    def evaluated(name, cohort, **changes):
        evaluate(TRAIN, TEST, {name: cohort}, settings=quick("copies", **changes), parts=tmp_path)
        return {path.name for path in tmp_path.glob("copies-*.json")}

    first = evaluated("a", FRESH)
    assert evaluated("a", FRESH) == first
    assert evaluated("a", [FRESH, OTHER]) > first
    so_far = evaluated("b", FRESH)
    assert evaluated("a", FRESH, seed=1) > so_far
    so_far = evaluated("a", FRESH, seed=1)
    evaluate(TRAIN, TEST, {"a": FRESH}, settings=quick("copies", "mir"), parts=tmp_path)
    assert {path.name for path in tmp_path.glob("copies-*.json")} == so_far  # another metric beside it changes nothing
