"""What a budget cuts."""

from dataclasses import replace
from itertools import pairwise

import pytest

from timediff.reproduction.budget import SCALES, Job, Machine, Scale, choose, cost
from timediff.reproduction.datasets import KINDS
from timediff.reproduction.methods import EVERY, FAST, TIMEDIFF, full_updates, row_of

STOCKS = KINDS[0]
JOBS = [Job("a", 1.0, (("fit", 10.0),)), Job("b", 2.0, (("fit", 10.0),)), Job("c", 3.0, (("other", 5.0),))]


def test_what_several_need_is_paid_for_once() -> None:
    assert cost(JOBS) == 21.0


def test_the_largest_scale_that_fits_is_taken() -> None:
    cheap = [replace(job, seconds=0.1, needs=()) for job in JOBS]
    by_scale = {SCALES[0]: JOBS, SCALES[1]: cheap, SCALES[2]: cheap}
    assert choose(by_scale, 30).scale == SCALES[0]
    assert choose(by_scale, 20).scale == SCALES[1]
    assert choose(by_scale, 30).dropped == ()


def test_what_does_not_fit_at_the_last_scale_is_left_out_in_order() -> None:
    free = Job("free", 0.0)
    choice = choose({SCALES[0]: [*JOBS, free], SCALES[-1]: [*JOBS, free]}, 14)
    assert choice.scale == SCALES[-1]
    assert choice.dropped == ("c",)
    assert choice.seconds == 13.0
    assert choose({SCALES[-1]: JOBS}, 1).dropped == ("a", "b", "c")


def test_scales_only_shrink_and_say_what_they_cut() -> None:
    assert Scale().cuts() == []
    for before, after in pairwise(SCALES):
        assert after.updates <= before.updates
        assert after.seeds <= before.seeds
        assert after.repetitions <= before.repetitions
        assert (after.stays or 10**9) <= (before.stays or 10**9)
        assert (after.sampling or 10**9) <= (before.sampling or 10**9)
    words = " ".join(SCALES[-1].cuts())
    for told in (
        "0.1 % of each",
        "1 training seed instead of 3",
        "1 repetition of each",
        "400 stays",
        "25 sampling steps",
    ):
        assert told in words


def test_a_scale_changes_updates_and_sampling_steps_alone() -> None:
    full, cut = (row_of(TIMEDIFF, STOCKS, scale).settings for scale in (Scale(), SCALES[-1]))
    assert full.differences(cut).keys() == {"training.steps", "sampling.steps"}
    assert cut.training.steps == full.training.steps // 1000
    assert cut.sampling.steps == SCALES[-1].sampling
    warm = row_of(FAST, STOCKS, SCALES[-1]).settings
    assert warm.training.warmup < warm.training.steps


@pytest.mark.parametrize("method", EVERY, ids=lambda one: one.name)
def test_without_a_budget_a_method_has_the_settings_that_were_published(method: object) -> None:
    assert row_of(method, STOCKS, Scale()).settings.training.steps == full_updates(method, STOCKS)


def test_a_slower_machine_takes_longer() -> None:
    fast, slow = Machine(1e12), Machine(1e9)
    assert fast.training(1000, 500_000, 64, 25) < slow.training(1000, 500_000, 64, 25)
    assert fast.sampling(1000, 500_000, 100, 25) < slow.sampling(1000, 500_000, 100, 25)
