"""Kernels of our own: they compute what the network computes, and where they cannot, it goes on without them."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kernels import fits
from timediff.networks import inference
from timediff.networks.brnn import BidirectionalRNN

pytest.importorskip("triton", reason="Triton is there for Linux on x86 alone, and with PyTorch for CUDA")
from timediff.networks import fused

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
    early=st.booleans(),
    dropout=st.sampled_from([0.0, 0.1]),
)
@torch.no_grad()
def test_they_compute_what_the_network_computes(
    hidden: int, inputs: int, outputs: int, layers: int, stays: int, length: int, early: bool, dropout: float
) -> None:
    torch.manual_seed(hidden + inputs + stays)
    network, x, t = example(
        BidirectionalRNN(inputs, hidden, layers, outputs=outputs, early=early, dropout=dropout), inputs, stays, length
    )
    for weight in network.parameters():
        weight.mul_(1.5)  # so that gates are not all half open
    network.norm.weight.uniform_(0.5, 2)
    network.norm.bias.normal_()
    wanted, found = network(x, t), fused.FusedRNN(network)(x, t)
    assert found.shape == wanted.shape
    assert (found.float() - wanted).norm() < 3e-3 * wanted.norm() + 1e-3


@torch.no_grad()
def test_a_stay_does_not_depend_on_those_beside_it() -> None:
    network, x, t = example(BidirectionalRNN(4, 16, early=True), 4, 140, 5)
    one = fused.FusedRNN(network)
    assert torch.allclose(one(x, t)[:3], one(x[:3], t[:3]), atol=2e-3)


def test_networks_that_they_do_not_cover_are_refused() -> None:
    for network in (BidirectionalRNN(4, 8, cell="gru"), BidirectionalRNN(4, 300), torch.nn.Linear(3, 3)):
        with pytest.raises(ValueError, match="kernels of our own are for LSTMs"):
            fused.FusedRNN(network)
    large = BidirectionalRNN(4, 8)
    with torch.no_grad():
        large.rnn.weight_hh_l0[0, 0] = 1e6
    with pytest.raises(ValueError, match="too large for float16"):
        fused.FusedRNN(large)


@pytest.mark.parametrize("why", ["no Triton", "a network they do not cover", "a kernel that fails"])
@torch.no_grad()
def test_without_them_it_goes_on_by_the_network_itself(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    network, x, t = example(BidirectionalRNN(4, 8, cell="gru" if "cover" in why else "lstm"), 4, 3, 5)
    if why == "no Triton":
        monkeypatch.setitem(sys.modules, "timediff.networks.fused", None)
    if why == "a kernel that fails":
        monkeypatch.setattr(fused, "recur", lambda *_: (_ for _ in ()).throw(RuntimeError("no C compiler\nat all")))
    said: list[str] = []
    denoise = inference._fused(network, network, said.append)
    for _ in range(2):
        assert torch.equal(denoise(x, t), network(x, t))
    assert len(said) == 1
    assert said[0].startswith("the GPU's products are in TF32, by cuDNN: ")
    assert "at all" not in said[0]


@torch.no_grad()
def test_a_full_memory_is_left_to_those_who_compute_less_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")

    network, x, t = example(BidirectionalRNN(4, 8), 4, 3, 5)
    monkeypatch.setattr(fused, "recur", full)
    said: list[str] = []
    with pytest.raises(torch.OutOfMemoryError):
        inference._fused(network, network, said.append)(x, t)
    assert not said


def test_a_gpu_with_little_shared_memory_takes_smaller_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    from triton.runtime.errors import OutOfResources

    taken: list[tuple[int, ...]] = []

    def recur(gates: Tensor, weights: Tensor, *shape: int) -> Tensor:
        taken.append(shape)
        if shape[0] > 64:
            raise OutOfResources(200_000, 99_000, "shared memory")
        return whole(gates, weights, *shape)

    whole = fused.recur
    monkeypatch.setattr(fused, "recur", recur)
    network, x, t = example(BidirectionalRNN(4, 8), 4, 3, 5)
    with torch.no_grad():
        one = fused.FusedRNN(network)
        one(x, t)
        assert taken == [*fused.SHAPES[:3], fused.SHAPES[2]]  # the second layer asks no more
        monkeypatch.setattr(one, "shapes", [fused.SHAPES[0]])
        with pytest.raises(OutOfResources):
            one(x, t)


COMPILE = """
from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from timediff.networks import fused

kinds = {"gates": "*fp16", "weights": "*fp16", "out": "*fp16", "cells": "*fp32", "B": "i32"}
for generation, room in ((80, 166_912), (89, 101_376), (90, 232_448)):
    fit = 0
    for rows, units, warps, stages in fused.SHAPES:
        fixed = {"L": 25, "H": 256, "ROWS": rows, "UNITS": units, "STAGES": stages, "EXACT": False}
        source = ASTSource(fused._layer, {**kinds, **dict.fromkeys(fixed, "constexpr")}, fixed)
        options = {"num_warps": warps, **fused.OPTIONS}
        kernel = compile(source, target=GPUTarget("cuda", generation, 32), options=options)
        fit += kernel.metadata.shared <= room
    print(generation, fit)
"""


def test_they_compile_for_three_generations_of_gpus_and_some_shape_fits_each(tmp_path: Path) -> None:
    found = fits(COMPILE, tmp_path)
    assert all(found[generation] >= 1 for generation in ("80", "89", "90"))
    assert found["90"] == len(fused.SHAPES)
