"""Which stays an update sees: each once an epoch, in an order that depends on seed and epoch alone."""

import torch
from torch import Tensor

from timediff.runtime.seeding import stream


class Order:
    def __init__(self, stays: int, batch: int, seed: int, device: torch.device) -> None:
        self.batches = stays // batch  # a rest smaller than a batch waits for the next epoch's order
        self.stays, self.batch, self.seed, self.device = stays, batch, seed, device
        self._epoch, self._order = -1, torch.empty(0, dtype=torch.long)

    def __call__(self, number: int) -> Tensor:
        """The stays (batch,) of the batch with this number, counted from the start of training."""
        epoch, place = divmod(number, self.batches)
        if epoch != self._epoch:
            permutation = stream("order", self.seed, epoch).permutation(self.stays)
            self._epoch, self._order = epoch, torch.from_numpy(permutation).to(self.device)
        return self._order[place * self.batch : (place + 1) * self.batch]
