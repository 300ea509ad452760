"""Randomness as an argument: noise that depends on a key alone, never on who draws it or in what order."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

BLOCK = 500  # stays that share one stream of noise when sampling
_PURPOSES = {"order": 0, "training": 1, "sampling": 2, "weights": 3}
Purpose = Literal["order", "training", "sampling", "weights"]


def sequence(purpose: Purpose, *key: int) -> np.random.SeedSequence:
    return np.random.SeedSequence([_PURPOSES[purpose], *key])


def seed_torch(purpose: Purpose, *key: int) -> int:
    """A 64-bit seed for PyTorch's own generators."""
    return int(sequence(purpose, *key).generate_state(1, np.uint64)[0] >> np.uint64(1))


class Noise:
    """Standard normal and uniform draws for several blocks of rows at once, each block from its own stream.

    Every call draws whole blocks of `block` rows and keeps the first rows[i] of block i, so a shorter last block has
    the same rows as a full one. On the CPU the streams are NumPy's, the same in every PyTorch: its own CPU generator
    keeps only 32 bits of its seed, too few for millions of stays.
    """

    def __init__(
        self, purpose: Purpose, keys: Sequence[tuple[int, ...]], rows: Sequence[int], block: int, device: torch.device
    ) -> None:
        self.rows, self.block, self.device = list(rows), block, device
        if device.type == "cuda":
            self._cuda = [torch.Generator(device).manual_seed(seed_torch(purpose, *key)) for key in keys]
        else:
            self._numpy = [np.random.default_rng(sequence(purpose, *key)) for key in keys]

    @property
    def total(self) -> int:
        return sum(self.rows)

    def normal(self, *shape: int) -> Tensor:
        """(rows, *shape) of standard normal numbers."""
        return self._draw("normal", shape)

    def uniform(self, *shape: int) -> Tensor:
        """(rows, *shape) of uniform numbers in [0, 1)."""
        return self._draw("uniform", shape)

    def integers(self, high: int) -> Tensor:
        """(rows,) of whole numbers 0 … high − 1."""
        # Scaled in double: float32 · T could round up to T itself.
        return (self.uniform().double() * high).long().clamp_(max=high - 1)

    def _draw(self, kind: Literal["normal", "uniform"], shape: tuple[int, ...]) -> Tensor:
        size = (self.block, *shape)
        if self.device.type == "cuda":
            draw = torch.randn if kind == "normal" else torch.rand
            parts = [
                draw(size, generator=g, device=self.device)[:n] for g, n in zip(self._cuda, self.rows, strict=True)
            ]
        else:
            parts = []
            for generator, n in zip(self._numpy, self.rows, strict=True):
                method = generator.standard_normal if kind == "normal" else generator.random
                parts.append(torch.from_numpy(method(size, dtype=np.float32))[:n].to(self.device))
        return parts[0] if len(parts) == 1 else torch.cat(parts)


def sampling_noise(seed: int, first_block: int, stays: int, device: torch.device) -> Noise:
    """The noise of `stays` stays that begin with block `first_block`."""
    blocks = -(-stays // BLOCK)
    rows = [min(BLOCK, stays - i * BLOCK) for i in range(blocks)]
    return Noise("sampling", [(seed, first_block + i) for i in range(blocks)], rows, BLOCK, device)
