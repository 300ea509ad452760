"""Mixed diffusion: one process over continuous and discrete channels of any number of classes, and the paper's loss."""

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from timediff.data.batch import Batch, Layout, OneHot
from timediff.diffusion import categorical
from timediff.diffusion.ddpm import gaussian, multinomial
from timediff.diffusion.ddpm.groups import ClassGroup, class_groups
from timediff.diffusion.ddpm.schedules import subset
from timediff.diffusion.process import STAY_LEVELS, BuildNetwork, Denoiser, Losses, NoiseSource, Process
from timediff.diffusion.samplers import DDPM_SAMPLERS

LOG_OF_NONE = math.log(1e-30)  # in place of the log of 0: −69.1


class MixedDiffusion(Process):
    """Forward process, posteriors, loss and reverse process in T steps (Tian et al., section 3).

    The network's output is the predicted noise, then logits for c_0, channel after channel. Its input are the values,
    then one-hot classes, or their logarithm (`log_input`), as Hoogeboom et al. (2021) and the authors have it.
    """

    _alpha_bar: Tensor

    def __init__(
        self, layout: Layout, build: BuildNetwork, alpha_bar: Tensor, lambda_: float = 0.01, *, log_input: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.layout, self.lambda_, self.steps, self.log_input = layout, lambda_, len(alpha_bar), log_input
        self.continuous = len(layout.continuous)
        self.denoiser = build(layout.width, layout.width)
        self.one_hot, self._groups = OneHot(layout.classes), class_groups(layout.classes)
        table = torch.cat([torch.ones(1, dtype=torch.float64), alpha_bar.double()])  # ᾱ_{−1} = 1 first
        self.register_buffer("_alpha_bar", table, persistent=False)
        # Summed over channels: what one series step adds to the bound by ending short of pure noise.
        self._prior = sum(multinomial.prior_kl(k, float(alpha_bar[-1])) for k in layout.classes)

    @property
    def groups(self) -> Iterator[ClassGroup]:
        for group in self._groups:
            assert isinstance(group, ClassGroup)
            yield group

    def alpha_bar(self, t: Tensor) -> Tensor:
        """ᾱ^(t) as (B, 1, 1), in double; t = −1 gives 1."""
        return self._alpha_bar[t + 1][:, None, None]

    def input(self, x: Tensor, c: Tensor) -> Tensor:
        """The network's: continuous values (B, L, P_r) beside one-hot classes or their log, (B, L, P_r + ΣK)."""
        hot = self.one_hot(c).to(x.dtype)
        return torch.cat([x, (hot - 1) * -LOG_OF_NONE if self.log_input else hot], dim=-1)

    def logits(self, output: Tensor, group: ClassGroup) -> Tensor:
        """The network's logits for one group of channels, (B, L, n, K)."""
        return group.logits(output[..., self.continuous :])

    def q_sample(self, x0: Tensor, c0: Tensor, t: Tensor, noise: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
        """x_t and c_t at step t (B,) with the given noise."""
        alpha_bar = self.alpha_bar(t)
        x_t, c_t = gaussian.q_sample(x0, noise, alpha_bar), torch.empty_like(c0)
        for group in self.groups:
            log_q = multinomial.log_q(group.members(c0), group.k, alpha_bar[..., None], x0.dtype)
            c_t[..., group.channels] = categorical.sample(log_q, group.members(uniform))
        return x_t, c_t

    def loss(self, batch: Batch, noise: NoiseSource) -> Losses:
        return self.loss_at(batch, noise.integers(self.steps), noise)

    def loss_at(self, batch: Batch, t: Tensor, noise: NoiseSource) -> Losses:
        """L_train = λ L_C + L_N (eq. 12) at steps t (B,)."""
        squares, bound = self._of_stays(batch, t, noise)
        zero = batch.continuous.new_zeros(())
        normal = squares.mean() if self.continuous else zero
        classes = len(self.layout.classes)
        discrete = bound.mean() / classes if bound is not None else zero
        return Losses(self.lambda_ * discrete + normal, normal, discrete)

    def stay_losses(self, batch: Batch, noise: NoiseSource) -> dict[str, Tensor]:
        found: dict[str, list[Tensor]] = {}
        for k in range(STAY_LEVELS):
            t = torch.full((len(batch),), int((k + 0.5) / STAY_LEVELS * self.steps), device=batch.device)
            squares, bound = self._of_stays(batch, t, noise)
            if self.continuous:
                found.setdefault("values", []).append(squares.mean(dim=(1, 2)))
            if bound is not None:
                found.setdefault("classes", []).append(bound / len(self.layout.classes))
        return {name: torch.stack(losses, dim=1) for name, losses in found.items()}

    def _of_stays(self, batch: Batch, t: Tensor, noise: NoiseSource) -> tuple[Tensor, Tensor | None]:
        """Squared errors of the predicted noise (B, L, P_r), and the bound of each stay's classes (B,)."""
        x0, c0 = batch.continuous, batch.discrete.long()
        eps, uniform = noise.normal(*x0.shape[1:]), noise.uniform(*c0.shape[1:])
        x_t, c_t = self.q_sample(x0, c0, t, eps, uniform)
        output = self.denoiser(self.input(x_t, c_t), t).float()
        bound = self.discrete_bound(output, c0, c_t, t) if self.layout.classes else None
        return (output[..., : self.continuous] - eps).square(), bound

    def divergence(self, output: Tensor, c0: Tensor, c_t: Tensor, t: Tensor) -> Tensor:
        """L_t of each stay (B,): KL(q(c_{t−1} | c_t, c_0) ‖ p_θ(c_{t−1} | c_t)) summed over channels and series steps.

        At t = 0 the first distribution is c_0 itself, so the divergence is the negative log-likelihood of c_0.
        """
        total = output.new_zeros(len(output))
        alpha_bar_t, alpha_bar_s = self.alpha_bar(t)[..., None], self.alpha_bar(t - 1)[..., None]
        for group in self.groups:
            c_t_group = group.members(c_t)
            hot = multinomial.log_one_hot(group.members(c0), group.k, output.dtype)
            target = multinomial.log_posterior(hot, c_t_group, alpha_bar_t, alpha_bar_s)
            log_c0 = self.logits(output, group).log_softmax(-1)
            model = multinomial.log_posterior(log_c0, c_t_group, alpha_bar_t, alpha_bar_s)
            total = total + multinomial.kl(target, model).sum(dim=(1, 2))
        return total

    def discrete_bound(self, output: Tensor, c0: Tensor, c_t: Tensor, t: Tensor) -> Tensor:
        """An unbiased estimate of the whole bound of each stay (B,): T · L_t, plus the prior term."""
        return self.steps * self.divergence(output, c0, c_t, t) + self._prior * c0.shape[1]

    def calls(self, length: int, *, sampler: str, steps: int | None = None) -> int:
        return len(subset(self.steps, steps))

    def sample(
        self, noise: NoiseSource, lengths: Tensor, *, sampler: str, steps: int | None = None,
        denoisers: Sequence[Denoiser] | None = None, tick: Callable[[], None] = lambda: None,
    ) -> Batch:  # fmt: skip
        """The reverse process down some or all of the T steps (Ho et al. 2020, alg. 2)."""
        reverse, (network,) = DDPM_SAMPLERS(sampler), denoisers or self.denoisers
        length, times = int(lengths.max()), subset(self.steps, steps)
        x = noise.normal(length, self.continuous)
        c = self._uniform_classes(noise, length)
        for t, s in zip(times, [*times[1:], -1], strict=True):
            at_t, at_s = x.new_full((1,), t, dtype=torch.long), x.new_full((1,), s, dtype=torch.long)
            alpha_bar_t, alpha_bar_s = self.alpha_bar(at_t), self.alpha_bar(at_s)
            output = network(self.input(x, c), at_t.expand(len(x))).float()
            if self.continuous:
                x0 = gaussian.predict_x0(x, output[..., : self.continuous], alpha_bar_t).clamp_(-1, 1)
                x = reverse(x0, x, alpha_bar_t, alpha_bar_s, noise)
            if self.layout.classes:
                c = self._reverse_classes(output, c, alpha_bar_t[..., None], alpha_bar_s[..., None], noise)
            tick()
        return Batch(x, c, lengths)

    def _uniform_classes(self, noise: NoiseSource, length: int) -> Tensor:
        """c_T: every class is as likely."""
        uniform = noise.uniform(length, len(self.layout.classes))
        c = torch.empty(uniform.shape, dtype=torch.long, device=uniform.device)
        for group in self.groups:
            c[..., group.channels] = (group.members(uniform) * group.k).long().clamp_(max=group.k - 1)
        return c

    def _reverse_classes(
        self, output: Tensor, c_t: Tensor, alpha_bar_t: Tensor, alpha_bar_s: Tensor, noise: NoiseSource
    ) -> Tensor:
        """c_s from p_θ(c_s | c_t)."""
        uniform, c_s = noise.uniform(*c_t.shape[1:]), torch.empty_like(c_t)
        for group in self.groups:
            log_c0 = self.logits(output, group).log_softmax(-1)
            log_p = multinomial.log_posterior(log_c0, group.members(c_t), alpha_bar_t, alpha_bar_s)
            c_s[..., group.channels] = categorical.sample(log_p, group.members(uniform))
        return c_s
