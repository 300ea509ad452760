"""Mixed diffusion: one process over continuous and discrete channels of any number of classes, and the paper's loss."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from timediff.diffusion import gaussian, multinomial
from timediff.diffusion.channels import Channels, one_hot_columns
from timediff.diffusion.schedules import subset

# (B, L, P_r + ΣK) and t (B,) → the same shape: predicted noise, then logits for c_0, channel after channel.
Denoiser = Callable[[Tensor, Tensor], Tensor]


class NoiseSource(Protocol):
    """Where noise comes from; an argument, so that a test can fix it."""

    @property
    def total(self) -> int: ...
    def normal(self, *shape: int) -> Tensor: ...
    def uniform(self, *shape: int) -> Tensor: ...
    def integers(self, high: int) -> Tensor: ...
    def spread(self) -> Tensor: ...


class Losses(NamedTuple):
    total: Tensor
    gaussian: Tensor
    multinomial: Tensor


class MixedDiffusion(Channels):
    """Forward process, posteriors and loss, for `continuous` channels and discrete ones of `classes` classes."""

    def __init__(
        self, continuous: int, classes: tuple[int, ...], alpha_bar: Tensor, lambda_: float = 0.01,
        device: torch.device | str = "cpu",
    ) -> None:  # fmt: skip
        super().__init__(continuous, classes, device)
        self.lambda_, self.steps = lambda_, len(alpha_bar)
        self._table = torch.cat([torch.ones(1, dtype=torch.float64), alpha_bar.double()]).to(device)  # ᾱ_{−1} = 1 first
        self._owner, self._which = one_hot_columns(classes, device)
        # Summed over channels: what one series step adds to the bound by ending short of pure noise.
        self._prior = sum(multinomial.prior_kl(k, float(alpha_bar[-1])) for k in classes)

    def alpha_bar(self, t: Tensor) -> Tensor:
        """ᾱ^(t) as (B, 1, 1), in double; t = −1 gives 1."""
        return self._table[t + 1][:, None, None]

    def join(self, x: Tensor, c: Tensor) -> Tensor:
        """The network's input: continuous values (B, L, P_r) beside one-hot classes, (B, L, P_r + ΣK)."""
        hot = (c[..., self._owner] == self._which).to(x.dtype)
        return torch.cat([x, hot], dim=-1)

    def times(self, noise: NoiseSource) -> Tensor:
        """Steps to train at, (B,)."""
        return noise.integers(self.steps)

    def schedule(self, calls: int | None, length: int = 0) -> list[int]:
        """The steps at which a sampler calls the network, whatever the length of the series."""
        return subset(self.steps, calls)

    def q_sample(self, x0: Tensor, c0: Tensor, t: Tensor, noise: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
        """x_t and c_t drawn at step t (B,) with the given noise."""
        alpha_bar = self.alpha_bar(t)
        x_t, c_t = gaussian.q_sample(x0, noise, alpha_bar), torch.empty_like(c0)
        for group in self.groups:
            log_q = multinomial.log_q(self.members(c0, group), group.k, alpha_bar[..., None], x0.dtype)
            c_t[..., group.channels] = multinomial.draw(log_q, self.members(uniform, group))
        return x_t, c_t

    def loss(self, denoise: Denoiser, x0: Tensor, c0: Tensor, t: Tensor, noise: NoiseSource) -> Losses:
        """L_train = λ L_C + L_N (eq. 12) of stays (B, L, ·) at steps t (B,)."""
        eps, uniform = noise.normal(*x0.shape[1:]), noise.uniform(*c0.shape[1:])
        x_t, c_t = self.q_sample(x0, c0, t, eps, uniform)
        output = denoise(self.join(x_t, c_t), t).float()
        zero = output.new_zeros(())
        normal = (output[..., : self.continuous] - eps).square().mean() if self.continuous else zero
        discrete = self.discrete_bound(output, c0, c_t, t).mean() / len(self.classes) if self.classes else zero
        return Losses(self.lambda_ * discrete + normal, normal, discrete)

    def divergence(self, output: Tensor, c0: Tensor, c_t: Tensor, t: Tensor) -> Tensor:
        """L_t of each stay (B,): KL(q(c_{t−1} | c_t, c_0) ‖ p_θ(c_{t−1} | c_t)) summed over channels and series steps.

        At t = 0 the first distribution is c_0 itself, so the divergence is the negative log-likelihood of c_0.
        """
        total = output.new_zeros(len(output))
        alpha_bar_t, alpha_bar_s = self.alpha_bar(t)[..., None], self.alpha_bar(t - 1)[..., None]
        for group in self.groups:
            c_t_group = self.members(c_t, group)
            hot = multinomial.log_one_hot(self.members(c0, group), group.k, output.dtype)
            target = multinomial.log_posterior(hot, c_t_group, alpha_bar_t, alpha_bar_s)
            log_c0 = self.logits(output, group).log_softmax(-1)
            model = multinomial.log_posterior(log_c0, c_t_group, alpha_bar_t, alpha_bar_s)
            total = total + multinomial.kl(target, model).sum(dim=(1, 2))
        return total

    def discrete_bound(self, output: Tensor, c0: Tensor, c_t: Tensor, t: Tensor) -> Tensor:
        """An unbiased estimate of the whole bound of each stay (B,): T · L_t, plus the prior term."""
        return self.steps * self.divergence(output, c0, c_t, t) + self._prior * c0.shape[1]
