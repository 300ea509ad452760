"""What describe shows of a cohort: complete in the terminal, and on the page nothing that fewer than ten stays say."""

import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from timediff.data.cohort import Cohort
from timediff.data.describe import distribution, missing_by_step, read_extraction, statistics
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.data.schema import Feature, Schema
from timediff.errors import TimeDiffError
from timediff.report import figures
from timediff.report.cohort_page import write_cohort_page
from timediff.sources.simulated import simulate

STEPS, STAYS = 8, 60
ODD = '<b>x&"</b>'
ODD_ESCAPED = "&lt;b&gt;x&amp;&quot;&lt;/b&gt;"
SENTINEL = 237.53  # in one stay only
RULES = {"unit stay of <24 h>": 1234, "a known outcome": 17, "at least one measurement": 0}


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    """Simulated stays, with one extreme stay, a class that few stays have, a feature of nine stays and one of none."""
    rng = np.random.default_rng(5)
    base = simulate(STAYS, steps=STEPS, seed=5)
    more = (
        Feature(ODD, "continuous", unit="<i>mg"),
        Feature("few", "continuous"),
        Feature("empty", "continuous"),
        Feature("rhythm", "categorical", classes=("sinus", "paced", "<u>odd", "torsades")),
        Feature("ward", "categorical", "static", classes=("north", "south", "annex")),
    )
    few = np.full((STAYS, STEPS), np.nan)
    few[:9] = rng.normal(5000, 1, (9, STEPS))
    rhythm = rng.integers(0, 3, (STAYS, STEPS)).astype(np.float64)
    rhythm[3] = 3
    ward = (np.arange(STAYS) % 2).astype(np.float64)
    ward[:4] = 2
    series = {ODD: rng.normal(2, 1, (STAYS, STEPS)), "few": few, "empty": np.full_like(few, np.nan), "rhythm": rhythm}
    schema = Schema((*base.schema.temporal, *more[:4], more[4], *base.schema.static), STEPS)
    made = Cohort(schema, base.stay_id, {**base.series, **series}, {**base.static, "ward": ward})
    made.series["heart_rate"][0] = SENTINEL  # a whole stay: more than one in a hundred values
    return made


@pytest.fixture(scope="module")
def folder(cohort: Cohort, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cohorts") / "icu & co"
    cohort.write(path)
    written = {"format": 1, "version": "9.9", "engine": "<DuckDB> 1.4", "source_sha256": "c0ffee" * 10}
    counts = {"stays_found": STAYS + 1251, "stays_dropped": RULES, "stays": STAYS, "features": {}}
    (path / "extraction.json").write_text(json.dumps({**written, **counts}))
    return path


@pytest.fixture(scope="module")
def page(cohort: Cohort, folder: Path) -> Path:
    path = folder.parent / "page.html"
    write_cohort_page(path, cohort, title=folder.name, extraction=read_extraction(folder))
    return path


def body(path: Path) -> str:
    text = path.read_text()
    return text[text.index("<body>") :]


def figures_in(path: Path) -> int:
    return len(re.findall(r'<div id="figure-\d+"', body(path)))


def row(path: Path, name: str) -> list[str]:
    [found] = re.findall(rf'<tr><th scope="row">{re.escape(name)}</th>(.*?)</tr>', body(path))
    return re.findall(r"<td>(.*?)</td>", found)


def test_one_figure_a_feature_and_one_of_what_is_missing(page: Path, cohort: Cohort) -> None:
    assert figures_in(page) == len([f for f in cohort.schema.features if f.generated]) + 1
    assert page.read_text().count("plotly.js v") == 1


def test_rules_and_counts_are_there(page: Path) -> None:
    assert row(page, "found") == ["1,311"]
    assert row(page, "unit stay of &lt;24 h&gt;") == ["−1,234"]
    assert row(page, "at least one measurement") == ["0"]
    assert row(page, "kept") == ["60"]
    assert row(page, "engine") == ["&lt;DuckDB&gt; 1.4"]


def test_no_extreme_of_a_single_stay(page: Path, cohort: Cohort) -> None:
    text = body(page)
    for digits in (3, 4, 5):
        assert f"{SENTINEL:.{digits}g}" not in text
    assert "bdata" not in text  # nor hidden in a binary array
    known = distribution(cohort, cohort.schema["heart_rate"], MIN_AGGREGATE)
    assert known.high < 200
    assert known.edges[-1] < 200


def test_every_bin_holds_at_least_ten_stays(cohort: Cohort) -> None:
    for name in ("sbp", "temperature", ODD):
        known = distribution(cohort, cohort.schema[name], MIN_AGGREGATE)
        values = cohort.series[name]
        assert 1 < len(known.heights) <= 30
        for low, high, height in zip(known.edges[:-1], known.edges[1:], known.heights, strict=True):
            inside = (values >= low) & ((values < high) | ((values == high) & (high == known.edges[-1])))
            if np.isnan(height):
                assert inside.any(axis=1).sum() < MIN_AGGREGATE
            else:
                assert inside.any(axis=1).sum() >= MIN_AGGREGATE
                assert height == pytest.approx(inside.sum() / (~np.isnan(values)).sum())
        assert (values <= known.low).any(axis=1).sum() >= MIN_AGGREGATE
        assert (values >= known.high).any(axis=1).sum() >= MIN_AGGREGATE


def test_bins_hold_equally_many_points_of_the_grid() -> None:
    values = np.tile(np.arange(100.0), (MIN_AGGREGATE, 1))
    cohort = Cohort(Schema((Feature("x", "continuous"),), 100), np.arange(MIN_AGGREGATE), {"x": values}, {})
    known = distribution(cohort, cohort.schema["x"], MIN_AGGREGATE)
    assert len(set(known.heights.round(9))) == 1  # no comb


def test_a_class_of_few_stays_is_not_counted(page: Path, cohort: Cohort) -> None:
    ward = distribution(cohort, cohort.schema["ward"], MIN_AGGREGATE)
    assert list(ward.class_rates) == ["north", "south"]
    assert sum(ward.class_rates.values()) == pytest.approx(1)  # the rest cannot be had by subtraction
    assert np.isnan(ward.rare)
    text = body(page)
    assert "annex" not in text
    assert "torsades" not in text
    assert f"fewer than {MIN_AGGREGATE} stays\\u003c\\u002fi" in text


def test_classes_of_few_stays_are_shown_together_when_together_they_are_many() -> None:
    wards = np.repeat(np.arange(4.0), [40, 6, 5, 0])
    schema = Schema((Feature("x", "continuous"), Feature("ward", "categorical", "static", classes=tuple("abcd"))), 1)
    cohort = Cohort(schema, np.arange(51), {"x": np.zeros((51, 1))}, {"ward": wards})
    known = distribution(cohort, schema["ward"], MIN_AGGREGATE)
    assert known.class_rates == {"a": pytest.approx(40 / 51)}
    assert known.rare == pytest.approx(11 / 51)


def test_a_feature_of_nine_stays_and_one_of_none(page: Path, cohort: Cohort) -> None:
    assert row(page, "few")[1:] == ["hidden", "hidden", "hidden"]
    assert row(page, "empty")[1:] == ["100.0%", "–", "–"]
    assert np.isnan(missing_by_step(cohort, cohort.schema["few"], MIN_AGGREGATE)).all()
    assert (missing_by_step(cohort, cohort.schema["empty"], MIN_AGGREGATE) == 1).all()
    for name, says in (("few", f"fewer than {MIN_AGGREGATE} stays have a value"), ("empty", "no value was observed")):
        figure = figures.distribution(cohort, distribution(cohort, cohort.schema[name], MIN_AGGREGATE))
        assert figure.layout.annotations[0].text == says


def test_missing_rates_count_the_stays_that_reach_a_step(ragged: Cohort) -> None:
    pulse = ragged.schema["pulse"]
    rates = missing_by_step(ragged, pulse, MIN_AGGREGATE)
    reached = ragged.lengths > 5
    assert rates[5] == pytest.approx(np.isnan(ragged.series["pulse"][reached, 5]).mean())
    assert np.isnan(missing_by_step(ragged, pulse, int(reached.sum()) + 1)[5])


def test_names_and_units_are_escaped(page: Path, cohort: Cohort) -> None:
    text = body(page)
    assert f"{ODD_ESCAPED} (&lt;i&gt;mg)" in text
    for markup in (ODD, "<i>mg", "<u>odd", "<DuckDB>", "<24 h>"):
        assert markup not in text
    assert "<h1>Cohort icu &amp; co: what is in it</h1>" in text
    figure = figures.distribution(cohort, distribution(cohort, cohort.schema[ODD], MIN_AGGREGATE))
    assert figure.layout.xaxis.title.text == "&lt;i&gt;mg"


def test_without_extraction(cohort: Cohort, tmp_path: Path) -> None:
    assert read_extraction(tmp_path) is None
    write_cohort_page(tmp_path / "new" / "page.html", cohort, title="t")
    assert "From all stays" not in body(tmp_path / "new" / "page.html")


def test_five_stays_are_too_few(cohort: Cohort, tmp_path: Path) -> None:
    write_cohort_page(tmp_path / "page.html", cohort.take(np.arange(5)), title="t")
    assert "too few to show" in body(tmp_path / "page.html")
    assert figures_in(tmp_path / "page.html") == 0
    assert row(tmp_path / "page.html", "missing") == ["hidden"]
    assert row(tmp_path / "page.html", "label died") == ["hidden"]


def test_between_ten_and_twenty_stays(cohort: Cohort, tmp_path: Path) -> None:
    write_cohort_page(tmp_path / "page.html", cohort.take(np.arange(12)), title="t")
    assert row(tmp_path / "page.html", "age (years)")[-1] == "hidden"


def test_a_constant_feature_has_one_bin(cohort: Cohort) -> None:
    constant = replace(cohort, series={**cohort.series, "sbp": np.full((STAYS, STEPS), 120.0)})
    known = distribution(constant, constant.schema["sbp"], MIN_AGGREGATE)
    assert known.heights.tolist() == [1]


def test_an_existing_file_is_refused(cohort: Cohort, page: Path) -> None:
    before = page.read_bytes()
    with pytest.raises(TimeDiffError, match="exists already"):
        write_cohort_page(page, cohort, title="t")
    assert page.read_bytes() == before


def test_a_broken_extraction_file_is_one_sentence(tmp_path: Path) -> None:
    for text in ("{", "[]", '{"stays": 3}', '{"stays_dropped": {"a": "many"}}'):
        (tmp_path / "extraction.json").write_text(text)
        with pytest.raises(TimeDiffError, match=r"extraction\.json"):
            read_extraction(tmp_path)


def test_statistics_are_the_papers_columns(icu: Cohort, mixed: Cohort) -> None:
    row = statistics(icu)
    assert row["sample size"] == "200"
    assert row["temporal features"] == str(len(icu.schema.temporal))
    assert row["steps"] == "12 of 1h"
    assert row["label died"] == f"{icu.static['died'].mean():.1%}"
    unlabelled = replace(mixed, schema=mixed.schema.generated())
    features = tuple(replace(f, role=None) if f.role == "label" else f for f in unlabelled.schema.features)
    assert list(statistics(replace(unlabelled, schema=Schema(features, 6)))) == list(row)[:4]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    def call(*arguments: object) -> str:
        from timediff.cli import app, console

        written = io.StringIO()
        monkeypatch.setattr(console, "console", Console(file=written, width=100, highlight=False))
        with redirect_stdout(written):
            app([str(argument) for argument in arguments], standalone_mode=False)
        return written.getvalue()

    return call


def test_the_command_shows_rules_and_writes_the_page(run: Callable[..., str], folder: Path, tmp_path: Path) -> None:
    out = run("describe", folder, "--html", tmp_path / "page.html")
    assert "<DuckDB> 1.4" in out
    assert re.search(r"unit stay of <24 h> *│ *−1,234", out)
    assert re.search(r"kept *│ *60", out)
    assert "sample size" in out
    assert "<h1>Cohort icu &amp; co: what is in it</h1>" in body(tmp_path / "page.html")
    with pytest.raises(TimeDiffError, match="exists already"):
        run("describe", folder, "--html", tmp_path / "page.html")


def test_plotly_is_imported_only_for_a_page(folder: Path) -> None:
    watch = f"""
import sys
from timediff.cli import app
app(["describe", {str(folder)!r}], standalone_mode=False)
print("plotly" in sys.modules)
"""
    shown = subprocess.run([sys.executable, "-c", watch], capture_output=True, text=True, check=True).stdout
    assert shown.endswith("False\n")


def test_a_browser_draws_every_figure(page: Path, tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no chromium or chrome is installed")
    quiet = "--disable-background-networking --disable-quic --no-first-run --disable-component-update --disable-sync"
    command = [browser, *f"--headless --no-sandbox --disable-gpu {quiet}".split(), f"--user-data-dir={tmp_path}"]
    command += ["--enable-logging=stderr", "--virtual-time-budget=8000", "--dump-dom", page.as_uri()]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    drawings = re.split(r'<div id="figure-\d+"', ended.stdout[ended.stdout.index("<body>") :])[1:]
    assert len(drawings) == figures_in(page)
    assert all('class="main-svg"' in drawing for drawing in drawings)
    assert "CONSOLE" not in ended.stderr
