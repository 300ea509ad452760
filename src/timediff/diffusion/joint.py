"""Joint diffusion: continuous channels (EDM) and discrete ones (absorbing) at one noise level u in (0, 1).

A discrete cell is hidden with probability h(u) and is its own class otherwise (absorbing or masked diffusion: Austin et
al. 2021; its bound is a weighted cross-entropy: Sahoo et al. 2024). h falls from 1 at u = 1 to 0 at u = `lead`: with a
lead, what is missing is settled while the values are still mostly noise, and the values follow from it. Classes that
belong to a whole stay are drawn first, one given those before it, at u = 1, where nothing else is known: so they have
their own joint distribution, and the series follow from them.
"""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from timediff.diffusion import edm
from timediff.diffusion.channels import Channels, one_hot_columns
from timediff.diffusion.mixed import Denoiser, Losses, NoiseSource

FIRST = 0.15  # share of training stays from which the drawing of whole-stay classes is learnt
LEAST = 0.03  # of h in the weight 1/h of a hidden cell: below, hardly one is hidden, and the estimate would be wild
WHOLE = 0.1  # weight of the whole-stay classes, which are learnt soon
EMBEDDED = 1000.0  # levels are told to the network on the scale of diffusion steps


class JointDiffusion(Channels):
    """Forward process and loss; `whole` says which discrete channels repeat one class over the stay."""

    def __init__(
        self, continuous: int, classes: tuple[int, ...], whole: tuple[bool, ...], lambda_: float = 1.0,
        lead: float = 0.0, device: torch.device | str = "cpu",
    ) -> None:  # fmt: skip
        super().__init__(continuous, classes, device)
        self.lambda_, self.lead = lambda_, lead
        self.inputs = self.width + len(classes)  # one more column a discrete channel, for "hidden"
        self._owner, self._which = one_hot_columns(tuple(k + 1 for k in classes), device)
        self.hidden = torch.tensor(classes, dtype=torch.long, device=device)  # the state after the last class
        self.whole = [i for i, one in enumerate(whole) if one]
        self._over_time = ~torch.tensor(whole, dtype=torch.bool, device=device)  # (P_d,)

    def covered(self, u: Tensor) -> Tensor:
        """h(u): the probability that a cell is hidden."""
        return ((u - self.lead) / (1 - self.lead)).clamp(min=0)

    def times(self, noise: NoiseSource) -> Tensor:
        """Levels to train at, (B,)."""
        return noise.uniform()

    def schedule(self, calls: int | None) -> list[float]:
        """The levels at which a sampler calls the network: 1 for each whole-stay channel, then down to 0."""
        series = max(1, (calls or 64) - len(self.whole))
        return [1.0] * len(self.whole) + [1 - i / series for i in range(series)]

    def call(self, denoise: Denoiser, x: Tensor, c: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        """D(x; σ(u)) and the network's output, for levels u (B,)."""
        sigma = edm.sigma(u)[:, None, None]
        hot = (c[..., self._owner] == self._which).to(x.dtype)
        output = denoise(torch.cat([edm.scaled_input(x, sigma), hot], dim=-1), EMBEDDED * u).float()
        return edm.denoised(x, output[..., : self.continuous], sigma), output

    def loss(self, denoise: Denoiser, x0: Tensor, c0: Tensor, t: Tensor, noise: NoiseSource) -> Losses:
        """EDM's loss, and the absorbing bound a cell; of some stays only that of their whole-stay classes."""
        first = noise.uniform() < (FIRST if self.whole else 0)
        series = (~first).to(x0.dtype) / (1 - (FIRST if self.whole else 0))  # (B,)
        u = torch.where(first, 1.0, t.float())
        x = x0 + edm.sigma(u)[:, None, None].to(x0.dtype) * noise.normal(*x0.shape[1:])
        covered = self.covered(u)
        hide = (noise.uniform(*c0.shape[1:]) < covered[:, None, None]) & self._over_time
        told = self._told(first, c0, noise)
        d, output = self.call(denoise, x, torch.where(hide | told[:, None], self.hidden, c0), u)
        zero = output.new_zeros(())
        weight = edm.weight(edm.sigma(u)).float() * series
        normal = ((d - x0).square().mean(dim=(1, 2)) * weight).mean() if self.continuous else zero
        cells = zero
        if self._over_time.any():
            rate = 1 / ((1 - self.lead) * covered.clamp(min=LEAST))  # −h′/h of the bound
            bound = (self._surprise(output, c0) * hide).sum(dim=(1, 2)) * rate
            cells = (bound * series).mean() / (c0.shape[1] * int(self._over_time.sum()))
        total = normal + self.lambda_ * cells * (int(self._over_time.sum()) / max(1, self.continuous))
        if self.whole:
            pooled = output.mean(dim=1, keepdim=True)
            surprise = (self._surprise(pooled, c0[:, :1])[:, 0] * told).sum(dim=1).mean()
            total = total + WHOLE * surprise / (FIRST * (len(self.whole) + 1) / 2)
        return Losses(total, normal, cells)

    def _told(self, first: Tensor, c0: Tensor, noise: NoiseSource) -> Tensor:
        """Which whole-stay channels are hidden, (B, P_d): of stays in `first` all but a random few, of others none."""
        told = torch.zeros((len(c0), len(self.classes)), dtype=torch.bool, device=c0.device)
        if self.whole:
            known = noise.integers(len(self.whole))
            rank = noise.uniform(len(self.whole)).argsort(dim=1).argsort(dim=1)
            told[:, self.whole] = first[:, None] & (rank >= known[:, None])
        return told

    def _surprise(self, output: Tensor, c0: Tensor) -> Tensor:
        """−log p(c_0) of every cell, (B, L, P_d)."""
        out = output.new_zeros(c0.shape)
        for group in self.groups:
            logits = self.logits(output, group)
            wanted = self.members(c0, group)
            out[..., group.channels] = cross_entropy(
                logits.reshape(-1, group.k), wanted.reshape(-1), reduction="none"
            ).view(wanted.shape)
        return out
