"""Kernels of our own that learn: states and gradients are those of PyTorch's LSTM, and without them it goes on."""

import copy
import sys
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

import timediff as td
from kernels import fits
from timediff.config import resolve
from timediff.generators import learnt
from timediff.networks.brnn import BidirectionalRNN

pytest.importorskip("triton", reason="Triton is there for Linux on x86 alone, and with PyTorch for CUDA")
from timediff.networks import learning

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CLOSE = 1e-2 if DEVICE == "cuda" else 1e-5  # a GPU's products are rounded, and its tanh is not exact
KINDS = [torch.float32, torch.bfloat16][: 2 if DEVICE == "cuda" else 1]  # Triton's interpreter does not know bfloat16


def network_of(hidden: int, layers: int = 2, inputs: int = 4, **options: float) -> BidirectionalRNN:
    torch.manual_seed(hidden + layers)
    network = BidirectionalRNN(inputs, hidden, layers, early=True, **options).to(DEVICE)  # type: ignore[arg-type]
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
    learner = learning.Learner(network, length, kind)
    x = torch.randn(stays, length, inputs + 64, device=DEVICE, requires_grad=True)
    wanted = torch.randn(stays, length, 2 * hidden, device=DEVICE)
    weights = dict(network.rnn.named_parameters())
    network.rnn.train()  # cuDNN has no way back otherwise
    if apart:
        network.rnn.dropout.eval()

    def states_and_gradients(states: Tensor) -> dict[str, Tensor]:
        gradients = torch.autograd.grad((states * wanted).sum(), [x, *weights.values()])
        return {"states": states, **dict(zip(["inputs", *weights], gradients, strict=True))}

    found, expected = states_and_gradients(learner(x)), states_and_gradients(network.rnn(x)[0])
    for name, one in expected.items():
        assert found[name].shape == one.shape
        assert distance(found[name], one) < CLOSE, name


def test_a_stay_does_not_depend_on_those_beside_it() -> None:
    learner = learning.Learner(network_of(16), 4, torch.float32)
    x = torch.randn(40, 4, 68, device=DEVICE)
    assert torch.allclose(learner(x)[:3], learner(x[:3]), atol=CLOSE)


def test_layers_are_dropped_out_between_as_the_network_says() -> None:
    network = network_of(16, dropout=0.5)
    learner, x = learning.Learner(network, 3, torch.float32), torch.randn(9, 3, 68, device=DEVICE)
    assert not torch.equal(learner(x), learner(x))
    network.eval()
    assert torch.equal(learner(x), learner(x))


def test_they_are_for_rounded_training_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    network, said = network_of(16), list[str]()
    network.learn_by_kernels(3, said.append)
    assert isinstance(network.learner, learning.Learner)
    assert network.learner.kind == torch.bfloat16
    assert not said
    x, t = torch.randn(5, 3, 4, device=DEVICE), torch.rand(5, device=DEVICE)
    exact = network(x, t)
    calls: list[Tensor] = []
    learner = learning.Learner(network, 3, KINDS[-1])
    monkeypatch.setattr(network, "learner", lambda x: calls.append(x) or learner(x))
    assert torch.equal(network(x, t), exact)
    assert not calls
    with torch.autocast(DEVICE, torch.bfloat16):
        rounded = network(x, t)
    assert len(calls) == 1
    assert distance(rounded.float(), exact) < 0.03
    gradients = [
        torch.autograd.grad(one.float().square().sum(), list(network.parameters())) for one in (rounded, exact)
    ]
    for found, wanted in zip(*gradients, strict=True):
        assert distance(found, wanted) < 0.05


def test_the_learner_of_a_copy_is_of_its_own_weights() -> None:
    network = network_of(16)
    network.learner = learning.Learner(network, 3, torch.float32)
    other, x = copy.deepcopy(network), torch.randn(5, 3, 68, device=DEVICE)
    assert other.learner is not None
    assert torch.equal(other.learner(x), network.learner(x))
    with torch.no_grad():
        next(network.rnn.parameters()).add_(1)
    assert not torch.equal(other.learner(x), network.learner(x))


def test_building_one_draws_nothing() -> None:
    network = network_of(16, dropout=0.5)
    state = torch.cuda.get_rng_state if DEVICE == "cuda" else torch.random.get_rng_state
    before = state()
    learning.Learner(network, 3, torch.float32)
    assert torch.equal(state(), before)


@pytest.mark.parametrize("why", ["no Triton", "GRU", "300 units", "a kernel that fails"])
def test_without_them_rounded_training_goes_on_by_pytorch(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    network = BidirectionalRNN(4, 300 if "units" in why else 8, cell="gru" if why == "GRU" else "lstm").to(DEVICE)
    if why == "no Triton":
        monkeypatch.setitem(sys.modules, "timediff.networks.learning", None)
    if why == "a kernel that fails":
        monkeypatch.setattr(learning, "_forward", None)
    said: list[str] = []
    network.learn_by_kernels(5, said.append)
    assert len(said) == 1
    assert said[0].startswith("the RNN learns by cuDNN: ")
    with torch.autocast(DEVICE, torch.bfloat16):
        network(torch.randn(3, 5, 4, device=DEVICE), torch.rand(3, device=DEVICE)).float().sum().backward()
    assert all(weight.grad is not None for weight in network.parameters())


def test_a_gpu_with_little_shared_memory_takes_smaller_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    from triton.runtime.errors import OutOfResources

    tried: list[learning.Shape] = []

    def apply(x: Tensor, of_inputs: Tensor, bias: Tensor, of_states: Tensor, shape: learning.Shape) -> Tensor:
        tried.append(shape)
        if shape.stages > most:
            raise OutOfResources(200_000, 99_000, "shared memory")
        return whole(x, of_inputs, bias, of_states, shape)

    most, whole = 1, learning.Layer.apply
    monkeypatch.setattr(learning.Layer, "apply", apply)
    assert learning.Learner(network_of(8, 1), 3).shape == learning.SHAPES[2]
    assert tried == [*learning.SHAPES]
    most = 0
    with pytest.raises(ValueError, match="no room"):
        learning.Learner(network_of(8, 1), 3)


@pytest.mark.parametrize(
    ("precision", "kernels", "asked"), [("bf16", True, [7]), ("bf16", False, []), ("no", True, [])]
)
def test_fit_asks_for_them_when_products_are_rounded_unless_told_not_to(
    precision: str, kernels: bool, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    AcceleratorState._reset_state(reset_partial_state=False)  # which keeps the first precision of a process
    accelerator = Accelerator(mixed_precision=precision, cpu=True)
    found: list[int] = []
    monkeypatch.setattr(learnt, "make_accelerator", lambda settings: accelerator)
    monkeypatch.setattr(BidirectionalRNN, "learn_by_kernels", lambda self, length, say: found.append(length))
    changes = {"training.steps": 1, "training.kernels": kernels, "model.hidden": 4}
    td.TimeDiff(settings=resolve("fast", assignments=changes)).fit(td.simulate(20, steps=7, seed=0), seed=0)
    assert found == asked


COMPILE = """
from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from timediff.networks import learning
from timediff.networks.fused import OPTIONS

kernels = (
    (learning._forward, ("gates", "weights", "out", "cells"), lambda shape: (shape.rows, shape.stages)),
    (learning._backward, ("gates", "weights", "cells", "wanted", "slopes"),
     lambda shape: (shape.columns, shape.stages_back)),
)
for generation, room in ((80, 166_912), (89, 101_376), (90, 232_448)):
    fit = 0
    for shape in learning.SHAPES:
        shared = []
        for kernel, names, sizes in kernels:
            size, stages = sizes(shape)
            fixed = {"L": 25, "H": 256, "GROUP": learning.group(256), "ROWS": learning.ROWS, "SLICE": size,
                     "STAGES": stages, "EXACT": False}
            kinds = {**dict.fromkeys(names, "*bf16"), "B": "i32", **dict.fromkeys(fixed, "constexpr")}
            aligned = {(place,): [["tt.divisibility", 16]] for place in range(len(names))}
            options = {"num_warps": learning.WARPS, **OPTIONS}
            made = compile(ASTSource(kernel, kinds, fixed, aligned), GPUTarget("cuda", generation, 32), options)
            shared.append(made.metadata.shared)
        fit += max(shared) <= room
    print(generation, fit)
"""


def test_they_compile_for_three_generations_of_gpus_and_some_shape_fits_each(tmp_path: Path) -> None:
    assert fits(COMPILE, tmp_path) == {"80": 3, "89": 2, "90": 3}
