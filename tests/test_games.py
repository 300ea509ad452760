"""Rivals that learn by a game: players want opposite things, and hear of each other what they should."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from small_rivals import columns_of, noise_for, rival
from timediff.codec import Codec
from timediff.cohort import Cohort
from timediff.generators.adversarial import examined, nudged, roughness
from timediff.generators.nextstep import BLUR
from timediff.generators.pforcing import Professor
from timediff.generators.rcgan import holding
from timediff.generators.settings import ForcingModel
from timediff.randomness import Noise
from timediff.training.turns import Turn

pytestmark = pytest.mark.usefixtures("one_thread")


def test_roughness_is_the_squared_norm_of_the_gradient() -> None:
    """Exactly so, on average, for logits that are linear in the series: wᵀ x has the gradient w."""
    stays, weights = 20_000, torch.tensor([[0.5, -2.0], [1.0, 0.25], [0.0, 3.0]])
    series = torch.randn(2 * stays, 3, 2, generator=torch.Generator().manual_seed(0))
    moved = nudged(series, Noise("training", [(0, 0, 0)], [stays], stays, torch.device("cpu")))
    logits = [(one.double() * weights).sum(dim=(1, 2))[:, None] for one in (series, moved)]
    assert roughness(*logits).item() == pytest.approx(weights.square().sum().item(), rel=0.03)
    assert roughness(logits[0], logits[0]) == 0


def test_a_discriminator_that_need_not_be_smooth_is_asked_once() -> None:
    series, seen = torch.randn(6, 3, 2), list[int]()

    def discriminator(x: torch.Tensor) -> torch.Tensor:
        seen.append(len(x))
        return x.sum(dim=(1, 2))[:, None]

    noise = Noise("training", [(0, 0, 0)], [3], 3, torch.device("cpu"))
    (plain, none), (same, rough) = (examined(discriminator, series, noise, smooth) for smooth in (0.0, 1.0))
    assert seen == [6, 12]
    assert torch.equal(plain, same)
    assert none == 0
    assert rough > 0


@given(numbers=st.integers(1, 9), steps=st.integers(1, 6), share=st.floats(0, 1))
def test_held_noise_is_that_of_the_first_step_and_the_rest_as_drawn(numbers: int, steps: int, share: float) -> None:
    z = torch.randn(4, steps, numbers)
    made, held = holding(z, share), round(share * numbers)
    assert made.shape == z.shape
    assert torch.equal(made[..., :held], z[:, :1, :held].repeat(1, steps, 1))
    assert torch.equal(made[..., held:], z[..., held:])


def test_p_forcing_sees_real_steps_where_it_was_forced_and_its_own_where_it_ran_freely(mixed: Cohort) -> None:
    columns, x = columns_of(mixed)
    network = Professor(columns, ForcingModel(), 8)
    network.next.begin(x)
    x = x[:10]
    _, behaviour = network.both(x, noise_for(10))
    forced, free = behaviour[..., network.next.rnn.width :].chunk(2)
    assert torch.allclose(forced, x[:, 1:], atol=6 * BLUR)
    assert torch.equal(forced[..., columns.continuous :], x[:, 1:, columns.continuous :])
    assert not torch.allclose(free, x[:, 1:], atol=6 * BLUR)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_supervisor_has_its_beginning_with_and_without_a_phase_of_its_own(share: float, mixed: Cohort) -> None:
    model = rival("timegan", training__steps=2, training__ema=0.0, phases__embedding=0.0, phases__supervised=share)
    supervisor = model.fit(mixed, seed=0).fitted.network.get_submodule("supervisor")
    assert supervisor.start.abs().max() > 0.1  # without a beginning two updates of 0.001 would be all


def players(model: Any, cohort: Cohort) -> tuple[nn.Module, dict[str, Turn], tuple[torch.Tensor, torch.Tensor]]:
    """An untrained network, the turns of those who teach it, and what they see."""
    codec = Codec.fit(cohort, model.settings.codec)
    model.settings = model._sized(cohort, codec)
    network, encoded = model._network(codec), codec.encode(cohort)
    turns = {turn.name: turn for turn in model._turns(codec, torch.device("cpu"))}
    return network, turns, (torch.from_numpy(encoded.continuous), torch.from_numpy(encoded.discrete))


@pytest.mark.parametrize("name", ["timegan", "rcgan", "crnngan"])
def test_players_pull_in_opposite_directions(name: str, mixed: Cohort) -> None:
    """A discriminator that learns alone is less easily fooled, and a generator that learns alone fools it again."""
    network, turns, data = players(rival(name, adversarial__smooth=0.1), mixed)

    def losses(turn: str) -> dict[str, torch.Tensor]:
        return turns[turn].objective(network, data, noise_for(len(data[0])))

    def fooled_after(turn: str, updates: int) -> float:
        optimizer = torch.optim.Adam(network.get_submodule(turn).parameters(), lr=0.01)
        for _ in range(updates):
            network.zero_grad()
            losses(turn)["total"].backward()
            optimizer.step()
        found = losses("generator")
        return found.get("fooled", found["total"]).item()

    before = fooled_after("generator", 0)
    wary = fooled_after("discriminator", 40)
    assert wary > before + 0.2
    assert fooled_after("generator", 40) < wary - 0.2


@pytest.mark.parametrize("listen", [0.0, 1.0])
def test_p_forcing_hears_its_discriminator_while_that_is_right_often_enough(listen: float, mixed: Cohort) -> None:
    network, turns, data = players(rival("pforcing", adversarial__listen=listen), mixed)

    def slope(loss: str) -> torch.Tensor:
        network.zero_grad()
        turns["generator"].objective(network, data, noise_for(len(data[0])))[loss].backward()
        return torch.cat([weight.grad.flatten() for weight in turns["generator"].weights(network)])  # type: ignore[union-attr]

    expected = slope("surprise") + (slope("fooled") if listen == 0 else 0)  # it is never right in more than all cases
    assert slope("fooled").norm() > 0
    assert torch.allclose(slope("total"), expected, atol=1e-6)


@pytest.mark.parametrize("freeze", [0.0, 1.0])
def test_c_rnn_gan_freezes_whoever_is_ahead(freeze: float, mixed: Cohort) -> None:
    network, turns, data = players(rival("crnngan", adversarial__freeze=freeze), mixed)
    with torch.no_grad():
        waits = [turn.objective(network, data, noise_for(len(data[0])))["skip"].item() for turn in turns.values()]
    assert sum(waits) == freeze


def test_c_rnn_gan_is_fed_with_its_last_output(mixed: Cohort) -> None:
    network, _, _ = players(rival("crnngan"), mixed)
    network.generate(*network.seeds(noise_for(5), 6), length=6).sum().backward()  # type: ignore[operator]
    slope = network.generator.rnn.weight_ih_l0.grad  # type: ignore[union-attr]
    assert slope[:, network.noise :].abs().max() > 0  # type: ignore[index,misc]


def test_rcgan_is_told_the_label(mixed: Cohort) -> None:
    network, _, _ = players(rival("rcgan"), mixed)
    z, label = network.seeds(noise_for(5), 6)  # type: ignore[operator]
    with torch.no_grad():
        made = [network.generate(z, torch.full_like(label, of), length=6) for of in (0, 1)]  # type: ignore[operator]
    different = (made[0] - made[1]).abs().amax(dim=(0, 1)) > 1e-4
    assert different.all()  # and not only the label's own column


@given(updates=st.integers(1, 300), embedding=st.floats(0, 0.99), share=st.floats(0, 1))
def test_the_last_updates_of_timegan_are_of_all_players(
    updates: int, embedding: float, share: float, mixed: Cohort
) -> None:
    supervised = (0.999 - embedding) * share
    changes = {"training__steps": updates, "phases__embedding": embedding, "phases__supervised": supervised}
    model = rival("timegan", **changes)
    turns = model._turns(Codec.fit(mixed, model.settings.codec), torch.device("cpu"))
    assert [turn.name for turn in turns if turn.at(updates - 1)] == ["generator", "embedder", "discriminator"]
    assert all(any(turn.at(step) for turn in turns) for step in range(updates))
    assert sum(turn.begin is not None and any(turn.at(step) for step in range(updates)) for turn in turns) == 1


def test_timegans_supervisor_begins_with_a_few_stays_at_a_time(mixed: Cohort) -> None:
    """So that what a GPU's memory holds in training it holds here too."""
    network, turns, data = players(rival("timegan"), mixed)
    seen: list[int] = []
    embedder = network.get_submodule("embedder")
    embedder.register_forward_pre_hook(lambda _, given: seen.append(len(given[0])))
    begin = turns["supervised"].begin
    assert begin is not None
    begin(network, data)
    assert sum(seen) == len(mixed)
    assert max(seen) <= 64


def test_rcgan_draws_labels_at_their_rate(mixed: Cohort) -> None:
    made = rival("rcgan", training__steps=1).fit(mixed, seed=0).sample(4000, seed=1)
    assert np.mean(made.label) == pytest.approx(np.mean(mixed.label), abs=0.03)
