"""Triton kernels for sampling: they compute what the network computes, on any GPU that has room for them."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from helpers.triton_compiler import fits
from timediff.networks.brnn import BidirectionalRNN

pytest.importorskip("triton", reason="Triton is there for Linux on x86 alone, and with PyTorch for CUDA")
from timediff.kernels import lstm_inference
from timediff.kernels.lstm_inference import FusedRNN, fused

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def example(network: BidirectionalRNN, inputs: int, stays: int, length: int) -> tuple[BidirectionalRNN, Tensor, Tensor]:
    x, t = torch.randn(stays, length, inputs), 1000 * torch.rand(stays)
    return network.to(DEVICE).eval(), x.to(DEVICE), t.to(DEVICE)


@settings(max_examples=12, deadline=None)
@given(
    hidden=st.sampled_from([3, 16, 33, 64, 100]),
    inputs=st.integers(1, 20),
    outputs=st.integers(1, 20),
    layers=st.integers(1, 3),
    stays=st.sampled_from([1, 5, 130]),
    length=st.integers(1, 6),
    noise_level_input=st.booleans(),
    dropout=st.sampled_from([0.0, 0.1]),
)
@torch.no_grad()
def test_they_compute_what_the_network_computes(
    hidden: int,
    inputs: int,
    outputs: int,
    layers: int,
    stays: int,
    length: int,
    noise_level_input: bool,
    dropout: float,
) -> None:
    torch.manual_seed(hidden + inputs + stays)
    options = {"outputs": outputs, "dropout": dropout, "noise_level_input": noise_level_input}
    network, x, t = example(BidirectionalRNN(inputs, hidden, layers, **options), inputs, stays, length)
    for weight in network.parameters():
        weight.mul_(1.5)  # so that gates are not all half open
    network.norm.weight.uniform_(0.5, 2)
    network.norm.bias.normal_()
    wanted, found = network(x, t), fused(network)(x, t)
    assert found.shape == wanted.shape
    assert (found.float() - wanted).norm() < 3e-3 * wanted.norm() + 1e-3


@torch.no_grad()
def test_a_stay_does_not_depend_on_those_beside_it() -> None:
    network, x, t = example(BidirectionalRNN(4, 16, noise_level_input=True), 4, 140, 5)
    one = fused(network)
    assert torch.allclose(one(x, t)[:3], one(x[:3], t[:3]), atol=2e-3)


@pytest.mark.parametrize(
    ("network", "why"),
    [
        (BidirectionalRNN(4, 8, cell="gru"), "the kernels are for LSTMs"),
        (BidirectionalRNN(4, 8, cell="gru", dropout=0.1), "the kernels are for LSTMs"),
        (BidirectionalRNN(4, 300), "for LSTMs of at most 256 units"),
        (torch.nn.Linear(3, 3), "no kernels cover a Linear"),
    ],
)
def test_networks_that_they_do_not_cover_are_refused(network: torch.nn.Module, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        fused(network)


def test_a_network_that_computes_something_else_is_refused() -> None:
    class Other(BidirectionalRNN):
        def forward(self, x: Tensor, t: Tensor) -> Tensor:
            return 2 * super().forward(x, t)

    with pytest.raises(ValueError, match="no kernels cover a Other"):
        fused(Other(4, 8))


def test_weights_beyond_float16_are_refused() -> None:
    large = BidirectionalRNN(4, 8)
    with torch.no_grad():
        large.rnn.weight_hh_l0[0, 0] = 1e6
    with pytest.raises(ValueError, match="too large for float16"):
        fused(large)


def test_a_gpu_with_little_shared_memory_takes_smaller_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    from triton.runtime.errors import OutOfResources

    taken: list[tuple[int, ...]] = []

    def recur(gates: Tensor, weights: Tensor, *shape: int) -> Tensor:
        taken.append(shape)
        if shape[0] > 64:
            raise OutOfResources(200_000, 99_000, "shared memory")
        return whole(gates, weights, *shape)

    whole = lstm_inference.recur
    monkeypatch.setattr(lstm_inference, "recur", recur)
    network, x, t = example(BidirectionalRNN(4, 8), 4, 3, 5)
    with torch.no_grad():
        one = FusedRNN(network)
        one(x, t)
        assert taken == [*lstm_inference.SHAPES[:3], lstm_inference.SHAPES[2]]  # the second layer asks no more
        monkeypatch.setattr(one, "shapes", [lstm_inference.SHAPES[0]])
        with pytest.raises(OutOfResources):
            one(x, t)


COMPILE = """
from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from timediff.kernels import lstm_inference

kinds = {"gates": "*fp16", "weights": "*fp16", "out": "*fp16", "cells": "*fp32", "B": "i32"}
for generation, room in ((80, 166_912), (89, 101_376), (90, 232_448)):
    fit = 0
    for rows, units, warps, stages in lstm_inference.SHAPES:
        fixed = {"L": 25, "H": 256, "ROWS": rows, "UNITS": units, "STAGES": stages, "EXACT": False}
        source = ASTSource(lstm_inference._layer, {**kinds, **dict.fromkeys(fixed, "constexpr")}, fixed)
        options = {"num_warps": warps, **lstm_inference.OPTIONS}
        kernel = compile(source, target=GPUTarget("cuda", generation, 32), options=options)
        fit += kernel.metadata.shared <= room
    print(generation, fit)
"""


def test_they_compile_for_three_generations_of_gpus_and_some_shape_fits_each(tmp_path: Path) -> None:
    found = fits(COMPILE, tmp_path)
    assert all(found[generation] >= 1 for generation in ("80", "89", "90"))
    assert found["90"] == len(lstm_inference.SHAPES)
