"""Noise of a part of a batch, and of other keys."""

import torch
from torch import Tensor

from timediff.runtime.randomness import Noise, NoiseSlice

CPU, BATCH = torch.device("cpu"), 24


def test_the_rows_of_a_slice_are_those_of_the_whole() -> None:
    def draws(noise: Noise) -> list[Tensor]:
        return [noise.normal(3), noise.uniform(), noise.stratified(), noise.integers(9).float(), noise.normal()]

    key = [(0, 1, 2)]
    whole = draws(Noise("training", key, [BATCH], BATCH, CPU))
    drawn: list[Tensor] = []
    noise = Noise("training", key, [BATCH], BATCH, CPU)
    parts = [draws(NoiseSlice(noise, drawn, slice(start, start + 8))) for start in range(0, BATCH, 8)]
    for number, values in enumerate(whole):
        assert torch.equal(values, torch.cat([part[number] for part in parts]))


def test_another_key_begins_another_stream() -> None:
    noise = Noise("training", [(0, 1)], [4], 4, CPU)
    first = noise.normal(3)
    noise.normal(3)
    noise.rekey([(0, 2)])
    other = noise.normal(3)
    noise.rekey([(0, 1)])
    assert torch.equal(noise.normal(3), first)
    assert not torch.equal(other, first)
