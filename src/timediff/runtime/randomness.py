"""Randomness as an argument: noise that depends on a key alone, never on who draws it or in what order."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from timediff.runtime.seeding import sequence, stream

BLOCK = 500  # stays that share one stream of noise when sampling


def seed_torch(purpose: str, *key: int) -> int:
    """A 63-bit seed for PyTorch's own generators."""
    return int(sequence(purpose, *key).generate_state(1, np.uint64)[0] >> np.uint64(1))


class Noise:
    """Standard normal and uniform draws for several blocks of rows at once, each block from its own stream.

    The first rows of a block are the same whether or not the others are drawn. On the CPU the streams are NumPy's, the
    same in every PyTorch: its own CPU generator keeps only 32 bits of its seed, too few for millions of stays.
    """

    def __init__(
        self, purpose: str, keys: Sequence[tuple[int, ...]], rows: Sequence[int], block: int, device: torch.device
    ) -> None:
        self.rows, self.block, self.device = list(rows), block, device
        self._purpose = purpose
        self.generators = [torch.Generator(device) for _ in keys] if device.type == "cuda" else []
        self.rekey(keys)

    def rekey(self, keys: Sequence[tuple[int, ...]]) -> None:
        """Begins the streams of other keys, as many as before."""
        self._keys, self._draws = list(keys), 0
        for generator, key in zip(self.generators, keys, strict=False):
            generator.manual_seed(seed_torch(self._purpose, *key))

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

    def stratified(self) -> Tensor:
        """(rows,) of uniform numbers in [0, 1), one in each of as many equal intervals, in random order."""
        order = self.uniform().argsort()
        place = torch.empty_like(order).scatter_(0, order, torch.arange(len(order), device=order.device))
        return ((place + self.uniform()) / self.total).clamp_(max=1 - 2**-24)

    def _draw(self, kind: str, shape: tuple[int, ...]) -> Tensor:
        if self.device.type == "cuda":
            # What a row gets depends on how many are drawn, so whole blocks are drawn and cut.
            draw, size = (torch.randn if kind == "normal" else torch.rand), (self.block, *shape)
            parts = [
                draw(size, generator=g, device=self.device)[:n] for g, n in zip(self.generators, self.rows, strict=True)
            ]
        else:
            parts = [self._numpy(kind, key, (n, *shape)) for key, n in zip(self._keys, self.rows, strict=True)]
        self._draws += 1
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _numpy(self, kind: str, key: tuple[int, ...], size: tuple[int, ...]) -> Tensor:
        # A stream for every draw, which fills rows in order: fewer rows are the first of more.
        generator = stream(self._purpose, *key, self._draws)
        values = generator.standard_normal if kind == "normal" else generator.random
        return torch.from_numpy(values(size, dtype=np.float32)).to(self.device)


class NoiseSlice(Noise):
    """Some rows of the noise of a whole batch, so that they see what they would see in it.

    `draws` holds what has been drawn for the whole batch; all slices of one batch are given the same list.
    """

    def __init__(self, whole: Noise, draws: list[Tensor], rows: slice) -> None:
        self._whole, self._draws_of_all, self._rows, self._next = whole, draws, rows, 0
        self.rows, self.block, self.device = [rows.stop - rows.start], whole.block, whole.device

    def stratified(self) -> Tensor:
        return self._cut(self._whole.stratified)

    def _draw(self, kind: str, shape: tuple[int, ...]) -> Tensor:
        return self._cut(lambda: self._whole._draw(kind, shape))

    def _cut(self, draw: Callable[[], Tensor]) -> Tensor:
        if self._next == len(self._draws_of_all):
            self._draws_of_all.append(draw())
        self._next += 1
        return self._draws_of_all[self._next - 1][self._rows]


def sampling_noise(seed: int, first_block: int, stays: int, device: torch.device) -> Noise:
    """The noise of `stays` stays that begin with block `first_block`."""
    blocks = -(-stays // BLOCK)
    rows = [min(BLOCK, stays - i * BLOCK) for i in range(blocks)]
    return Noise("sampling", [(seed, first_block + i) for i in range(blocks)], rows, BLOCK, device)
