"""The report of an evaluation: complete, self-contained, readable anywhere, and honest about what is not there."""

import html
import json
import math
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.foreign_attack import NAME, installed
from helpers.pages import Elements
from timediff.data.cohort import Cohort
from timediff.data.describe import distribution
from timediff.evaluation.figure_data import Charts, cohort_figures, distributions, named
from timediff.evaluation.metrics import clinical
from timediff.evaluation.metrics.embeddings import Embedding, finest_densities, maps
from timediff.evaluation.registry import HOMES, METRICS
from timediff.evaluation.results import Results, write_score
from timediff.evaluation.score import Score, unavailable
from timediff.report import figures
from timediff.report.evaluation_page import write_report
from timediff.report.meanings import ASKED, QUESTIONS, families, meaning
from timediff.report.score_tables import number
from timediff.report.verdicts import RULES, exposes, looks_real, useful, verdicts
from timediff.sources.simulated import simulate


@pytest.fixture(scope="module")
def foreign_attack() -> Iterator[None]:
    with installed():
        yield


HOSTILE = "<script>alert(1)</script>"
GENERATORS = ("timediff", HOSTILE)
FEATURES = ("heart_rate", "sbp", "<b>odd</b>")
CLASSIFIERS = ("random forest, flattened", "GRU, series", "mean of five, flattened")


def scores(worse: float) -> list[Score]:
    """Every family, better or worse; some numbers are not there."""

    def score(metric: str, what: str, value: float, floor: float, **about: str) -> Score:
        rest = {"low": value - 0.01, "high": value + 0.01, "floor_low": floor - 0.01, "floor_high": floor + 0.01}
        return Score(metric, what, value, n=500, std={"classifier": 0.004}, floor=floor, **rest, **about)  # type: ignore[arg-type]

    found = [
        *(score("discriminative", "auc", 0.53 + worse, 0.51, classifier=j) for j in ("paper", "strong")),
        *(score("discriminative", "score", 0.02 + worse, 0.01, classifier=j) for j in ("paper", "strong")),
        unavailable("discriminative", "auc", "nothing is missing <here>.", classifier="strong, masks alone"),
        score("predictive", "error", 0.04 + worse / 10, 0.038, classifier="vector"),
        *(score("fidelity", what, 0.02 + worse, 0.01) for what in ("correlation", "autocorrelation")),
        score("copies", "share", worse, 0),
        replace(score("near_copies", "share", worse / 2, 0.002), floor_low=0.0),
        *(score("nnaa", what, 0.5 + worse / 2, 0.5) for what in ("aa_train", "aa_test", "nearer_training")),
        score("nnaa", "nnaa", worse / 2, 0.01),
        *(score("mir", what, 0.5 + worse / 2, 0.5) for what in ("f1", "no_leak_f1", "tpr", "fpr", "auc")),
    ]
    for place, feature in enumerate(FEATURES):
        for what in ("ks", "wasserstein", "mean", "sd", "out_of_range", "missing", "runs", "missing_by_step"):
            found.append(score("fidelity", what, (0.02 + worse) * (-2) ** place, 0.01, feature=feature))
            for group in ("sex = F", "sex = M"):
                found.append(score("fidelity", what, (0.03 + worse) * place, 0.01, feature=feature, group=group))
        for what in ("lattice", "repeats", "stay_mean", "lowest_1"):
            found.append(score("clinical", what, (0.02 + worse) * place, 0.01, feature=feature))
    found.append(score("clinical", "order", worse, 0.01, feature="sbp ≥ mbp"))
    found.append(score("clinical", "event_curve", 0.05 + worse, 0.03))
    found.append(unavailable("fidelity", "ks", "no value was observed", feature="empty"))
    found.append(unavailable("fidelity", "ks", "fewer than 30 stays", group="age 90 to 99"))
    for classifier in CLASSIFIERS:
        for what, value in (("tstr", 0.8 - worse), ("trtr", 0.81), ("trts", 0.8), ("gap", 0.01 + worse)):
            found.append(score("tstr", what, value, 0.81 if what != "gap" else 0, classifier=classifier))
        for share in (0, 10, 30, 50):
            found.append(
                score("tsrtr", f"auc at {share} %", 0.7 + share / 1000 - worse / 10, 0.7, classifier=classifier)
            )
    found.append(
        unavailable("tsrtr", "auc at 90 %", "needs 18,000 synthetic stays; there are 500", classifier=classifier)
    )
    return found


def cohort(seed: int) -> Cohort:
    return simulate(60, steps=12, seed=seed)


@pytest.fixture(scope="module")
def results() -> Results:
    test, made = cohort(1), {name: cohort(2 + i) for i, name in enumerate(GENERATORS)}
    figures = [figure for name, one in made.items() for figure in cohort_figures(test, one, name, single=True)]
    figures += [figure for name, one in made.items() for figure in named(name, clinical.figures(test, one, cohort(0)))]
    figures += [figure for i, name in enumerate(GENERATORS) for figure in maps(embedding(i), name)]
    return Results(
        GENERATORS,
        {"timediff": scores(0.0), HOSTILE: scores(0.2)},
        {"protocol": "strict", "seed": 0, "repetitions": 3},
        {"training stays": "1,000", "held-out data, SHA-256": "0123456789abcdef" * 4, "version": HOSTILE},
        ["the synthetic cohort is identical to the training cohort", HOSTILE],
        figures,
    )


def embedding(seed: int) -> Embedding:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(900, 2)).astype(np.float32)
    return Embedding("tsne", points, np.repeat(["train", "test", "synthetic"], 300))


@pytest.fixture(scope="module")
def page(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("evaluation") / "report.html"
    write_report(path, results)
    return path


def browsed(page: Path, folder: Path, script: str = "", width: int = 1200) -> dict[str, Any]:
    """What `script` says, run in a browser that has drawn the page; nothing is on the console."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no chromium or chrome is installed")
    told = "window.addEventListener('load', () => setTimeout(async () => { const said = await (async () => {SCRIPT})();"
    told += "parent.postMessage(JSON.stringify(said ?? {}), '*'); }, 4000));"
    text = page.read_text()
    copy = folder / "tried.html"
    copy.write_text(f"{text[: text.rindex('</body>')]}<script>{told.replace('SCRIPT', script)}</script></body></html>")
    # A window has a least width, a frame has none.
    frame = folder / "frame.html"
    heard = "addEventListener('message', event => { document.body.dataset.said = event.data; });"
    frame.write_text(
        f'<body><script>{heard}</script><iframe style="width: {width}px; height: 900px; border: 0" src="{copy.name}">'
    )
    quiet = "--disable-background-networking --disable-quic --no-first-run --disable-component-update --disable-sync"
    command = [browser, *f"--headless --no-sandbox --disable-gpu --hide-scrollbars {quiet}".split()]
    command += [f"--user-data-dir={folder / 'profile'}", f"--window-size={width + 50},1000", "--enable-logging=stderr"]
    command += ["--virtual-time-budget=9000", "--dump-dom", frame.as_uri()]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "CONSOLE" not in ended.stderr, ended.stderr
    [said] = re.findall(r'data-said="(.*?)"', ended.stdout)
    answer: dict[str, Any] = json.loads(html.unescape(said))
    return answer


WAIT = "const wait = ms => new Promise(done => setTimeout(done, ms));"


def test_a_browser_draws_what_is_chosen_and_prints_all(page: Path, results: Results, tmp_path: Path) -> None:
    script = f"""{WAIT}
    const drawn = f => !!f.querySelector('.main-svg');
    const all = [...document.querySelectorAll('figure[data-picture]')], said = {{}};
    said.undrawn = all.filter(f => !f.hidden && f.offsetParent && !drawn(f)).length;
    said.early = all.filter(f => f.hidden && drawn(f)).length;
    const gallery = document.getElementById('trajectories'), menus = gallery.querySelectorAll('select');
    said.first = [...gallery.querySelectorAll('figure')].filter(f => !f.hidden).length;
    menus[0].value = '1'; menus[0].dispatchEvent(new Event('change', {{bubbles: true}}));
    await wait(100);
    const now = [...gallery.querySelectorAll('figure')].filter(f => !f.hidden);
    said.second = now.map(f => [f.querySelector('figcaption').textContent, drawn(f)]);
    said.menus = menus.length;
    dispatchEvent(new Event('beforeprint'));
    await wait(1500);
    said.printed = all.filter(drawn).length;
    said.opened = document.querySelectorAll('details:not([open])').length;
    said.widths = [...new Set(all.map(f => f.querySelector('.main-svg').getAttribute('width')))].sort();
    return said;"""
    said = browsed(page, tmp_path, script)
    features = [feature.name for feature in cohort(1).schema.temporal]
    assert said["undrawn"] == said["early"] == 0
    assert said["first"] == len(GENERATORS)  # side by side
    assert said["second"] == [[f"{features[1]} over time ({name})", True] for name in GENERATORS]
    assert said["menus"] == 1  # of features alone
    # All but the single stays of the one that holds copies, and the one of more and more synthetic stays.
    drawn = [figure for figure in results.figures if not isinstance(figure.content, Charts)]
    assert said["printed"] == len(drawn) - 1 + 1
    assert said["opened"] == 0
    assert said["widths"] == ["214", "333", "690"]  # as wide as the paper, or half, or a third of it


def test_a_heading_sorts_numbers_as_numbers_and_leaves_the_unknown_last(page: Path, tmp_path: Path) -> None:
    script = """
    const title = [...document.querySelectorAll('.numbers h4')].find(one => one.textContent === 'KS distance');
    const table = title.parentElement.querySelector('table'), body = table.tBodies[0];
    const names = () => [...body.rows].map(row => row.cells[0].textContent);
    const column = [...table.tHead.rows[0].cells].findIndex(cell => cell.textContent === 'timediff');
    const head = table.tHead.rows[0].cells[column], button = head.querySelector('button'), said = {before: names()};
    button.focus(); said.focus = document.activeElement === button;
    button.click(); said.up = names(); said.sort = head.getAttribute('aria-sort');
    button.click(); said.down = names(); said.back = head.getAttribute('aria-sort');
    return said;"""
    said = browsed(page, tmp_path, script)
    assert said["before"] == [*FEATURES, "empty"]
    assert said["up"] == ["sbp", "heart_rate", "<b>odd</b>", "empty"]  # −.04, .02, .08
    assert said["down"] == ["<b>odd</b>", "heart_rate", "sbp", "empty"]
    assert (said["focus"], said["sort"], said["back"]) == (True, "ascending", "descending")


def test_nothing_overflows_a_phone(page: Path, tmp_path: Path) -> None:
    script = """
    const figures = [...document.querySelectorAll('figure[data-drawn]')].filter(figure => !figure.hidden);
    const svg = figure => figure.querySelector('.main-svg').clientWidth;
    return {page: document.documentElement.scrollWidth, window: innerWidth, drawn: figures.length,
            cut: figures.filter(figure => svg(figure) > figure.clientWidth).length};"""
    said = browsed(page, tmp_path, script, width=400)
    assert said["page"] == said["window"] == 400
    assert said["drawn"] > 10
    assert said["cut"] == 0


def test_the_page_loads_nothing_and_obeys_no_name(page: Path) -> None:
    text = page.read_text()
    elements = Elements(text)
    for tag, attributes in elements.found:
        assert tag not in ("link", "iframe", "object", "embed", "img", "base")
        assert not {"src", "href", "srcset", "data", "action"} & attributes.keys()
    assert "url(" not in elements.text["style"]
    [policy] = [a["content"] for _, a in elements.found if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert HOSTILE not in text
    assert html.escape(HOSTILE) in text
    assert "<b>odd</b>" not in text


def test_warnings_come_before_anything_else(page: Path) -> None:
    body = page.read_text().split("<main>")[1]
    assert body.index("identical to the training cohort") < body.index("Does it look real?") < body.index("Facts")


def test_every_number_is_named_explained_and_every_absent_one_says_why(page: Path, results: Results) -> None:
    text = html.unescape(page.read_text())
    for score in results.scores["timediff"]:
        says = meaning(score)
        assert says.title in text
        assert says.sentence in text or score.metric == "tsrtr"
        if math.isnan(score.value):
            assert f"not available: {score.note}" in text
    assert not re.search(r">\s*nan\s*<", text)


def test_all_names_of_scores_have_a_meaning() -> None:
    assert {metric.name for metric in families()} | {"subgroups", "embeddings"} == set(HOMES)
    assert {ASKED[metric.question] for metric in families()} == set(QUESTIONS) == set(RULES)
    words = [says for metric in families() for says in metric.numbers.values()]
    assert all(says.title and says.sentence.endswith((".", ")")) for says in words)
    assert "30 %" in meaning(Score("tsrtr", "auc, all real + 30 %", 0.5)).sentence
    assert meaning(Score("new", "some_number", 0)).title == "some number"


def test_the_same_results_read_back_give_the_same_bytes(page: Path, results: Results, tmp_path: Path) -> None:
    results.write(tmp_path / "results")
    assert (tmp_path / "results" / "report.html").read_bytes() == page.read_bytes()
    Results.read(tmp_path / "results").report(tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == page.read_bytes()


def test_results_of_version_0_1_0_are_read_and_drawn(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).parents[1] / "golden" / "results-0.1.0", tmp_path / "old")
    old = Results.read(tmp_path / "old")
    stored = json.loads((tmp_path / "old" / "results.json").read_text())["generators"][0]["scores"]
    assert [s.classifier for s in old.scores["a"]] == [s.get("judge") for s in stored]
    assert [s.std.get("classifier") for s in old.scores["a"]] == [s.get("spreads", {}).get("judge") for s in stored]
    old.report(tmp_path / "report.html")
    text = html.unescape((tmp_path / "report.html").read_text())
    assert "two-layer GRU that sees only what is missing" in text
    assert "the paper's GRU" in text
    drawn = json.loads((tmp_path / "old" / "figures" / "trajectories-3e23e816-000.json").read_text())["figure"]
    assert json.dumps(drawn) in text
    assert [write_score(score) for score in old.scores["a"]] == stored


@pytest.mark.parametrize("metric", [metric.name for metric in families()])
def test_any_family_may_stand_alone(metric: str, results: Results, tmp_path: Path) -> None:
    only = {name: [s for s in known if s.metric == metric] for name, known in results.scores.items()}
    write_report(tmp_path / "page.html", replace(results, scores=only, figures=()))
    text = (tmp_path / "page.html").read_text()
    assert f"<h3>{METRICS(metric).title}</h3>" in text
    others = [other.title for other in families() if other.name != metric]
    assert all(f"<h3>{title}</h3>" not in text and f"<li>{title} (" in text for title in others)


def test_nothing_measured_is_a_page_too(results: Results, tmp_path: Path) -> None:
    lost = {name: [replace(s, value=math.nan, note="too few") for s in known] for name, known in results.scores.items()}
    write_report(tmp_path / "lost.html", replace(results, scores=lost, figures=()))
    text = (tmp_path / "lost.html").read_text()
    assert text.count(">not measured</span>") == len(QUESTIONS) * len(GENERATORS)
    assert "plotly.js v" not in text  # nothing is to be drawn
    browsed(tmp_path / "lost.html", tmp_path)
    write_report(tmp_path / "none.html", Results(("a",), {"a": []}, {}, {}))
    assert (tmp_path / "none.html").read_text().count("Nothing was measured.") == len(QUESTIONS)


def test_numbers_have_three_digits_and_a_true_minus() -> None:
    assert [number(x) for x in (0.12345, -0.5, -0.0001, math.nan, math.inf)] == ["0.123", "−0.500", "0.000", "–", "∞"]


def test_the_better_and_the_worse_generator_are_told_apart(results: Results) -> None:
    good, poor = (verdicts(results, name) for name in GENERATORS)
    assert [v.question for v in good] == list(QUESTIONS)
    assert [v.grade for v in good] == ["good", "good", "not shown"]  # never "good" for those whose data it is
    assert [v.grade for v in poor] == ["poor"] * 3
    assert poor[2].word == "signs of a leak"
    assert any("no anonymity" in " ".join(sentence.split()) for sentence in good[2].sentences)


def test_the_page_says_not_shown_and_why(results: Results, tmp_path: Path) -> None:
    write_report(tmp_path / "page.html", replace(results, figures=()))
    card = (tmp_path / "page.html").read_text().split("<h3>Whom could it expose?</h3>")[1].split("<details>")[0]
    assert card.count('<span class="grade few">not shown</span>') == 1
    assert card.count('<span class="grade poor">signs of a leak</span>') == 1
    assert "is a question for timediff audit, which was not made.</p>" in card
    assert card.count("NNAA and MIR are averages over distances and decide nothing: ") == 2


ORDER = ("good", "with care", "poor")
SHARE = st.floats(0, 0.5)


@pytest.mark.usefixtures("foreign_attack")
@given(SHARE, SHARE, SHARE)
def test_a_worse_number_never_gets_a_better_grade(one: float, other: float, floor: float) -> None:
    low, high = sorted((one, other))

    def grades(excess: float) -> list[int]:
        strong = Score("discriminative", "auc", 0.5 + excess, classifier="strong", floor=0.5 + floor)
        gaps = [Score("tstr", "gap", excess, classifier="a"), Score("tstr", "trtr", 0.9, classifier="a")]
        leak = [replace(s, value=s.value + excess) for s in safe()]
        return [ORDER.index(v.grade) for v in (looks_real([strong]), useful(gaps), exposes(leak))]

    assert all(a <= b for a, b in zip(grades(low), grades(high), strict=True))


def safe() -> list[Score]:
    """Three numbers without a sign of a leak, the first of another package's attack."""
    numbers = [(NAME, "auc", 0.5), ("copies", "share", 0.0), ("near_copies", "share", 0.0)]
    return [Score(metric, what, value, floor=value) for metric, what, value in numbers]


def test_looks_compare_with_the_floor_on_both_sides_of_guessing() -> None:
    def grade(value: float, floor: float, classifier: str = "strong") -> str:
        return looks_real([Score("discriminative", "auc", value, classifier=classifier, floor=floor)]).grade

    assert (grade(0.55, 0.5), grade(0.56, 0.5), grade(0.65, 0.5), grade(0.66, 0.5)) == (
        "good",
        "with care",
        "with care",
        "poor",
    )
    assert grade(0.65, 0.6) == "good"
    assert grade(0.2, 0.5) == "poor"
    assert grade(0.5, 0.5, "paper") == "with care"
    assert grade(0.9, math.nan) == "poor"


def test_the_classifier_of_masks_alone_counts_as_well() -> None:
    seen = [Score("discriminative", "auc", v, classifier=j) for j, v in (("strong", 0.5), ("strong, masks alone", 0.9))]
    assert looks_real(seen).grade == "poor"


def test_use_cannot_be_measured_where_real_stays_predict_nothing() -> None:
    known = [Score("tstr", "gap", 0.0, classifier="a"), Score("tstr", "trtr", 0.54, classifier="a")]
    assert useful(known).grade == "not measured"
    assert useful([known[0], replace(known[1], value=0.8)]).grade == "good"


def test_without_an_outcome_forecasts_say_whether_it_is_useful() -> None:
    grades = [
        useful([Score("predictive", "error", e, classifier="vector", floor=0.1)]).grade for e in (0.1, 0.115, 0.13)
    ]
    assert grades == ["good", "with care", "poor"]
    assert useful([Score("predictive", "error", 0.1, classifier="vector")]).grade == "not measured"


@pytest.mark.usefixtures("foreign_attack")
@pytest.mark.parametrize("place", range(3))
def test_each_sign_of_a_leak_is_enough(place: int) -> None:
    known = safe()
    assert exposes(known).grade == "good"
    known[place] = replace(known[place], value=known[place].value + 0.2)
    assert exposes(known).grade == "poor"


@pytest.mark.usefixtures("foreign_attack")
@pytest.mark.parametrize(
    ("excess", "grade"), [(0.019, "good"), (0.021, "with care"), (0.049, "with care"), (0.051, "poor")]
)
def test_the_limits_of_an_attack(excess: float, grade: str) -> None:
    """.02 and .05 above the floor, which may itself lie above what no leak gives."""
    for floor in (0.0, 0.03):
        attack, *copies = safe()
        attack = replace(attack, value=0.5 + floor + excess, floor=0.5 + floor)
        assert exposes([attack, *copies]).grade == grade


@pytest.mark.usefixtures("foreign_attack")
def test_an_interval_that_reaches_the_floor_is_no_sure_sign_of_a_leak() -> None:
    for excess, grade in ((0.049, "good"), (0.051, "with care")):
        attack, *copies = safe()
        attack = replace(attack, value=0.5 + excess, low=0.49, high=0.59)
        assert exposes([attack, *copies]).grade == grade


@pytest.mark.usefixtures("foreign_attack")
@pytest.mark.parametrize("place", range(3))
def test_what_was_not_measured_is_no_good_news(place: int) -> None:
    known = safe()
    known[place] = replace(known[place], value=math.nan)
    assert exposes(known).grade == "with care"
    assert exposes(safe()[1:]).grade == "not shown"  # no copies alone says little


@pytest.mark.usefixtures("foreign_attack")
def test_too_few_stays_cannot_rule_a_leak_out() -> None:
    known = [replace(s, low=s.value - 0.2, high=s.value + 0.2) for s in safe()]
    verdict = exposes(known)
    assert verdict.grade == "too few to say"
    assert any("too few stays" in sentence for sentence in verdict.sentences)


def test_copies_as_frequent_as_among_unseen_stays_are_no_leak() -> None:
    known = [Score("copies", "share", 0.3, floor=0.3), safe()[2]]
    assert exposes(known).grade == "not shown"


def test_figures_are_plain_and_their_files_safe(results: Results) -> None:
    names = [figure.name for figure in results.figures]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9-]+", name) for name in names)
    drawn = [figure.content for figure in results.figures if not isinstance(figure.content, Charts)]
    assert "bdata" not in json.dumps([figures.figure_json(content) for content in drawn])
    features = [f for f in cohort(1).schema.features if f.generated]
    assert sum(figure.section == "distributions" for figure in results.figures) == 2 * len(features)


def test_no_single_real_value_is_in_a_figure() -> None:
    test = cohort(1)
    test.series["heart_rate"][0, 3:6] = 187.53
    text = json.dumps([figure.to_json() for figure in cohort_figures(test, cohort(2), "a", single=True)])
    assert "187.5" not in text


def test_synthetic_bars_stand_on_the_real_bins() -> None:
    real, made = cohort(1), cohort(2)
    known = distribution(real, real.schema["heart_rate"], 10)
    bars, line, *_ = figures.draw(distributions(known, made)).data
    values = made.series["heart_rate"][~np.isnan(made.series["heart_rate"])]
    inside = (values >= known.edges[0]) & (values <= known.edges[-1])
    assert len(line.y) == len(bars.y) + 2
    assert sum(line.y[1:-1]) == pytest.approx(inside.mean(), abs=1e-2)
    assert all(y is None or y >= 0 for y in bars.y)


def test_maps_show_real_stays_as_points_only_inside_the_house() -> None:
    one = embedding(1)
    drawn = [[figures.draw(f.content).data[0] for f in maps(one, "a", internal=internal)] for internal in (False, True)]
    kinds = [[trace.type for trace in found] for found in drawn]
    assert kinds == [["heatmap"] * 3, ["heatmap"] * 3 + ["scatter"]]
    assert len({trace.zmax for trace in drawn[0]}) == 1  # one scale of colours


def test_a_map_is_as_fine_as_ten_stays_a_bin_allow() -> None:
    few, many = embedding(1), np.random.default_rng(0).normal(size=(30_000, 2)).astype(np.float32)
    fine = Embedding("tsne", many, np.repeat(["train", "test", "synthetic"], 10_000))
    assert len(finest_densities(few).x) < len(finest_densities(fine).x)
    for share in finest_densities(few).fractions.values():
        counts = share[~np.isnan(share)] * 300
        assert counts.min() >= 10
