"""Staged diffusion: a stay is drawn in three stages, each given those before it.

1. The classes of the whole stay (outcome, sex), one given those before it.
2. The classes of its steps (what is missing, categories), by absorbing diffusion over whole steps (Austin et al. 2021):
   a step is hidden or known, and steps are uncovered in random order. One at a time, as here wherever there are calls
   enough, this is an order-agnostic autoregressive model (Hoogeboom et al. 2022), with no error of its own. All classes
   of a step are drawn together.
3. Its values, by EDM (Karras et al. 2022), once it is known where there are any.

Masks that are uncovered beside half-finished values would follow the traces that filled values leave in these; so what
is missing would come out too rare.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from timediff.diffusion import edm
from timediff.diffusion.channels import one_hot_columns
from timediff.diffusion.mixed import Denoiser, Losses, NoiseSource

SHARE = 0.5  # of the training stays, from which the classes of steps are learnt; from the others, values
WHOLE = 0.1  # weight of the whole-stay classes, which are learnt soon and by weights of their own
EMBEDDED = 1000.0  # noise levels are told to the network on the scale of diffusion steps
AFTER = 2.0  # the level told of stage 2 is AFTER + the share of hidden steps: above every log σ / 4 of stage 3


class Classes(Protocol):
    """Draws the classes (…, n) of several channels from a start (…, width); see networks/chain.py."""

    @property
    def width(self) -> int: ...
    def draw(self, start: Tensor, choose: Callable[[Tensor, int], Tensor]) -> Tensor: ...


class Parts(Protocol):
    """What a sampler needs of a network; see networks/staged.py."""

    @property
    def rnn(self) -> Denoiser: ...
    @property
    def cells(self) -> Classes: ...
    @property
    def stay(self) -> Classes: ...


@dataclass(frozen=True)
class Plan:
    """The network calls of a sampler: the number of hidden steps at each of stage 2, the noise at each of stage 3."""

    hidden: tuple[int, ...]
    sigmas: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.hidden) + len(self.sigmas)


def told_hidden(share: Tensor) -> Tensor:
    """What the network is told of stage 2, by the share of hidden steps."""
    return EMBEDDED * (AFTER + share)


def told_noise(sigma: Tensor) -> Tensor:
    """What the network is told of stage 3."""
    return EMBEDDED * edm.told(sigma)


class StagedDiffusion:
    """Forward process and loss; `whole` says which discrete channels repeat one class over the stay."""

    def __init__(
        self, continuous: int, classes: tuple[int, ...], whole: tuple[bool, ...], lambda_: float = 1.0,
        device: torch.device | str = "cpu",
    ) -> None:  # fmt: skip
        self.continuous, self.lambda_ = continuous, lambda_
        self.cells = tuple(k for k, one in zip(classes, whole, strict=True) if not one)
        self.stay = tuple(k for k, one in zip(classes, whole, strict=True) if one)
        each = torch.tensor(whole, dtype=torch.bool)
        # Positions among the discrete channels.
        self.whole, self.over_time = (which.nonzero()[:, 0].to(device) for which in (each, ~each))
        self.inputs = continuous + sum(self.cells) + 1 + sum(self.stay)
        self._cells, self._stay = one_hot_columns(self.cells, device), one_hot_columns(self.stay, device)

    def schedule(self, calls: int | None, length: int) -> Plan:
        """At most two thirds of the calls uncover steps, the others are for values; at least one for each."""
        calls = calls or 72
        first = min(length, max(1, 2 * calls // 3) if self.continuous else calls) if self.cells else 0
        hidden = tuple(round(length * (1 - i / first)) for i in range(first))
        return Plan(hidden, edm.levels(max(1, calls - first)) if self.continuous else ())

    def input(self, x: Tensor, hot: Tensor, hidden: Tensor, stay_hot: Tensor) -> Tensor:
        """(B, L, inputs): scaled values, classes of steps but of hidden ones, which are hidden, classes of the stay."""
        hide = hidden[..., None].to(x.dtype)
        return torch.cat([x, hot * (1 - hide), hide, stay_hot[:, None].expand(-1, x.shape[1], -1)], dim=-1)

    def cells_hot(self, c: Tensor) -> Tensor:
        """One-hot columns (…, ΣK) of classes of steps (…, n)."""
        owner, which = self._cells
        return (c[..., owner] == which).float()

    def stay_hot(self, c: Tensor) -> Tensor:
        """One-hot columns (…, ΣK) of classes of whole stays (…, m)."""
        owner, which = self._stay
        return (c[..., owner] == which).float()

    def times(self, noise: NoiseSource) -> Tensor:
        """Where to train, (B,): below SHARE stage 2, from there on stage 3, each from none to all of its noise."""
        return noise.spread()

    def loss(self, network: torch.nn.Module, x0: Tensor, c0: Tensor, t: Tensor, noise: NoiseSource) -> Losses:
        """EDM's loss, and the absorbing bound a step, each of the stays whose stage it is."""
        length, share = x0.shape[1], (SHARE if self.continuous else 1.0) if self.cells else 0.0
        second = t < share
        level = torch.where(second, t / max(share, 1e-9), (t - share) / max(1 - share, 1e-9))
        count = torch.where(second, 1 + (level * length).long().clamp(max=length - 1), 0)
        hidden = noise.uniform(length).argsort(dim=1).argsort(dim=1) < count[:, None]
        sigma = edm.sigma(level)
        x = x0 + sigma[:, None, None].to(x0.dtype) * noise.normal(*x0.shape[1:])
        scaled = edm.scaled_input(x, sigma[:, None, None]) * (~second)[:, None, None]
        c, whole = c0[..., self.over_time], c0[:, 0, self.whole]
        hot, whole_hot = self.cells_hot(c), self.stay_hot(whole)
        told = torch.where(second, told_hidden(count / length), told_noise(sigma).to(t.dtype))
        answers = network(self.input(scaled, hot, hidden, whole_hot), told, c, hot, whole, whole_hot)

        zero = x0.new_zeros(())
        normal = cells = stay = zero
        if self.continuous:
            d = edm.denoised(x, answers.values, sigma[:, None, None])
            of_stay = (d - x0).square().mean(dim=(1, 2)) * edm.weight(sigma).to(x0.dtype)
            normal = (of_stay * ~second).mean() / (1 - share)
        if self.cells:
            of_stay = (answers.cells.sum(dim=2) * hidden).sum(dim=1) / count.clamp(min=1)
            cells = of_stay.mean() / share
        if self.stay:
            stay = answers.stay.sum(dim=1).mean()
        return Losses(normal + self.lambda_ * cells / max(1, self.continuous) + WHOLE * stay, normal, cells)
