"""CUDA graphs where there is no GPU, and a GPU that is gone."""

import pytest
import torch
from torch import Tensor

from timediff.errors import TimeDiffError
from timediff.runtime.cuda_graphs import Captured, gpu_failures


def test_without_a_gpu_what_is_captured_is_the_function_itself() -> None:
    calls: list[int] = []

    def doubled(x: Tensor) -> Tensor:
        calls.append(1)
        return 2 * x

    captured = Captured(doubled, torch.device("cpu"))
    for _ in range(5):
        assert captured(torch.ones(1)) == 2
    assert len(calls) == 5


def test_a_gpu_that_is_gone_is_a_sentence_and_other_errors_are_our_own() -> None:
    gone = r"the GPU failed or is gone \(CUDA error: unspecified launch failure\)"
    with pytest.raises(TimeDiffError, match=gone), gpu_failures():
        raise RuntimeError("CUDA error: unspecified launch failure\nCompile with …")
    with pytest.raises(RuntimeError, match="shapes"), gpu_failures():
        raise RuntimeError("shapes differ")
