"""How losses went: in memory, in a run folder, and drawn."""

import json
from pathlib import Path

import pytest

from helpers.small_runs import signal_at, small_settings
from timediff.data.cohort import Cohort
from timediff.errors import Stopped, TimeDiffError
from timediff.generators.registry import load
from timediff.generators.timediff.generator import TimeDiff
from timediff.report.history import history_figure


def test_the_history_is_the_same_with_a_run_folder_without_one_and_of_a_loaded_run(icu: Cohort, tmp_path: Path) -> None:
    alone = TimeDiff(settings=small_settings()).fit(icu, seed=5)
    written = TimeDiff(settings=small_settings()).fit(icu, seed=5, run=tmp_path / "run")
    alone.save(tmp_path / "saved")
    timed = {"stays_per_second"}
    seen = [
        [{key: value for key, value in line.items() if key not in timed} for line in one.history]
        for one in (alone, written, load(tmp_path / "run"), load(tmp_path / "saved"))
    ]
    assert [line["step"] for line in seen[0]] == [2, 4, 6, 8, 10, 12]
    assert {"total", "continuous", "discrete", "lr"} < seen[0][0].keys()
    assert seen[0] == seen[1] == seen[2] == seen[3]


def test_the_history_of_a_resumed_run_is_of_all_its_updates(icu: Cohort, tmp_path: Path) -> None:
    run = tmp_path / "run"
    whole = TimeDiff(settings=small_settings()).fit(icu, seed=5)
    with pytest.raises(Stopped):
        TimeDiff(settings=small_settings()).fit(icu, seed=5, run=run, progress=signal_at(7))
    resumed = TimeDiff(settings=small_settings()).fit(icu, seed=5, run=run, resume=True)
    assert [line["step"] for line in resumed.history] == [2, 4, 6, 8, 10, 12]
    assert [line["total"] for line in resumed.history][-2:] == [line["total"] for line in whole.history][-2:]


def test_a_log_that_cannot_be_read_costs_no_model(icu: Cohort, tmp_path: Path) -> None:
    run = tmp_path / "run"
    TimeDiff(settings=small_settings()).fit(icu, seed=5, run=run)
    (run / "log.jsonl").write_bytes(b"\xff\xfe")
    assert TimeDiff(settings=small_settings()).fit(icu, seed=5, run=run, resume=True).history == []
    loaded = load(run)
    with pytest.raises(TimeDiffError, match="not a text in UTF-8"):
        loaded.history  # noqa: B018


def test_losses_are_drawn_a_line_each(icu: Cohort) -> None:
    model = TimeDiff(settings=small_settings(**{"training.validation": 0.2, "training.validate_every": 4}))
    figure = model.fit(icu, seed=5).plot_history()
    lines = {line.name: line for line in figure.data}
    assert set(lines) == {"continuous", "discrete", "held out"}
    assert [*lines["continuous"].x] == [2, 4, 6, 8, 10, 12]
    assert [*lines["continuous"].y] == [record["continuous"] for record in model.history]
    assert lines["held out"].line.dash == "dash"
    assert min(lines["held out"].x) == 4
    assert json.loads(figure.to_json())["layout"]["xaxis"]["title"]["text"] == "updates"


def test_what_has_no_losses_says_so() -> None:
    with pytest.raises(TimeDiffError, match="there are no losses to draw"):
        history_figure([])
