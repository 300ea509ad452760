"""What recurrent blocks see."""

import torch

from timediff.networks.recurrent import Recurrent


def test_with_a_skip_the_output_sees_the_inputs_and_without_it_the_states_alone() -> None:
    x = torch.randn(2, 5, 3)
    for skip in (False, True):
        block = Recurrent(3, 2, 4, 1, "lstm", skip=skip)
        with torch.no_grad():
            for weight in block.rnn.parameters():
                weight.zero_()  # so that its states are 0
            y, bias = block(x), block.output.bias
            assert torch.allclose(y, (x @ block.output.weight[:, 4:].T if skip else 0 * y) + bias)


def test_it_begins_with_the_states_that_it_is_given() -> None:
    x, before = torch.randn(2, 5, 3), (torch.randn(2, 2, 4), torch.randn(2, 2, 4))
    block = Recurrent(3, 2, 4, 1, "lstm", bidirectional=True)
    states, _ = block.states(x, before)
    assert torch.equal(block(x, before), block.output(states))
    assert not torch.allclose(block(x, before), block(x))
