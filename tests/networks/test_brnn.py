"""The paper's network: its size, its shapes, and how it is conditioned on the noise level."""

import pytest
import torch

from timediff.networks.brnn import INPUT_COLUMNS, BidirectionalRNN, DropoutRNN


def test_parameter_count_of_the_mimic3_network() -> None:
    network = BidirectionalRNN(7 + 8 * 2, 92)
    assert sum(p.numel() for p in network.parameters()) == 472_351


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("length", [1, 7, 300])
def test_any_length(cell: str, length: int) -> None:
    network = BidirectionalRNN(5, 8, cell=cell)
    assert network(torch.randn(3, length, 5), torch.tensor([0, 5, 999])).shape == (3, length, 5)


def test_every_step_sees_the_whole_series() -> None:
    network, x = BidirectionalRNN(5, 8), torch.randn(1, 9, 5, requires_grad=True)
    network(x, torch.tensor([3]))[0, 4].sum().backward()
    assert (x.grad.abs().sum(-1) > 0).all()


def test_it_depends_on_the_diffusion_step() -> None:
    network, x = BidirectionalRNN(5, 8), torch.randn(1, 9, 5)
    assert not torch.allclose(network(x, torch.tensor([3])), network(x, torch.tensor([4])))


@pytest.mark.parametrize("noise_level_input", [False, True])
def test_normalised_states_are_scaled_and_shifted_by_the_step_and_then_read(noise_level_input: bool) -> None:
    network, extra = BidirectionalRNN(3, 5, noise_level_input=noise_level_input), 64 if noise_level_input else 0
    with torch.no_grad():
        network.norm.weight.uniform_(0.5, 2)
        network.norm.bias.normal_()
    x, t = torch.randn(4, 6, 3), torch.randint(0, 1000, (4,))
    scale, shift, columns = network.embedding(t)[:, None].split([10, 10, extra], dim=-1)
    states, _ = network.rnn(torch.cat([x, columns.expand(-1, 6, -1)], dim=-1))
    normal = torch.nn.functional.layer_norm(states, (10,), network.norm.weight, network.norm.bias)
    expected = network.output(normal * (1 + scale) + shift)
    assert torch.allclose(network(x, t), expected, atol=1e-5)


def test_the_conditioning_is_the_input_and_scale_and_shift() -> None:
    network, x, t = BidirectionalRNN(3, 5, noise_level_input=True), torch.randn(4, 6, 3), torch.rand(4)
    seen, scale, shift = network.condition(x, t)
    assert seen.shape == (4, 6, 3 + INPUT_COLUMNS)
    assert torch.equal(seen[..., :3], x)
    assert (seen[..., 3:] == seen[:, :1, 3:]).all()
    assert torch.equal(torch.cat([scale, shift, seen[:, 0, 3:]], dim=1), network.embedding(t))


def test_layers_are_dropped_out_between_as_pytorchs_stream_says() -> None:
    """Between layers and not before the first; nothing when the network is evaluated."""
    torch.manual_seed(0)
    network, x, t = BidirectionalRNN(3, 5, dropout=0.5), torch.randn(4, 6, 3), torch.rand(4)
    assert isinstance(network.rnn, DropoutRNN)
    outputs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        outputs.append(network(x, t))
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[0], outputs[2])
    network.eval()
    assert torch.equal(network(x, t), network(x, t))
    first, second = network.rnn.layers
    assert torch.equal(network.rnn(x)[0], second(first(x)[0])[0])
    one = BidirectionalRNN(3, 5, 1, dropout=0.5).rnn
    assert torch.equal(one(x)[0], one(x)[0])
