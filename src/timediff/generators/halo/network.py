"""HALO's network: a coarse module over visits, a fine one over the codes of a visit (Theodorou et al. 2023)."""

import torch
from torch import Tensor, nn

from timediff.data.batch import Batch, Layout
from timediff.diffusion import categorical
from timediff.generators.halo.codes import VisitCodes
from timediff.generators.halo.heads import HEADS, Choose
from timediff.generators.halo.settings import HALOModelSettings
from timediff.networks.transformer import STD, Cache, CausalTransformer
from timediff.runtime.randomness import Noise


class HALONetwork(nn.Module):
    """p(static) Π p(visit | static, visits before it), and p(visit) = Π p(code | state, codes before it).

    The transformer sees a start visit, one with the static codes where there are any, and the visits. Its state after
    each is what the codes of the next one are chosen from.
    """

    def __init__(self, layout: Layout, model: HALOModelSettings, steps: int) -> None:
        super().__init__()
        self.codes, self.continuous = VisitCodes(layout, model.bins), len(layout.continuous)
        head = HEADS[model.codes]
        self.static_head = head(VisitCodes.choices(self.codes.static), model.hidden)
        self.visit_head = head(VisitCodes.choices(self.codes.temporal), model.hidden)
        columns = sum(self.static_head.one_hot.classes), sum(self.visit_head.one_hot.classes)
        self.start = nn.Parameter(STD * torch.randn(model.hidden))
        self.of_static = nn.Parameter(STD * torch.randn(columns[0], model.hidden))
        self.of_codes = nn.Parameter(STD * torch.randn(columns[1], model.hidden))
        self.before = 2 if self.codes.static else 1  # visits before the first of the stay
        self.positions = nn.Parameter(STD * torch.randn(self.before + steps - 1, model.hidden))
        self.coarse = CausalTransformer(model.hidden, model.layers, model.heads, model.dropout)

    def nll(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """−log p of each static choice (B, m), and of each of the visits' (B, L, n)."""
        static, visits = self.codes.encode(batch)
        return self.nll_of(static, visits)

    def nll_of(self, static: Tensor, visits: Tensor) -> tuple[Tensor, Tensor]:
        """The same of choices; visits are no more than those that were trained on."""
        static_hot, hot = self.static_head.one_hot(static), self.visit_head.one_hot(visits)
        seen = [self.start.expand(len(visits), 1, -1), (hot @ self.of_codes)[:, :-1]]
        if self.codes.static:
            seen.insert(1, (static_hot @ self.of_static)[:, None])
        x = torch.cat(seen, dim=1)
        states = self.coarse(x + self.positions[: x.shape[1]])
        of_static: Tensor = self.static_head(states[:, 0], static, static_hot)
        of_visits: Tensor = self.visit_head(states[:, self.before - 1 :], visits, hot)
        return of_static, of_visits

    def position(self, at: int) -> Tensor:
        """The embedding of a position; those beyond the longest trained on are as its last."""
        return self.positions[min(at, len(self.positions) - 1)]

    def sample_noise(self, noise: Noise, length: int) -> tuple[Tensor, ...]:
        """For static choices, for those of visits, and for the places of values in their bins."""
        sizes = len(self.static_head.one_hot.classes), len(self.visit_head.one_hot.classes)
        return noise.uniform(sizes[0]), noise.uniform(length, sizes[1]), noise.uniform(length, self.continuous)

    def generate(self, *noise: Tensor, length: int) -> Tensor:
        """Channels (B, length, P_r + P_d) from uniform numbers, visit by visit."""
        of_static, of_visits, within = noise
        batch = self.codes.decode(*self.choices(of_static, of_visits, length), within)
        return torch.cat([batch.continuous, batch.discrete.to(batch.continuous.dtype)], dim=-1)

    def choices(self, of_static: Tensor, of_visits: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """Static choices (B, m) and those of visits (B, length, n)."""
        start = self.start.expand(len(of_static), -1)
        cache = self.coarse.empty_cache(start, self.before + length - 1)
        state = self._state(start, cache, 0)
        static = self.static_head.sample(state, _by(of_static))
        if self.codes.static:
            state = self._state(self.static_head.one_hot(static) @ self.of_static, cache, 1)
        visits: list[Tensor] = []
        for i in range(length):
            if i:
                state = self._state(self.visit_head.one_hot(visits[-1]) @ self.of_codes, cache, self.before - 1 + i)
            visits.append(self.visit_head.sample(state, _by(of_visits[:, i])))
        return static, torch.stack(visits, dim=1)

    def _state(self, visit: Tensor, cache: Cache, at: int) -> Tensor:
        return self.coarse.step(visit + self.position(at), cache, at)


def _by(uniform: Tensor) -> Choose:
    """A choice by these uniform numbers (…, n)."""
    return lambda log_p, choice: categorical.sample(log_p, uniform[..., choice])
