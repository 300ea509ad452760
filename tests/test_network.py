"""The paper's network: its size, its shapes, its ear for the diffusion step; and what recurrent blocks see."""

import pytest
import torch

from timediff.networks.brnn import BidirectionalRNN
from timediff.networks.embedding import sinusoidal
from timediff.networks.recurrent import Recurrent


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


def test_it_hears_the_diffusion_step() -> None:
    network, x = BidirectionalRNN(5, 8), torch.randn(1, 9, 5)
    assert not torch.allclose(network(x, torch.tensor([3])), network(x, torch.tensor([4])))


def test_normalised_states_are_scaled_and_shifted_by_the_step_and_then_read() -> None:
    network = BidirectionalRNN(3, 5, early=True)
    with torch.no_grad():
        network.norm.weight.uniform_(0.5, 2)
        network.norm.bias.normal_()
    x, t = torch.randn(4, 6, 3), torch.randint(0, 1000, (4,))
    told = network.embedding(t)
    scale, shift, early = told[:, None].split([10, 10, 64], dim=-1)
    states, _ = network.rnn(torch.cat([x, early.expand(-1, 6, -1)], dim=-1))
    expected = network.output(network.norm(states) * (1 + scale) + shift)
    assert torch.allclose(network(x, t), expected, atol=1e-5)


def test_steps_have_different_embeddings() -> None:
    embedded = sinusoidal(torch.arange(1000), 64)
    assert torch.cdist(embedded, embedded).fill_diagonal_(1).min() > 0.01


def test_with_a_skip_the_output_sees_the_inputs_and_without_it_the_states_alone() -> None:
    x = torch.randn(2, 5, 3)
    for skip in (False, True):
        block = Recurrent(3, 2, 4, 1, "lstm", skip=skip)
        with torch.no_grad():
            for weight in block.rnn.parameters():
                weight.zero_()  # so that its states are 0
            y, bias = block(x), block.output.bias
            assert torch.allclose(y, (x @ block.output.weight[:, 4:].T if skip else 0 * y) + bias)
