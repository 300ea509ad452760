"""The comparison page: complete, self-contained, and silent about any single real stay."""

import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from helpers.pages import Elements
from timediff.data.cohort import Cohort
from timediff.data.schema import Feature, Schema
from timediff.errors import TimeDiffError
from timediff.evaluation.figure_data import course_over_time, missing_rates, single_stays
from timediff.evaluation.metrics.marginals import marginals
from timediff.report import figures
from timediff.report.comparison_page import write_comparison
from timediff.report.terminal import marginals_table
from timediff.sources.simulated import simulate

STEPS = 12
ODD = '<b>x&"</b>'  # a name that is markup in HTML and in a figure's text
ODD_ESCAPED = "&lt;b&gt;x&amp;&quot;&lt;/b&gt;"
SENTINEL, SYNTHETIC_SENTINEL = 187.53, 164.29  # values that nothing else has


def cohort(seed: int, stays: int = 40) -> Cohort:
    """Simulated stays with more kinds of feature: odd, discrete, and one (`rare`) observed in nine stays only."""
    rng = np.random.default_rng(seed)
    base = simulate(stays, steps=STEPS, seed=seed)
    more = (
        Feature(ODD, "continuous", unit="<i>mg"),
        Feature("rare", "continuous"),
        Feature("ventilated", "binary"),
        Feature("rhythm", "categorical", classes=("sinus", "<u>paced")),
    )
    rare = np.full((stays, STEPS), np.nan)
    rare[:9] = rng.normal(5000, 1, (9, STEPS))
    series = {
        ODD: rng.normal(2, 1, (stays, STEPS)),
        "rare": rare,
        "ventilated": rng.integers(0, 2, (stays, STEPS)).astype(np.float64),
        "rhythm": rng.integers(0, 2, (stays, STEPS)).astype(np.float64),
    }
    schema = Schema((*base.schema.temporal, *more, *base.schema.static), STEPS)
    return Cohort(schema, base.stay_id, {**base.series, **series}, base.static)


@pytest.fixture(scope="module")
def pair() -> tuple[Cohort, Cohort]:
    real, synthetic = cohort(1), cohort(2)
    # The first stay is among those shown one by one, so a real cohort in the wrong place would be found out.
    real.series["heart_rate"][0, 3:6] = SENTINEL
    synthetic.series["heart_rate"][0, 3] = SYNTHETIC_SENTINEL
    return real, synthetic


@pytest.fixture(scope="module")
def page(pair: tuple[Cohort, Cohort], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "comparison.html"
    facts = {"seed": "7", "<key>": "<script>alert(1)</script>"}
    write_comparison(path, *pair, title="Real & <synthetic>", facts=facts, train=cohort(7))
    return path


def test_the_page_loads_nothing(page: Path) -> None:
    elements = Elements(page.read_text())
    for tag, attributes in elements.found:
        assert tag not in ("link", "iframe", "object", "embed", "img", "base")
        assert not {"src", "href", "srcset", "data", "action"} & attributes.keys()
    assert "@import" not in elements.text["style"]
    assert "url(" not in elements.text["style"]
    # Whatever a script may try, the browser refuses it.
    [policy] = [a["content"] for _, a in elements.found if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_plotly_is_inlined_once(page: Path) -> None:
    assert page.read_text().count("plotly.js v") == 1


def test_every_feature_is_named_and_escaped(page: Path, pair: tuple[Cohort, Cohort]) -> None:
    text = page.read_text()
    elements = Elements(text)
    table = elements.text["th"]
    for feature in pair[0].schema.features:
        assert feature.name in table
    assert ODD_ESCAPED in text
    assert ODD not in text
    assert "<u>paced" not in text
    assert "<script>alert(1)" not in text
    assert "Real &amp; &lt;synthetic&gt;" in text
    # In a figure's text, too, the name is shown and not obeyed.
    title = figures.draw(course_over_time(*pair, ODD)).layout.yaxis.title.text
    assert title == '&lt;b&gt;x&amp;"&lt;/b&gt; (&lt;i&gt;mg)'


def test_no_single_real_value_is_in_the_page(page: Path) -> None:
    text = page.read_text()
    assert shown(SYNTHETIC_SENTINEL) in text  # the test would see a value that is there
    assert shown(SENTINEL) not in text
    assert str(SENTINEL) not in text
    assert "bdata" not in scripts(text)  # nor hidden in a binary array


def shown(value: float) -> str:
    return f"{value:.4g}"


def scripts(text: str) -> str:
    """The calls that draw the figures, without the library."""
    return "".join(re.findall(r"Plotly\.newPlot\((.*?)</script>", text[text.index("<body>") :], re.DOTALL))


def test_no_real_aggregate_of_fewer_than_ten_stays(page: Path, pair: tuple[Cohort, Cohort]) -> None:
    assert all(value is None for trace in figures.draw(course_over_time(*pair, "rare")).data for value in trace.y)
    [row] = re.findall(r'<tr><th scope="row">rare</th>(.*?)</tr>', page.read_text())
    cells = re.findall(r"<td>(.*?)</td>", row)
    real, synthetic, shift, real_missing, synthetic_missing = (re.sub("<.*?>", "", cell) for cell in cells)
    assert (real, shift, real_missing) == ("hidden", "hidden", "hidden")
    assert synthetic.startswith("5000")
    assert synthetic_missing == "77.5 %"
    place = [feature.name for feature in pair[0].schema.features].index("rare")
    bars = figures.draw(missing_rates(*pair))
    assert bars.data[0].x[place] is None
    assert bars.data[1].x[place] == 0.775


def test_trajectories_leave_out_only_the_steps_with_few_stays() -> None:
    real = cohort(3)
    values = real.series[ODD]
    values[9:, 4] = np.nan  # nine stays left
    values[10:, 6] = np.nan  # ten
    band, line = figures.draw(course_over_time(real, cohort(4), ODD)).data[:2]
    assert [step for step, value in enumerate(line.y) if value is None] == [4]
    assert line.y[6] == pytest.approx(values[:10, 6].mean(), rel=1e-3)
    low, high = (line.y[6] + sign * values[:10, 6].std() for sign in (-1, 1))
    assert [y for x, y in zip(band.x, band.y, strict=True) if x == 6] == pytest.approx([high, low], rel=1e-2)
    assert 4 not in band.x


def test_a_class_has_its_share(pair: tuple[Cohort, Cohort]) -> None:
    shares = figures.draw(course_over_time(*pair, "rhythm")).data
    assert [trace.name for trace in shares] == ["real", "synthetic"] * 2
    assert np.array(shares[0].y) + np.array(shares[2].y) == pytest.approx(1, abs=1e-3)
    assert shares[0].y == pytest.approx((pair[0].series["rhythm"] == 0).mean(axis=0), abs=1e-3)


def test_single_stays_keep_their_gaps(pair: tuple[Cohort, Cohort]) -> None:
    _, synthetic = pair
    figure = figures.draw(single_stays(synthetic, ["temperature"], count=3))
    assert len(figure.data) == 3
    gaps = [value is None for value in figure.data[0].y]
    assert gaps == np.isnan(synthetic.series["temperature"][0]).tolist()


def test_axis_says_hours_or_steps() -> None:
    hourly, fine = simulate(12, steps=4), simulate(12, steps=4, steps_per_hour=12)
    assert figures.draw(course_over_time(hourly, hourly, "sbp")).layout.xaxis.title.text == "hour"
    assert figures.draw(course_over_time(fine, fine, "sbp")).layout.xaxis.title.text == "step of 5min"


def test_far_off_cells_are_marked_in_words_and_colour(tmp_path: Path) -> None:
    real, synthetic = cohort(5), cohort(6)
    synthetic.series["sbp"][:] -= 20
    synthetic.series["spo2"][:, :6] = np.nan
    write_comparison(tmp_path / "page.html", real, synthetic, title="t", facts={})
    text = (tmp_path / "page.html").read_text()
    assert re.search(r"sbp \(mmHg\)</th>.*<mark><span[^>]*>−1\.\d\d</span> ▼</mark>", text)
    assert re.search(r"spo2 \(%\)</th>.*<mark><span[^>]*>\d+\.\d %</span> ▲</mark>", text)


def test_the_same_cohorts_give_the_same_bytes(pair: tuple[Cohort, Cohort], tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        write_comparison(tmp_path / name, *pair, title="t", facts={})
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_without_plotly_it_says_what_to_install(
    pair: tuple[Cohort, Cohort], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(TimeDiffError, match=r"pip install 'timediff-icu\[evaluate\]'"):
        write_comparison(tmp_path / "page.html", *pair, title="t", facts={})
    assert not list(tmp_path.iterdir())


def test_the_terminal_table_says_the_same(pair: tuple[Cohort, Cohort]) -> None:
    written = io.StringIO()
    Console(width=200, file=written).print(marginals_table(marginals(*pair)))
    text = written.getvalue()
    assert ODD in text
    [rare] = [line for line in text.splitlines() if "rare" in line]
    assert rare.count("hidden") == 3


def test_a_browser_draws_every_figure(page: Path, pair: tuple[Cohort, Cohort], tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no chromium or chrome is installed")
    quiet = "--disable-background-networking --disable-quic --no-first-run --disable-component-update --disable-sync"
    command = [browser, *f"--headless --no-sandbox --disable-gpu {quiet}".split(), f"--user-data-dir={tmp_path}"]
    command += ["--enable-logging=stderr", "--virtual-time-budget=8000", "--dump-dom", page.as_uri()]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    dom = ended.stdout[ended.stdout.index("<body>") :]
    temporal = len(pair[0].schema.temporal)
    drawings = re.split(r'<div id="figure-\d+"', dom)[1:]
    assert len(drawings) == temporal + 2
    for drawing in drawings:
        assert 'class="main-svg"' in drawing
        assert re.search(r'class="(trace scatter|trace bars|scatterlayer|barlayer)', drawing)
    assert sum('class="trace scatter' in drawing for drawing in drawings) >= temporal
    assert 'class="trace bars' in drawings[-1]
    # Uncaught errors and refused requests would be on the console.
    assert "CONSOLE" not in ended.stderr
