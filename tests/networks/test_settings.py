"""Networks by name: settings build them, and a network that others register is as good as ours."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from helpers.denoisers import stays_of, training_noise
from timediff.data.batch import Batch, Layout
from timediff.diffusion.settings import PROCESSES
from timediff.errors import TimeDiffError
from timediff.networks import ode
from timediff.networks.brnn import BidirectionalRNN
from timediff.networks.cde import NeuralCDE
from timediff.networks.ode import ODESolver
from timediff.networks.settings import NETWORKS, BRNNSettings, CDESettings, NetworkSettings


class PerStep(nn.Module):
    """Every step alone, with the noise level beside it."""

    def __init__(self, inputs: int, outputs: int, units: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs + 1, units), nn.SiLU(), nn.Linear(units, outputs))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        level = (t.to(x.dtype) / 1000)[:, None, None].expand(-1, x.shape[1], 1)
        return self.layers(torch.cat([x, level], dim=-1))


@pytest.fixture
def per_step(monkeypatch: pytest.MonkeyPatch) -> str:
    """A network that a test registers, by its name."""
    monkeypatch.setattr(NETWORKS, "_parts", dict(NETWORKS._parts))

    @NETWORKS.register("per-step")
    @dataclass(frozen=True)
    class PerStepSettings(NetworkSettings):
        network: str = "per-step"
        units: int = 16

        def build(self, inputs: int, outputs: int) -> nn.Module:
            return PerStep(inputs, outputs, self.units)

    return "per-step"


def test_ours_is_the_papers() -> None:
    assert NETWORKS("brnn") is BRNNSettings
    assert NetworkSettings.choose("brnn") is BRNNSettings
    assert BRNNSettings().network == "brnn"


def test_an_unknown_name_says_which_there_are(per_step: str) -> None:
    with pytest.raises(TimeDiffError, match=r"no network 'brn'; did you mean brnn\? The networks are brnn, .*per-step"):
        NETWORKS("brn")


def test_another_of_the_same_name_is_refused() -> None:
    with pytest.raises(TimeDiffError, match="there is a network 'brnn' already"):
        NETWORKS.register("brnn")(NetworkSettings)


def test_settings_build_the_network_that_they_describe() -> None:
    network = BRNNSettings(cell="gru", hidden=6, layers=3, dropout=0.25, noise_level_input=True).build(5, 7)
    assert isinstance(network, BidirectionalRNN)
    assert [type(layer) for layer in network.rnn.layers] == [nn.GRU] * 3
    assert network.rnn.layers[0].input_size == 5 + 64
    assert network.states == 12
    assert network.dropout.p == network.rnn.dropout.p == 0.25
    assert network(torch.randn(2, 4, 5), torch.rand(2)).shape == (2, 4, 7)


def test_settings_build_the_cde_that_they_describe() -> None:
    settings = CDESettings(hidden=6, field_layers=2, field_width=9, solver="midpoint", solver_steps=4)
    network = settings.build(5, 7)
    assert isinstance(network, NeuralCDE)
    assert network.solver == ODESolver("midpoint", 0.25)
    sizes = [layer.weight.shape for layer in (*network.field.layers, network.field.output, network.output)]
    assert sizes == [(9, 6), (9, 9), (6 * (5 + 1), 9), (7, 6)]
    assert network(torch.randn(2, 4, 5), torch.rand(2)).shape == (2, 4, 7)
    narrow = CDESettings(hidden=6).build(5, 7)
    assert [layer.weight.shape for layer in narrow.field.layers] == [(6, 6)]


def test_the_cde_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ode, "find_spec", lambda name: None)
    with pytest.raises(TimeDiffError, match=r"model\.network = 'cde' needs torchdiffeq.*'timediff-icu\[baselines\]'"):
        CDESettings(hidden=6).build(5, 7)


@pytest.mark.parametrize("settings", [BRNNSettings, CDESettings])
def test_a_width_is_set_where_it_is_unset(settings: type[BRNNSettings] | type[CDESettings]) -> None:
    assert settings().width is None
    assert settings().sized(64).width == 64
    assert settings(hidden=8).sized(64).width == 8
    with pytest.raises(ValueError, match=r"model\.hidden is unset"):
        settings().build(3, 3)


def test_what_is_out_of_range_is_said() -> None:
    assert BRNNSettings().problems() == []
    said = " ".join(BRNNSettings(layers=0, hidden=0, dropout=1.0).problems())
    assert all(key in said for key in ("model.layers", "model.hidden", "model.dropout"))
    assert CDESettings().problems() == []
    found = CDESettings(hidden=0, field_layers=0, field_width=0, solver_steps=2000).problems()
    keys = ("model.hidden", "model.field_width", "model.field_layers", "model.solver_steps")
    assert all(one.startswith(key) for one, key in zip(found, keys, strict=True))


def test_settings_without_a_network_say_so() -> None:
    with pytest.raises(NotImplementedError, match="NetworkSettings does not say how to build its network"):
        NetworkSettings().build(3, 3)


@pytest.mark.parametrize(("process", "sampler"), [("ddpm", "ddim"), ("ddpm", "ancestral"), ("cascade", "multistep")])
@pytest.mark.parametrize("name", ["brnn", "cde", "per-step"])
def test_any_network_trains_and_samples_in_any_process(name: str, process: str, sampler: str, per_step: str) -> None:
    torch.manual_seed(0)
    settings = NETWORKS(name)().sized(8)
    diffusion = PROCESSES(process)().build(Layout.of(2, (2, 3), (True, False)), settings.build)
    c = torch.stack([torch.ones(6, 5).long(), torch.arange(30).reshape(6, 5) % 3], dim=-1)
    losses = diffusion.loss(Batch.of(torch.rand(6, 5, 2) * 2 - 1, c), training_noise(6))
    losses.total.backward()
    weights = list(diffusion.denoiser.parameters())
    assert type(diffusion.denoiser) is {"brnn": BidirectionalRNN, "cde": NeuralCDE, "per-step": PerStep}[name]
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in weights)
    assert any((weight.grad != 0).any() for weight in weights)
    with torch.inference_mode():
        sampled = diffusion.sample(*stays_of(7, 4), sampler=sampler, steps=6)
    assert sampled.continuous.shape == (7, 4, 2)
    assert sampled.continuous.isfinite().all()
    assert sampled.discrete.shape == (7, 4, 2)
    assert (sampled.discrete < torch.tensor([2, 3])).all()
