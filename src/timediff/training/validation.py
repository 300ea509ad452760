"""Validation: the loss of held-out stays, always with the same noise, and the weights with the lowest.

Of objectives that are validated each by itself, each chooses the weights of its own modules.
"""

import copy
import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from timediff.data.batch import Batch
from timediff.runtime.cuda_graphs import free_memory, is_out_of_memory
from timediff.runtime.randomness import Noise, NoiseSlice
from timediff.training.objective import Objective

MOST = 4096  # stays looked at
CHUNK = 512  # stays at a time
DRAWS = 2048  # stays times draws of noise: fewer stays are looked at more often


class Validation:
    def __init__(self, network: nn.Module, objective: Objective, data: Batch, seed: int) -> None:
        self.loss, self.seed, self.data = objective.loss, seed, data[:MOST]
        self.name = objective.name if objective.validated else ""
        begins = tuple(f"{module}." for module in objective.modules) if objective.validated else ("",)
        self.chosen = {name for name in network.state_dict() if name.startswith(begins)}
        self._suffix = f"-{self.name}" if self.name else ""
        self._network = copy.deepcopy(network).eval()
        for module in self._network.modules():
            if isinstance(module, nn.RNNBase):  # a copy's weights lie here and there; cuDNN wants them in one piece
                module.flatten_parameters()
        self._rows = CHUNK  # computed at once
        self.best: dict[str, Tensor] = {}
        self.lowest, self.latest, self.best_step, self.stale = math.inf, math.nan, 0, 0

    @property
    def seen(self) -> bool:
        return bool(self.best)

    def look(self, weights: Mapping[str, Tensor], step: int, agree: Callable[[float], float] = float) -> None:
        """The loss with these weights; they are kept if it is lower than any before. Many processes `agree` on it."""
        self._network.load_state_dict(dict(weights))
        self.latest = agree(self._loss())
        if self.latest < self.lowest:
            self.lowest, self.best_step, self.stale = self.latest, step, 0
            self.best = {name: value.detach().clone() for name, value in weights.items() if name in self.chosen}
        else:
            self.stale += 1

    def over(self, patience: int | None) -> bool:
        return patience is not None and self.stale >= patience

    @property
    def part_names(self) -> tuple[str, str]:
        """Of the best weights and of what else is remembered, in a checkpoint."""
        return f"best{self._suffix}", f"validation{self._suffix}"

    def parts(self) -> dict[str, dict[str, Tensor]]:
        """For a checkpoint."""
        state = torch.tensor([self.lowest, self.latest, self.best_step, self.stale], dtype=torch.float64)
        best, validation = self.part_names
        return {best: self.best, validation: {"state": state}} if self.seen else {}

    def load(self, parts: Mapping[str, Mapping[str, Tensor]]) -> None:
        device, (best, validation) = self.data.device, self.part_names
        self.best = {name: value.to(device) for name, value in parts[best].items()}
        self.lowest, self.latest, best_step, stale = parts[validation]["state"].tolist()
        self.best_step, self.stale = int(best_step), int(stale)

    def _of_chunk(self, batch: Batch, noise: Noise) -> Tensor:
        """The loss of a chunk, in as many parts as it takes to fit."""
        while True:
            try:
                return self._in_parts(batch, noise)
            except RuntimeError as error:
                if self._rows == 1 or not is_out_of_memory(error):
                    raise
            self._rows = -(-min(self._rows, len(batch)) // 2)
            free_memory(captured=True)

    def _in_parts(self, batch: Batch, noise: Noise) -> Tensor:
        size, draws = len(batch), list[Tensor]()
        total = torch.zeros((), device=batch.device)
        for start in range(0, size, self._rows):
            rows = slice(start, min(start + self._rows, size))
            loss = self.loss(self._network, batch[rows], NoiseSlice(noise, draws, rows))["total"]
            total += loss * ((rows.stop - rows.start) / size)
        return total

    @torch.no_grad()
    def _loss(self) -> float:
        stays = len(self.data)
        total, count = torch.zeros((), device=self.data.device), 0
        for draw in range(max(1, DRAWS // stays)):
            for start in range(0, stays, CHUNK):
                batch = self.data[start : start + CHUNK]
                size = len(batch)
                noise = Noise("validation", [(self.seed, draw, start)], [size], size, batch.device)
                total += self._of_chunk(batch, noise) * size
                count += size
        return float(total) / count
