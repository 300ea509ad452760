"""What a notebook or a Python prompt shows of models, settings, results and audits: facts, and no stay's value."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import timediff as td
from helpers.small_runs import small_settings
from timediff.data.cohort import Cohort
from timediff.evaluation.evaluate import evaluate
from timediff.settings.base import GeneratorSettings
from timediff.settings.resolve import resolve


@pytest.fixture(scope="module")
def marked(icu: Cohort) -> Cohort:
    """One patient has a heart rate that nobody else has."""
    name = icu.schema.temporal[0].name
    values = icu.series[name].copy()
    values[3, 2] = 123.456789
    return replace(icu, series={**icu.series, name: values})


def test_a_model_says_what_it_is_and_what_it_was_fitted_to(marked: Cohort) -> None:
    model = td.TimeDiff(settings=small_settings())
    assert repr(model) == "TimeDiff:\n  generator: timediff\n  state: not fitted yet"
    shown = repr(model.fit(marked, seed=5))
    assert f"trained on: {marked.digest()[:16]}" in shown
    assert "stays of 12 steps of 1h" in shown
    assert "training seed: 5" in shown
    assert "after 12 updates" in shown
    page = model._repr_html_()
    assert page.startswith("<p><b>TimeDiff</b></p>")
    for fact in model.facts().values():
        assert fact in page
    for text in (shown, page):
        assert "123.4" not in text


@pytest.mark.parametrize("preset", ["fast", "rcgan", "halo"])
def test_settings_are_shown_as_the_file_that_they_could_be_read_from(preset: str) -> None:
    settings = resolve(preset)
    first, *lines = repr(settings).splitlines()
    assert first == f"{type(settings).__name__}:"
    assert "\n".join(line.removeprefix("  ") for line in lines).strip() == settings.to_toml().strip()
    assert "training.steps" in settings._repr_html_()


def test_settings_of_other_packages_are_shown_so_too() -> None:
    @dataclass(frozen=True)
    class Mine(GeneratorSettings):
        stays: int = 3

    @dataclass(frozen=True)
    class Said(GeneratorSettings):
        def __repr__(self) -> str:
            return "mine"

    assert repr(Mine()) == "Mine:\n  stays = 3"
    assert repr(Said()) == "mine"


def test_results_begin_with_their_verdicts(marked: Cohort) -> None:
    fresh = td.simulate(100, steps=12, seed=9)
    results = evaluate(marked, td.simulate(100, steps=12, seed=8), {"<ours>": fresh}, only=["copies"])
    shown = repr(results)
    assert shown.startswith("Results of <ours>: strict protocol, ")
    assert "whom could it expose?" in shown.lower()
    page = results._repr_html_()
    assert "<b>Results of &lt;ours&gt;: strict protocol" in page
    assert "<ours>" not in page
    assert "real against real" in page
    assert max(map(len, shown.splitlines())) < 400
    assert "123.4" not in shown + page


def test_an_audit_begins_with_its_verdicts() -> None:
    train, held_out = td.simulate(260, steps=6, seed=1).split(0.5, seed=0)
    synthetic = train.take(np.arange(60))
    found = td.audit(
        train, held_out, synthetic=synthetic, settings=td.AuditSettings(attacks=("distance",), power=False)
    )
    assert repr(found).startswith("Audit by 1 attacks: distance\n  ")
    assert "<li>" in found._repr_html_()


def test_the_settings_of_an_evaluation_are_a_table() -> None:
    assert "repetitions" in td.EvaluationSettings()._repr_html_()
