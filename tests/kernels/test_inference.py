"""A trained network as a sampler calls it: the same function, and where kernels cannot be had it goes on without."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from timediff.kernels import inference
from timediff.kernels.inference import accelerated, in_slices
from timediff.networks.brnn import BidirectionalRNN
from timediff.runtime.devices import CPU_CACHE_STEPS

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture
def lstm_inference():
    pytest.importorskip("triton", reason="Triton is there for Linux on x86 alone, and with PyTorch for CUDA")
    from timediff.kernels import lstm_inference

    return lstm_inference


def example(cell: str = "lstm") -> tuple[BidirectionalRNN, Tensor, Tensor]:
    network = BidirectionalRNN(4, 8, cell=cell).to(DEVICE).eval()
    return network, torch.randn(3, 5, 4, device=DEVICE), 1000 * torch.rand(3, device=DEVICE)


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 50))
def test_slices_are_the_whole(stays: int, rows: int) -> None:
    x, t, sizes = torch.randn(stays, 2, 3), torch.rand(stays), list[int]()

    def network(x: Tensor, t: Tensor) -> Tensor:
        sizes.append(len(x))
        return x * t[:, None, None]

    assert torch.equal(in_slices(network, rows)(x, t), x * t[:, None, None])
    assert sum(sizes) == stays
    assert max(sizes) <= rows


@torch.no_grad()
def test_on_a_cpu_the_network_is_called_on_as_many_stays_as_its_cache_holds() -> None:
    network, sizes = BidirectionalRNN(4, 8).eval(), list[int]()
    network.register_forward_pre_hook(lambda module, inputs: sizes.append(len(inputs[0])))
    length = CPU_CACHE_STEPS // 40
    denoise = accelerated(network, torch.device("cpu"), length)
    x, t = torch.randn(100, 3, 4), torch.rand(100)
    found = denoise(x, t)
    assert sizes == [40, 40, 20]
    assert torch.allclose(found, network(x, t), atol=1e-6)
    sizes.clear()
    accelerated(network, torch.device("cpu"), 10 * CPU_CACHE_STEPS)(x, t)
    assert sizes == [32, 32, 32, 4]


@torch.no_grad()
def test_kernels_are_used_where_they_cover_the_network(lstm_inference, monkeypatch: pytest.MonkeyPatch) -> None:
    network, x, t = example()
    said, calls, whole = list[str](), list[int](), lstm_inference.recur
    monkeypatch.setattr(lstm_inference, "recur", lambda *given: calls.append(1) or whole(*given))
    found = inference._with_kernels(network, network, said.append)(x, t)
    assert len(calls) == 2  # layers
    assert not said
    assert torch.allclose(found.float(), network(x, t), atol=2e-3)


@torch.no_grad()
def test_without_triton_it_goes_on_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    network, x, t = example()
    monkeypatch.setattr(inference, "find_spec", lambda name: None)
    said: list[str] = []
    denoise = inference._with_kernels(network, network, said.append)
    assert torch.equal(denoise(x, t), network(x, t))
    assert not said


@pytest.mark.parametrize("why", ["a network they do not cover", "a kernel that fails"])
@torch.no_grad()
def test_without_them_it_goes_on_by_the_network_itself(
    why: str, lstm_inference, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, x, t = example("gru" if "cover" in why else "lstm")
    if why == "a kernel that fails":
        failure = RuntimeError("no C compiler\nat all")
        monkeypatch.setattr(lstm_inference, "recur", lambda *_: (_ for _ in ()).throw(failure))
    said: list[str] = []
    denoise = inference._with_kernels(network, network, said.append)
    for _ in range(2):
        assert torch.equal(denoise(x, t), network(x, t))
    assert len(said) == 1
    assert said[0].startswith("the GPU's products are in TF32, by cuDNN: ")
    assert "at all" not in said[0]


@torch.no_grad()
def test_a_full_memory_is_left_to_those_who_compute_less_at_once(
    lstm_inference, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")

    network, x, t = example()
    monkeypatch.setattr(lstm_inference, "recur", full)
    said: list[str] = []
    with pytest.raises(torch.OutOfMemoryError):
        inference._with_kernels(network, network, said.append)(x, t)
    assert not said
