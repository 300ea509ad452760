"""The head of a step: its classes and values, each given those before it."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from timediff.data.batch import Channel, OneHot
from timediff.diffusion import categorical
from timediff.diffusion.autoregressive import logistics
from timediff.diffusion.autoregressive.meanings import Meanings, Term, terms_of

WIDEST_START = 1.5  # normal scores: where the outer components of a mixture begin
FURTHEST = 4.0  # a normal score beyond which nothing is sampled


class Sampled(NamedTuple):
    classes: Tensor  # (B, D)
    values: Tensor  # (B, P); the last known one where there is none
    known: Tensor  # (B, P)
    columns: Tensor  # (B, ΣK + P) of both, as later steps see them
    expected: Tensor  # (B, P)


class StepHead(nn.Module):
    """p(first term) p(second | first) … of a step, from a start (…, width), in one pass (MADE: Germain et al. 2015).

    A class has a softmax; a value has a mixture of logistics, of which the probability of all numbers that are decoded
    as that value counts. The units of a term see the start and the terms before it, and no others.
    """

    allowed: Tensor
    earlier_value: Tensor

    def __init__(self, classes: Sequence[Channel], values: Sequence[Channel], units: int, mixture: int) -> None:
        super().__init__()
        self.terms, self.units, self.mixture = terms_of(classes, values), units, mixture
        self.one_hot, self.meanings = OneHot([channel.classes for channel in classes]), Meanings(classes, values)
        self.values = len(values)
        self.columns = len(self.one_hot.owner) + self.values  # that a step has
        n = len(self.terms)
        place = {term: number for number, term in enumerate(self.terms)}
        of_column = [place[Term("class", int(i))] for i in self.one_hot.owner] + [
            place[Term("value", i)] for i in range(self.values)
        ]
        earlier = torch.tensor(of_column, dtype=torch.long)[:, None] < torch.arange(n).repeat_interleave(units)
        self.register_buffer("allowed", earlier.float(), persistent=False)
        most = max([3 * mixture * bool(values), *self.one_hot.classes], default=1)
        order = torch.tensor([place[Term("value", i)] for i in range(self.values)], dtype=torch.long)
        self.register_buffer("earlier_value", (order[:, None] > order).float(), persistent=False)  # (P, P)
        self.linear = nn.Parameter(torch.zeros(self.values, self.values))
        self.base = nn.Parameter(torch.zeros(self.width))
        self.seen = nn.Parameter(0.1 * torch.randn(self.columns, self.width))
        self.weight = nn.Parameter(units**-0.5 * torch.randn(n, units, units))
        self.bias = nn.Parameter(torch.zeros(n, units))
        self.output_weight = nn.Parameter(0.5 * units**-0.5 * torch.randn(n, units, most))
        self.output_bias = nn.Parameter(torch.zeros(n, most))
        with torch.no_grad():
            for number, term in enumerate(self.terms):
                if term.kind == "value":
                    self.output_bias[number, mixture : 2 * mixture] = torch.linspace(
                        -WIDEST_START, WIDEST_START, mixture
                    )

    @property
    def width(self) -> int:
        return len(self.terms) * self.units

    @property
    def uniforms(self) -> int:
        """Random numbers of a step: one a class, two a value."""
        return len(self.one_hot.classes) + 2 * self.values

    def column(self, c: Tensor, x: Tensor, known: Tensor) -> Tensor:
        """What later terms and steps see of classes (…, D) and values (…, P)."""
        return torch.cat([self.one_hot(c).to(x.dtype), x * known.to(x.dtype)], dim=-1)

    def expected(self, before: Tensor, columns: Tensor) -> Tensor:
        """What is expected of each value (…, P): `before`, and a linear function of the values before it in the step.

        These are in the step's columns (…, ΣK + P).
        """
        found: Tensor = before + columns[..., len(self.one_hot.owner) :] @ (self.linear * self.earlier_value).T
        return found

    def forward(self, start: Tensor, columns: Tensor, c: Tensor, intervals: Tensor, expected: Tensor) -> Tensor:
        """−log p of every term (…, n): of a value that it lies in its interval (…, P, 2).

        It counts where any number may stand. `expected` (…, P) is added to what the mixtures say.
        """
        units = silu(start + self.base + columns @ (self.seen * self.allowed))
        units = units.reshape(*units.shape[:-1], len(self.terms), self.units)
        units = units + silu(torch.einsum("...nu,nuk->...nk", units, self.weight) + self.bias)
        outputs = (torch.einsum("...nu,nuk->...nk", units, self.output_weight) + self.output_bias).float()
        drawn = self.meanings(c).any
        found = []
        for number, (kind, i) in enumerate(self.terms):
            output = outputs[..., number, :]
            if kind == "class":
                log_p = output[..., : self.one_hot.classes[i]].log_softmax(-1)
                found.append(-log_p.gather(-1, c[..., i, None])[..., 0])
            else:
                low, high = (intervals[..., i, :] - expected[..., i, None]).unbind(-1)
                log_p = logistics.log_probability(output[..., : 3 * self.mixture], low, high)
                found.append(-log_p * drawn[..., i])
        return torch.stack(found, dim=-1) if found else start.new_zeros((*start.shape[:-1], 0))

    def sample(self, start: Tensor, uniform: Tensor, expected: Tensor, before: Tensor) -> Sampled:
        """One step of each stay, from uniform numbers (B, uniforms); `before` (B, P) are the last known values."""
        units, seen = start + self.base, self.seen * self.allowed
        linear = self.linear * self.earlier_value
        classes: dict[int, Tensor] = {}
        values: dict[int, tuple[Tensor, Tensor]] = {}
        count = len(self.one_hot.classes)
        for number, (kind, i) in enumerate(self.terms):
            own = silu(units[:, number * self.units : (number + 1) * self.units])
            own = own + silu(own @ self.weight[number] + self.bias[number])
            output = (own @ self.output_weight[number] + self.output_bias[number]).float()
            if kind == "class":
                log_p = output[:, : self.one_hot.classes[i]].log_softmax(-1)
                classes[i] = categorical.sample(log_p, uniform[:, i])
                units = units + seen[self.one_hot.offsets[i] + classes[i]]
                continue
            component, place = uniform[:, count + 2 * i], uniform[:, count + 2 * i + 1]
            drawn = expected[:, i] + logistics.sample(output[:, : 3 * self.mixture], component, place)
            at = self.meanings.class_at[i]
            own_class = None if at is None else classes[at]
            values[i] = self.meanings.value(i, own_class, drawn.clamp(-FURTHEST, FURTHEST), before[:, i])
            value, known = values[i]
            expected = expected + (value * known)[:, None] * linear[:, i]  # of those that come later
            units = units + (value * known)[:, None] * seen[len(self.one_hot.owner) + i]
        none = start.new_zeros((len(start), 0))
        c = torch.stack([classes[i] for i in sorted(classes)], dim=1) if classes else none.long()
        x, known = (
            torch.stack([values[i][part] for i in sorted(values)], dim=1) if values else none for part in (0, 1)
        )
        return Sampled(c, x, known, self.column(c, x, known), expected)
