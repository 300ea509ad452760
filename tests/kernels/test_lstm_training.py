"""Triton kernels for training: states and gradients are those of PyTorch's LSTM."""

from pathlib import Path

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from helpers.triton_compiler import fits
from timediff.networks.brnn import BidirectionalRNN

pytest.importorskip("triton", reason="Triton is there for Linux on x86 alone, and with PyTorch for CUDA")
from timediff.kernels.lstm_training import SHAPES, Layer, Shape, TrainingLSTM

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CLOSE = 1e-2 if DEVICE == "cuda" else 1e-5  # a GPU's products are rounded, and its tanh is not exact
KINDS = [torch.float32, torch.bfloat16][: 2 if DEVICE == "cuda" else 1]  # Triton's interpreter does not know bfloat16


def network_of(hidden: int, layers: int = 2, inputs: int = 4, **options: float) -> BidirectionalRNN:
    torch.manual_seed(hidden + layers)
    network = BidirectionalRNN(inputs, hidden, layers, noise_level_input=True, **options).to(DEVICE)  # type: ignore[arg-type]
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(1.5)  # so that gates are not all half open
        network.norm.weight.uniform_(0.5, 2)
        network.norm.bias.normal_()
    return network


def distance(found: Tensor, wanted: Tensor) -> float:
    return float((found.detach() - wanted.detach()).norm() / (wanted.detach().norm() + 1e-6))


@settings(max_examples=12, deadline=None)
@given(
    hidden=st.sampled_from([3, 16, 33, 64, 100]),
    inputs=st.integers(1, 12),
    layers=st.integers(1, 3),
    stays=st.sampled_from([1, 5, 16, 35]),
    length=st.integers(1, 5),
    apart=st.booleans(),
    kind=st.sampled_from(KINDS),
)
@example(hidden=256, inputs=12, layers=2, stays=35, length=25 if DEVICE == "cuda" else 2, apart=True, kind=KINDS[-1])
def test_states_and_all_gradients_are_those_of_the_lstm(
    hidden: int, inputs: int, layers: int, stays: int, length: int, apart: bool, kind: torch.dtype
) -> None:
    network = network_of(hidden, layers, inputs, dropout=0.1 if apart else 0.0).eval()  # layers apart, or in one module
    lstm = TrainingLSTM(network, length, kind)
    x = torch.randn(stays, length, inputs + 64, device=DEVICE, requires_grad=True)
    wanted = torch.randn(stays, length, 2 * hidden, device=DEVICE)
    weights = dict(network.rnn.named_parameters())
    network.rnn.train()  # cuDNN has no way back otherwise
    if apart:
        network.rnn.dropout.eval()

    def states_and_gradients(states: Tensor) -> dict[str, Tensor]:
        gradients = torch.autograd.grad((states * wanted).sum(), [x, *weights.values()])
        return {"states": states, **dict(zip(["inputs", *weights], gradients, strict=True))}

    found, expected = states_and_gradients(lstm.states(x)), states_and_gradients(network.rnn(x)[0])
    for name, one in expected.items():
        assert found[name].shape == one.shape
        assert distance(found[name], one) < CLOSE, name


def test_a_stay_does_not_depend_on_those_beside_it() -> None:
    lstm = TrainingLSTM(network_of(16), 4, torch.float32)
    x = torch.randn(40, 4, 68, device=DEVICE)
    assert torch.allclose(lstm.states(x)[:3], lstm.states(x[:3]), atol=CLOSE)


def test_layers_are_dropped_out_between_as_the_network_says() -> None:
    network = network_of(16, dropout=0.5)
    lstm, x = TrainingLSTM(network, 3, torch.float32), torch.randn(9, 3, 68, device=DEVICE)
    assert not torch.equal(lstm.states(x), lstm.states(x))
    network.eval()
    assert torch.equal(lstm.states(x), lstm.states(x))


def test_building_one_takes_no_random_numbers() -> None:
    network = network_of(16, dropout=0.5)
    state = torch.cuda.get_rng_state if DEVICE == "cuda" else torch.random.get_rng_state
    before = state()
    TrainingLSTM(network, 3, torch.float32)
    assert torch.equal(state(), before)


def test_a_gpu_with_little_shared_memory_takes_smaller_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    from triton.runtime.errors import OutOfResources

    tried: list[Shape] = []

    def apply(x: Tensor, of_inputs: Tensor, bias: Tensor, of_states: Tensor, shape: Shape) -> Tensor:
        tried.append(shape)
        if shape.stages > most:
            raise OutOfResources(200_000, 99_000, "shared memory")
        return whole(x, of_inputs, bias, of_states, shape)

    most, whole = 1, Layer.apply
    monkeypatch.setattr(Layer, "apply", apply)
    assert TrainingLSTM(network_of(8, 1), 3).shape == SHAPES[2]
    assert tried == [*SHAPES]
    most = 0
    with pytest.raises(ValueError, match="no room"):
        TrainingLSTM(network_of(8, 1), 3)


COMPILE = """
from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from timediff.kernels import lstm_training
from timediff.kernels.lstm_inference import OPTIONS

kernels = (
    (lstm_training._forward, ("gates", "weights", "out", "cells"), lambda shape: (shape.rows, shape.stages)),
    (lstm_training._backward, ("gates", "weights", "cells", "wanted", "slopes"),
     lambda shape: (shape.columns, shape.stages_back)),
)
for generation, room in ((80, 166_912), (89, 101_376), (90, 232_448)):
    fit = 0
    for shape in lstm_training.SHAPES:
        shared = []
        for kernel, names, sizes in kernels:
            size, stages = sizes(shape)
            fixed = {"L": 25, "H": 256, "GROUP": lstm_training.group(256), "ROWS": lstm_training.ROWS, "SLICE": size,
                     "STAGES": stages, "EXACT": False}
            kinds = {**dict.fromkeys(names, "*bf16"), "B": "i32", **dict.fromkeys(fixed, "constexpr")}
            aligned = {(place,): [["tt.divisibility", 16]] for place in range(len(names))}
            options = {"num_warps": lstm_training.WARPS, **OPTIONS}
            made = compile(ASTSource(kernel, kinds, fixed, aligned), GPUTarget("cuda", generation, 32), options)
            shared.append(made.metadata.shared)
        fit += max(shared) <= room
    print(generation, fit)
"""


def test_they_compile_for_three_generations_of_gpus_and_some_shape_fits_each(tmp_path: Path) -> None:
    assert fits(COMPILE, tmp_path) == {"80": 3, "89": 2, "90": 3}
