"""VisitCodes: the channels of a cohort as visits of medical codes, and back.

A variable is a feature with its mask: a visit has one of its codes, or, where it is missing, none. A class is a code. A
continuous value is one of its bins, which go by training quantiles.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from timediff.data.arrays import Floats
from timediff.data.batch import Batch, Layout
from timediff.data.quantiles import Quantiles


@dataclass(frozen=True)
class Variable:
    """Where it is among the channels, each None if there is no such channel, and how many codes it has."""

    continuous: int | None  # among the continuous channels
    discrete: int | None  # among the discrete ones
    mask: int | None  # among the discrete ones; None = never missing
    codes: int
    static: bool


def variables_of(layout: Layout, bins: int) -> tuple[Variable, ...]:
    """Continuous values, classes, and what is always the same where it was measured."""
    masks = {channel.feature: i for i, channel in enumerate(layout.discrete) if channel.part == "mask"}
    found = [
        Variable(i, None, masks.pop(channel.feature, None), bins, channel.static)
        for i, channel in enumerate(layout.continuous)
    ]
    for i, channel in enumerate(layout.discrete):
        if channel.part == "value":
            found.append(Variable(None, i, masks.pop(channel.feature, None), channel.classes, channel.static))
    return (*found, *(Variable(None, None, i, 1, layout.discrete[i].static) for i in masks.values()))


class VisitCodes(nn.Module):
    """Batch ⇄ an index for each variable of a visit: that of its code, or their number where it has none."""

    edges: Tensor  # (continuous, bins + 1), ascending; of equal ones there is a bin that is a single value

    def __init__(self, layout: Layout, bins: int) -> None:
        super().__init__()
        self.layout = layout
        every = variables_of(layout, bins)
        self.static = tuple(variable for variable in every if variable.static)
        self.temporal = tuple(variable for variable in every if not variable.static)
        self.register_buffer("edges", torch.zeros(len(layout.continuous), bins + 1))

    @staticmethod
    def choices(variables: tuple[Variable, ...]) -> tuple[tuple[int, bool], ...]:
        """Of each variable the number of codes, and whether there may be none."""
        return tuple((variable.codes, variable.mask is not None) for variable in variables)

    def fit(self, data: Batch, *, extremes: bool) -> None:
        """Edges by the quantiles of observed training values; without `extremes` no single value is among them."""
        for variable in (*self.static, *self.temporal):
            if variable.continuous is None:
                continue
            values = data.continuous[..., variable.continuous]
            values = values[:, :1] if variable.static else values
            if variable.mask is not None:
                there = data.discrete[..., variable.mask] == 0
                values = values[there[:, : values.shape[1]]]
            edges = quantile_edges(values.flatten().double().numpy(), self.edges.shape[1], extremes=extremes)
            self.edges[variable.continuous] = torch.from_numpy(edges).float()

    def encode(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Indices of the static variables (B, m), and of each visit's (B, L, n)."""
        first = Batch(batch.continuous[:, :1], batch.discrete[:, :1], batch.lengths)
        return self._encode(first, self.static)[:, 0], self._encode(batch, self.temporal)

    def _encode(self, batch: Batch, variables: tuple[Variable, ...]) -> Tensor:
        found = torch.zeros((*batch.discrete.shape[:2], len(variables)), dtype=torch.long, device=batch.device)
        for i, variable in enumerate(variables):
            if variable.continuous is not None:
                found[..., i] = self.bin_of(batch.continuous[..., variable.continuous], variable.continuous)
            elif variable.discrete is not None:
                found[..., i] = batch.discrete[..., variable.discrete]
            if variable.mask is not None:
                found[..., i].masked_fill_(batch.discrete[..., variable.mask] == 1, variable.codes)
        return found

    def decode(self, static: Tensor, visits: Tensor, uniform: Tensor) -> Batch:
        """Stays of these indices; `uniform` (B, L, continuous) says where in its bin a value is."""
        x = torch.zeros_like(uniform)
        c = visits.new_zeros((*visits.shape[:2], len(self.layout.discrete)))
        for variables, given in ((self.static, static[:, None]), (self.temporal, visits)):
            for i, variable in enumerate(variables):
                own = given[..., i]
                none = own == variable.codes
                there = own.masked_fill(none, 0)
                if variable.mask is not None:
                    c[..., variable.mask] = none.long()
                if variable.discrete is not None:
                    c[..., variable.discrete] = there
                if variable.continuous is not None:
                    edges, r = self.edges[variable.continuous], uniform[:, : own.shape[1], variable.continuous]
                    x[..., variable.continuous] = edges[there] + r * (edges[there + 1] - edges[there])
        return Batch.of(x, c)

    def bin_of(self, x: Tensor, channel: int) -> Tensor:
        """Of values of a continuous channel: that which begins below, or is the value alone."""
        edges = self.edges[channel].contiguous()
        below = torch.searchsorted(edges, x.contiguous())
        on_edge = torch.searchsorted(edges, x.contiguous(), right=True) > below
        return torch.where(on_edge, below, below - 1).clamp(0, len(edges) - 2)


def quantile_edges(values: Floats, count: int, *, extremes: bool) -> Floats:
    """`count` values at equal steps of probability; each but the extremes goes by at least ten observations."""
    if len(np.unique(values)) < 2:
        return np.full(count, values[0] if len(values) else 0.0)
    quantiles = Quantiles.fit(values)
    edges: Floats = quantiles.at(np.linspace(0, 1, count))
    if not extremes:
        last = len(quantiles.value) - 1
        knots = zip(quantiles.value, quantiles.low, quantiles.high, strict=True)
        many = [value for i, (value, low, high) in enumerate(knots) if high > low or 0 < i < last]
        edges = edges.clip(min(many), max(many)) if many else np.full(count, values.mean())
    return edges
