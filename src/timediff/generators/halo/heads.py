"""HALO's fine module: the codes of a visit, each given the state of the coarse one and the codes before it.

Of each variable a visit has one code, or none. A head gives the probability of each choice in one pass, and samples
choice by choice.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, logsigmoid

from timediff.data.batch import OneHot
from timediff.diffusion.cascade.head import AutoregressiveHead

Choose = Callable[[Tensor, int], Tensor]  # of log-probabilities (…, K) of choice i: the class
NEVER = -1e9  # the logit of what cannot be


class Dense(nn.Module):
    """A linear layer whose weights may be masked, and which may have no outputs."""

    weight: Tensor
    bias: Tensor

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter((2 * torch.rand(outputs, inputs) - 1) * inputs**-0.5)  # as PyTorch's own
        self.bias = nn.Parameter(torch.zeros(outputs))


class SoftmaxHead(nn.Module):
    """All codes of a variable at once, by a softmax, in which "none" is one more (MADE: Germain et al. 2015)."""

    def __init__(self, choices: Sequence[tuple[int, bool]], width: int) -> None:
        super().__init__()
        self.head = AutoregressiveHead([codes + optional for codes, optional in choices])
        self.start = Dense(width, self.head.width)
        self.one_hot = self.head.one_hot

    def forward(self, state: Tensor, c: Tensor, hot: Tensor) -> Tensor:
        """−log p of choices c (…, n), whose one-hot columns are `hot`."""
        nll: Tensor = self.head(linear(state, self.start.weight, self.start.bias), c, hot)
        return nll

    def sample(self, state: Tensor, choose: Choose) -> Tensor:
        """Choices (…, n)."""
        return self.head.sample(linear(state, self.start.weight, self.start.bias), choose)


class BernoulliHead(nn.Module):
    """Code after code, each by a probability of its own, as published: two linear layers whose weights are masked.

    As a visit has at most one code of a variable, those after it need no probability, and where there is always one the
    probabilities are of those that are left: p(k) is proportional to σ(l_k) Π_{j<k} (1 − σ(l_j)). "None" is no column.
    """

    mask_1: Tensor
    mask_2: Tensor
    column: Tensor  # (n, most codes): where the logits of a choice are
    absent: Tensor  # the same: codes that it does not have
    always: Tensor  # (n,): whether there is always one

    def __init__(self, choices: Sequence[tuple[int, bool]], width: int) -> None:
        super().__init__()
        self.one_hot = OneHot([codes for codes, _ in choices])
        self.optional = tuple(optional for _, optional in choices)
        owner = width + self.one_hot.owner  # of each code's column; of the state's columns each its own
        inputs = torch.cat([torch.arange(width), owner])
        self.hidden, self.output = Dense(len(inputs), len(inputs)), Dense(len(inputs), len(owner))
        self.register_buffer("mask_1", (inputs <= inputs[:, None]).float(), persistent=False)
        self.register_buffer("mask_2", (inputs < owner[:, None]).float(), persistent=False)
        sizes = torch.tensor(self.one_hot.classes, dtype=torch.long)[:, None]
        place = torch.arange(max(self.one_hot.classes, default=1)).expand(len(choices), -1)
        first = torch.tensor(self.one_hot.offsets[: len(choices)], dtype=torch.long)[:, None]
        self.register_buffer("column", torch.where(place < sizes, first + place, 0), persistent=False)
        self.register_buffer("absent", place >= sizes, persistent=False)
        self.register_buffer("always", ~torch.tensor(self.optional, dtype=torch.bool), persistent=False)

    def forward(self, state: Tensor, c: Tensor, hot: Tensor) -> Tensor:
        """−log p of choices c (…, n), whose one-hot columns are `hot`."""
        x = torch.cat([state, hot.to(state.dtype)], dim=-1)
        units = linear(x, self.hidden.weight * self.mask_1, self.hidden.bias).relu()
        logits = linear(units, self.output.weight * self.mask_2, self.output.bias)
        own = logits.float()[..., self.column].masked_fill(self.absent, NEVER)
        none = c == (~self.absent).sum(dim=-1)
        chosen = torch.where(none, own.shape[-1], c)
        return -one_or_none(own, self.always).gather(-1, chosen[..., None])[..., 0]

    def sample(self, state: Tensor, choose: Choose) -> Tensor:
        """Choices (…, n)."""
        weight, output, width = self.hidden.weight * self.mask_1, self.output.weight * self.mask_2, state.shape[-1]
        columns = torch.cat([weight[:, width:].T, weight.new_zeros(1, len(weight))])  # the last is that of none
        units, sampled = linear(state, weight[:, :width], self.hidden.bias), []
        for i, codes in enumerate(self.one_hot.classes):
            first = self.one_hot.offsets[i]
            own = slice(first, first + codes)
            logits = linear(units.relu(), output[own], self.output.bias[own]).float()
            log_p = one_or_none(logits, self.always[i])
            sampled.append(choose(log_p if self.optional[i] else log_p[..., :-1], i))
            units = units + columns[torch.where(sampled[-1] < codes, first + sampled[-1], len(columns) - 1)]
        return torch.stack(sampled, dim=-1) if sampled else state.new_zeros((*state.shape[:-1], 0), dtype=torch.long)


def one_or_none(logits: Tensor, always: Tensor) -> Tensor:
    """Log-probabilities (…, K + 1) that each of K codes is the first there is, or, unless `always`, there is none."""
    so_far = logsigmoid(-logits).cumsum(-1)
    before = torch.cat([torch.zeros_like(so_far[..., :1]), so_far[..., :-1]], dim=-1)
    none = so_far[..., -1:].masked_fill(always[..., None], NEVER)
    return torch.cat([logsigmoid(logits) + before, none], dim=-1).log_softmax(-1)


HEADS: dict[str, type[SoftmaxHead] | type[BernoulliHead]] = {"softmax": SoftmaxHead, "bernoulli": BernoulliHead}
