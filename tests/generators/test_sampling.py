"""Compute batches: of any number of blocks the stays are the same, and memory that is short makes them smaller."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from helpers.alike import alike
from timediff.data.cohort import Cohort, concatenate
from timediff.errors import TimeDiffError
from timediff.generators.base import Generator
from timediff.generators.sampling import compute_batch
from timediff.generators.timediff.generator import TimeDiff
from timediff.generators.timediff.settings import SamplingSettings
from timediff.kernels.inference import accelerated
from timediff.runtime.randomness import BLOCK
from timediff.settings.resolve import resolve


def test_a_compute_batch_is_any_number_of_blocks(model: Generator) -> None:
    assert alike(*(model.sample(1500, seed=1, batch=batch) for batch in (500, 1500)))


@given(st.integers(1, 10**6), st.integers(1, 2000), st.sampled_from(["tf32", "float16"]), st.integers(8, 150))
def test_a_gpu_samples_as_many_whole_blocks_as_it_has_room_for(
    n: int, length: int, precision: Any, gigabytes: int
) -> None:
    gpu = SimpleNamespace(multi_processor_count=132, total_memory=gigabytes * 10**9)
    with patch("torch.cuda.get_device_properties", return_value=gpu):
        batch = compute_batch(n, length, SamplingSettings(precision=precision), torch.device("cuda"))
    most = min(64 * 132, gpu.total_memory // (24_000 * length)) if precision == "float16" else 500_000 // length
    assert batch % BLOCK == 0
    assert BLOCK <= batch <= max(BLOCK, most)
    batches = -(-n // batch)
    assert batches == 1 or batches <= -(-n // (max(BLOCK, most) // BLOCK * BLOCK))  # and no more of them than needed


@pytest.fixture(scope="module")
def brief(icu: Cohort) -> TimeDiff:
    settings = resolve("fast", assignments={"model.hidden": 4, "training.steps": 1, "sampling.steps": 3})
    return TimeDiff(settings=settings).fit(icu, seed=0)


@pytest.mark.parametrize(
    ("times", "expected"), [(2, ["1,000", "500"]), (5, ["1,000", "500", "250", "125", "62"]), (11, None)]
)
def test_sampling_that_does_not_fit_is_halved(
    brief: TimeDiff, monkeypatch: pytest.MonkeyPatch, times: int, expected: list[str] | None
) -> None:
    """First the stays that are sampled at once, down to a block; then those of it that the network computes at once."""
    whole = brief.sample(1700, seed=1, batch=500)
    denoiser: Any = brief.fitted.network.denoiser
    said, tries = list[str](), iter(range(times))
    forward = denoiser.forward

    def full_at_first(x: Tensor, t: Tensor) -> Tensor:
        if next(tries, None) is not None:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        output: Tensor = forward(x, t)
        return output

    monkeypatch.setattr(denoiser, "forward", full_at_first)
    if expected is None:
        with pytest.raises(TimeDiffError, match="does not hold one stay of 12 steps"):
            list(brief.stream(1700, seed=1, batch=1700))
        return
    parts = list(brief.stream(1700, seed=1, batch=1700, say=said.append))
    assert [len(part) for part in parts] == [500, 500, 500, 200]
    assert [line.split(":")[1].split()[0] for line in said] == expected
    assert concatenate(parts).digest() == whole.digest()


def test_a_gpu_that_holds_few_rows_computes_the_same_in_slices() -> None:
    network, device = nn.Linear(3, 3), torch.device("meta")  # stands for a GPU: it is not the CPU
    x = torch.randn(10, 4, 3)
    seen: list[int] = []

    def denoise(part: Tensor, t: Tensor) -> Tensor:
        seen.append(len(part))
        y: Tensor = network(part)
        return y

    few = accelerated(denoise, device, 4, rows=4)  # type: ignore[arg-type]
    assert torch.allclose(few(x, torch.zeros(10)), network(x))
    assert seen == [4, 4, 2]
