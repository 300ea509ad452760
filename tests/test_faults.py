"""The fault campaign: a short one finds nothing, and a defect that is planted is found."""

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"
sys.path.append(str(FOLDER))

from fault_campaign import mutations  # noqa: E402
from fault_campaign.case import Case, Outcome, judge  # noqa: E402
from fault_campaign.doors import DOORS, chosen  # noqa: E402


def python(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own, which has one thread and can fork."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(FOLDER)}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, check=False)


def test_a_short_campaign_finds_nothing(tmp_path: Path) -> None:
    out = tmp_path / "summary.json"
    ended = python(FOLDER / "faults.py", "--cases", "300", "--kills", "4", "--moments", "--out", out)
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]
    summary = json.loads(out.read_text())
    assert (summary["cases"], summary["kills"], summary["failures"]) == (300, 4, [])
    assert set(summary["cases_by_door"]) == set(DOORS)
    assert set(summary["kills_by_command"]) == {"fit", "sample", "extract", "evaluate"}


@pytest.fixture(scope="module")
def planted() -> dict[str, dict[str, int]]:
    ended = python(Path(__file__).parent / "helpers" / "planted_faults.py")
    assert ended.returncode == 0, ended.stderr[-3000:]
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.parametrize("kind", ["traceback", "leftover", "leak", "exit code", "hang", "crash", "silent acceptance"])
def test_a_planted_defect_is_counted_as_what_it_is(planted: dict[str, dict[str, int]], kind: str) -> None:
    assert planted[kind][kind] > 0


def test_a_killed_fit_that_ends_with_other_weights_is_counted(planted: dict[str, dict[str, int]]) -> None:
    assert planted["kill"] == {"kill: the result differs: weights": 1}


def test_without_a_defect_nothing_is_counted(planted: dict[str, dict[str, int]]) -> None:
    assert planted["nothing"] == {}


# What is wrong with an outcome


def kinds(case: Case, outcome: Outcome) -> list[str]:
    return [failure.kind for failure in judge(case, outcome)]


CASE = Case("cohort", "cut", ["split", "c", "train", "test"], ("train", "test"), truth="sound")


@pytest.mark.parametrize("outcome", [Outcome(2, "error: damaged"), Outcome(130), Outcome(0, measured="sound")])
def test_a_refusal_an_interruption_and_the_undamaged_result_are_right(outcome: Outcome) -> None:
    assert kinds(CASE, outcome) == []


def test_another_result_of_a_damaged_file_is_a_silent_acceptance() -> None:
    assert kinds(CASE, Outcome(0, measured="other")) == ["silent acceptance"]


def test_an_output_is_a_leftover_only_where_the_command_failed() -> None:
    assert kinds(CASE, Outcome(0, measured="sound", appeared=["train", "train/schema.toml"])) == []
    assert kinds(CASE, Outcome(2, appeared=["train", "train/schema.toml"])) == ["leftover"]
    assert kinds(CASE, Outcome(0, measured="sound", appeared=["PWNED"])) == ["leftover"]
    assert kinds(CASE, Outcome(0, measured="sound", appeared=["train/.x.partial-12"])) == ["leftover"]
    assert kinds(CASE, Outcome(0, measured="sound", appeared=["tmp:timediff-abc"])) == ["leftover"]


def test_a_corrected_command_that_is_refused_is_blocked() -> None:
    assert kinds(CASE, Outcome(2, again=Outcome(2, "error: train exists already"))) == ["blocked"]
    assert kinds(CASE, Outcome(2, again=Outcome(0, measured="sound"))) == []


def test_memory_beyond_the_limit_is_counted() -> None:
    assert kinds(CASE, Outcome(2, memory=4000)) == ["memory"]


# What is done


def test_a_case_follows_from_its_number_and_the_seed() -> None:
    def mutated(seed: int, number: int) -> object:
        door, rng = chosen(seed, number)
        return door, mutations.toml_text(rng, "a = 1\nb = 2\n"), mutations.csv_text(rng, "x,y\n1,2\n3,4\n")

    assert [mutated(0, n) for n in range(50)] == [mutated(0, n) for n in range(50)]
    assert [mutated(0, n) for n in range(50)] != [mutated(1, n) for n in range(50)]


def test_every_door_is_chosen_within_a_few_hundred_cases() -> None:
    assert {chosen(0, number)[0] for number in range(300)} == set(DOORS)


@pytest.mark.parametrize("kind", sorted(mutations.BYTES))
def test_damaged_bytes_are_other_bytes(kind: str) -> None:
    content = Random(0).randbytes(2000)
    assert all(mutations.BYTES[kind](Random(seed), content)[0] != content for seed in range(20))
