"""One update: computed whole or in parts it is the same, and a GPU that is full or gone is met with a sentence."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from timediff.ahead import ahead
from timediff.capture import Captured, gpu_failures
from timediff.cohort import Cohort, concatenate
from timediff.config import TrainingSettings, resolve
from timediff.errors import TimeDiffError
from timediff.generators.timediff import TimeDiff
from timediff.networks.inference import fastest
from timediff.randomness import Noise, Share
from timediff.training.ema import EMA
from timediff.training.loop import make_accelerator, make_optimizer
from timediff.training.turns import Turn
from timediff.training.update import Update

BATCH = 24
CPU = torch.device("cpu")


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 1))


def objective(model: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
    """Every kind of draw takes part."""
    x = batch[0] + 0.1 * noise.normal(5) + noise.spread()[:, None] + noise.uniform(5)
    return {"total": model(x[:, None]).square().mean(), "other": x.mean()}


class Limited:
    """The objective on a device that holds so many rows."""

    def __init__(self, rows: int, spared: int = 0) -> None:
        self.rows, self.spared, self.seen = rows, spared, list[int]()

    def __call__(self, model: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
        self.seen.append(len(batch[0]))
        if len(batch[0]) > self.rows and len(self.seen) > self.spared:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return objective(model, batch, noise)


def made(model: nn.Module, turns: tuple[Turn, ...], said: list[str] | None = None, accumulate: int = 1) -> Update:
    settings = TrainingSettings(batch=BATCH, accumulate=accumulate, lr=0.01)
    data = (torch.randn(60, 5, generator=torch.Generator().manual_seed(1)),)
    optimizers = [make_optimizer(turn.weights(model), settings) for turn in turns]
    return Update(
        model, turns, data, optimizers, EMA(model, 0.9), settings,
        seed=3, accelerator=make_accelerator(settings), say=(said if said is not None else []).append,
    )  # fmt: skip


def updated(loss: object, steps: int = 3, accumulate: int = 2) -> tuple[dict[str, Tensor], dict[str, float], list[str]]:
    """Weights after some updates, the losses' means, and what was said."""
    model, said = network(), list[str]()
    update = made(model, (Turn(loss),), said, accumulate)  # type: ignore[arg-type]
    for step in range(steps):
        update(step)
    return model.state_dict(), update.take(), said


@pytest.mark.parametrize(("rows", "spared"), [(12, 0), (7, 0), (1, 0), (12, 1), (12, 3)])
def test_a_batch_that_does_not_fit_is_computed_in_parts_with_the_same_result(rows: int, spared: int) -> None:
    """Whether memory is short at once, or in the second batch of an update."""
    whole, means, quiet = updated(objective)
    loss = Limited(rows, spared)
    parts, part_means, said = updated(loss)
    for name, value in whole.items():
        assert torch.allclose(parts[name], value, atol=1e-6)
    assert part_means == pytest.approx(means, rel=1e-5)
    assert not quiet
    assert all("memory is full" in line for line in said)
    assert loss.seen.count(BATCH) == spared + 1  # and once it is known, it is not tried again


def test_a_device_that_holds_not_even_one_stay_is_named() -> None:
    with pytest.raises(TimeDiffError, match=r"does not hold one stay.*model\.hidden"):
        updated(Limited(0))


def test_losses_are_taken_once() -> None:
    update = made(network(), (Turn(objective),))
    assert update.take() == {}
    update(0)
    assert set(update.take()) == {"total", "other"}
    assert update.take() == {}


def first_and_last() -> tuple[Turn, ...]:
    return Turn(objective, "first", ("0",)), Turn(objective, "last", ("2",), times=2, first=1, end=3)


def test_each_player_moves_its_own_weights_in_its_own_updates() -> None:
    model = network()
    update = made(model, first_and_last())
    for step, (first, last) in enumerate([(True, False), (True, True), (True, True), (True, False)]):
        before = {name: value.clone() for name, value in model.state_dict().items()}
        update(step)
        moved = {
            name.split(".")[0] for name, value in model.state_dict().items() if not torch.equal(value, before[name])
        }
        assert moved == {part for part, moves in (("0", first), ("2", last)) if moves}


def test_a_player_prepares_once_with_all_data_before_its_first_update() -> None:
    seen: list[int] = []

    def begin(model: nn.Module, data: tuple[Tensor, ...]) -> None:
        seen.append(len(data[0]))
        torch.nn.init.constant_(model[2].weight, 7.0)  # type: ignore[index]

    model = network()
    update = made(
        model, (Turn(objective, "first", ("0",)), Turn(objective, "last", ("2",), times=2, first=1, begin=begin))
    )
    for step in range(4):
        update(step)
        assert len(seen) == min(step, 1)
    assert seen == [60]
    assert torch.allclose(model.state_dict()["2.weight"], torch.tensor(7.0), atol=0.2)


def test_losses_of_several_players_go_by_their_names() -> None:
    update = made(network(), first_and_last())
    update(0)
    assert set(update.take()) == {"first", "first_other", "total"}
    update(1)
    taken = update.take()
    assert set(taken) == {"first", "first_other", "last", "last_other", "total"}
    assert taken["total"] == pytest.approx(taken["first"] + taken["last"])


def test_every_turn_has_a_batch_and_noise_of_its_own() -> None:
    seen: list[tuple[Tensor, Tensor]] = []

    def watched(model: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
        seen.append((batch[0], noise.normal()))
        return {"total": model(batch[0][:, None]).square().mean()}

    update = made(network(), (Turn(watched, "a", times=2), Turn(watched, "b")))
    for step in range(2):
        update(step)
    assert len(seen) == 6
    for number, (batch, draw) in enumerate(seen):
        for other, drawn in seen[:number]:
            assert not torch.equal(batch, other)
            assert not torch.equal(draw, drawn)


@pytest.mark.parametrize(("shares", "moves"), [((1.0, 0.0), True), ((1.0, 1.0), False), ((0.0, 0.0), True)])
def test_a_player_who_wishes_to_skip_stays_where_it_is(shares: tuple[float, float], moves: bool) -> None:
    """By the majority of what an update's batches say; momentum does not carry it on either."""
    wishes = iter([0.0, 0.0, *shares, 0.0, 0.0])

    def wishing(model: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
        return {"total": model(batch[0][:, None]).square().mean(), "skip": torch.tensor(next(wishes))}

    model = network()
    update = made(model, (Turn(wishing),), accumulate=2)
    states = [model.state_dict()["0.weight"].clone()]
    for step in range(3):
        update(step)
        states.append(model.state_dict()["0.weight"].clone())
    assert [not torch.equal(a, b) for a, b in pairwise(states)] == [True, moves, True]
    assert "skip" not in update.take()


def test_the_rows_of_a_share_are_those_of_the_whole() -> None:
    def draws(noise: Noise) -> list[Tensor]:
        return [noise.normal(3), noise.uniform(), noise.spread(), noise.integers(9).float(), noise.normal()]

    key = [(0, 1, 2)]
    whole = draws(Noise("training", key, [BATCH], BATCH, CPU))
    drawn: list[Tensor] = []
    noise = Noise("training", key, [BATCH], BATCH, CPU)
    parts = [draws(Share(noise, drawn, slice(start, start + 8))) for start in range(0, BATCH, 8)]
    for number, values in enumerate(whole):
        assert torch.equal(values, torch.cat([part[number] for part in parts]))


def test_another_key_begins_another_stream() -> None:
    noise = Noise("training", [(0, 1)], [4], 4, CPU)
    first = noise.normal(3)
    noise.normal(3)
    noise.rekey([(0, 2)])
    other = noise.normal(3)
    noise.rekey([(0, 1)])
    assert torch.equal(noise.normal(3), first)
    assert not torch.equal(other, first)


def test_without_a_gpu_what_is_captured_is_the_function_itself() -> None:
    calls = []
    captured = Captured(lambda x: calls.append(1) or 2 * x, CPU)
    for _ in range(5):
        assert captured(torch.ones(1)) == 2
    assert len(calls) == 5


def test_a_gpu_that_is_gone_is_a_sentence_and_other_errors_are_our_own() -> None:
    gone = r"the GPU failed or is gone \(CUDA error: unspecified launch failure\)"
    with pytest.raises(TimeDiffError, match=gone), gpu_failures():
        raise RuntimeError("CUDA error: unspecified launch failure\nCompile with …")
    with pytest.raises(RuntimeError, match="shapes"), gpu_failures():
        raise RuntimeError("shapes differ")


def test_a_run_whose_gpu_went_can_be_resumed(icu: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"model.hidden": 4, "training.steps": 9, "training.batch": 16, "training.checkpoint_every": 3}
    settings = resolve("fast", assignments=small)
    whole = TimeDiff(settings=settings).fit(icu, seed=0)
    step = Update.__call__

    def failing(self: Update, number: int) -> None:
        if number == 7:
            raise RuntimeError("CUDA error: device unavailable")
        step(self, number)

    with monkeypatch.context() as patch:
        patch.setattr(Update, "__call__", failing)
        with pytest.raises(TimeDiffError, match="--resume goes on"):
            TimeDiff(settings=settings).fit(icu, seed=0, run=tmp_path / "run")
    resumed = TimeDiff(settings=settings).fit(icu, seed=0, run=tmp_path / "run", resume=True)
    assert resumed.identity == whole.identity


def test_items_computed_ahead_are_the_same_and_errors_come_through() -> None:
    assert list(ahead(iter(range(5)))) == list(range(5))
    assert list(ahead(iter(()))) == []

    def broken():
        yield 1
        raise ValueError("no more")

    coming = ahead(broken())
    assert next(coming) == 1
    with pytest.raises(ValueError, match="no more"):
        next(coming)


def test_a_stay_longer_than_those_learnt_from_is_said(icu: Cohort) -> None:
    settings = resolve("fast", assignments={"model.hidden": 4, "training.steps": 1, "sampling.steps": 3})
    model = TimeDiff(settings=settings).fit(icu, seed=0)
    said: list[str] = []
    list(model.stream(3, length=icu.schema.steps, say=said.append))
    assert not said
    made = list(model.stream(3, length=30, say=said.append))
    assert made[0].schema.steps == 30
    assert "stays of 12 steps" in said[0]


@pytest.mark.parametrize(
    ("times", "told"), [(2, ["1,000", "500"]), (5, ["1,000", "500", "250", "125", "62"]), (11, None)]
)
def test_sampling_that_does_not_fit_is_halved(
    icu: Cohort, monkeypatch: pytest.MonkeyPatch, times: int, told: list[str] | None
) -> None:
    """First the stays that are drawn at once, down to a block; then those of it that the network computes at once."""
    settings = resolve("fast", assignments={"model.hidden": 4, "training.steps": 1, "sampling.steps": 3})
    model = TimeDiff(settings=settings).fit(icu, seed=0)
    whole = model.sample(1700, seed=1, batch=500)
    rnn, said, tries = model.fitted.network.rnn, list[str](), iter(range(times))
    forward = rnn.forward

    def full_at_first(x: Tensor, t: Tensor) -> Tensor:
        if next(tries, None) is not None:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        drawn: Tensor = forward(x, t)
        return drawn

    monkeypatch.setattr(rnn, "forward", full_at_first)
    if told is None:
        with pytest.raises(TimeDiffError, match="does not hold one stay of 12 steps"):
            list(model.stream(1700, seed=1, batch=1700))
        return
    parts = list(model.stream(1700, seed=1, batch=1700, say=said.append))
    assert [len(part) for part in parts] == [500, 500, 500, 200]
    assert [line.split(":")[1].split()[0] for line in said] == told
    assert concatenate(parts).digest() == whole.digest()


def test_a_gpu_that_holds_few_rows_computes_the_same_in_slices() -> None:
    network, device = nn.Linear(3, 3), torch.device("meta")  # stands for a GPU: it is not the CPU
    x = torch.randn(10, 4, 3)
    seen: list[int] = []

    def denoise(part: Tensor, t: Tensor) -> Tensor:
        seen.append(len(part))
        y: Tensor = network(part)
        return y

    few = fastest(denoise, device, 4, rows=4)  # type: ignore[arg-type]
    assert torch.allclose(few(x, torch.zeros(10)), network(x))  # type: ignore[operator]
    assert seen == [4, 4, 2]
