"""Samplers: plain functions with one signature, from pure noise to x_0 (B, L, P_r) and c_0 (B, L, P_d).

`ancestral` and `ddim` belong to the process in steps (MixedDiffusion), `multistep` and `euler` to that in continuous
time (StagedDiffusion); the network is called as often as `steps` is long.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from timediff.diffusion import edm, gaussian, multinomial
from timediff.diffusion.mixed import Denoiser, MixedDiffusion, NoiseSource
from timediff.diffusion.staged import Parts, Plan, StagedDiffusion, told_hidden, told_noise


class Sampler(Protocol):
    def __call__(
        self,
        process: Any,
        network: Any,
        noise: NoiseSource,
        length: int,
        steps: Any,
        *,
        tick: Callable[[], None] = ...,
    ) -> tuple[Tensor, Tensor]: ...


def ancestral(
    process: MixedDiffusion, network: Denoiser, noise: NoiseSource, length: int, steps: Sequence[int],
    *, tick: Callable[[], None] = lambda: None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Draws from p_θ(x_s | x_t) down the given steps; with all T of them the paper's way (Ho et al. 2020, alg. 2)."""

    def continuous(x0: Tensor, x_t: Tensor, alpha_bar_t: Tensor, alpha_bar_s: Tensor) -> Tensor:
        mean, variance = gaussian.posterior(x0, x_t, alpha_bar_t, alpha_bar_s)
        return mean + variance.sqrt() * noise.normal(length, process.continuous)

    return _descend(process, network, noise, length, steps, continuous, tick)


def ddim(
    process: MixedDiffusion, network: Denoiser, noise: NoiseSource, length: int, steps: Sequence[int],
    *, tick: Callable[[], None] = lambda: None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """DDIM for the continuous channels (Song et al. 2021), the matching strided posterior for the discrete ones."""
    return _descend(process, network, noise, length, steps, gaussian.ddim, tick)


def _descend(
    process: MixedDiffusion, network: Denoiser, noise: NoiseSource, length: int, steps: Sequence[int],
    continuous: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor], tick: Callable[[], None],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    x = noise.normal(length, process.continuous)
    c = torch.empty((noise.total, length, len(process.classes)), dtype=torch.long, device=x.device)
    uniform = noise.uniform(length, len(process.classes))
    for group in process.groups:
        c[..., group.channels] = (process.members(uniform, group) * group.k).long().clamp_(max=group.k - 1)
    for t, s in zip(steps, [*steps[1:], -1], strict=True):
        at_t, at_s = x.new_full((1,), t, dtype=torch.long), x.new_full((1,), s, dtype=torch.long)
        alpha_bar_t, alpha_bar_s = process.alpha_bar(at_t), process.alpha_bar(at_s)
        output = network(process.join(x, c), at_t.expand(len(x))).float()
        if process.continuous:
            x0 = gaussian.predict_x0(x, output[..., : process.continuous], alpha_bar_t).clamp_(-1, 1)
            x = continuous(x0, x, alpha_bar_t, alpha_bar_s)
        if process.groups:
            uniform, previous = noise.uniform(length, len(process.classes)), c
            c = torch.empty_like(c)
            for group in process.groups:
                log_c0 = process.logits(output, group).log_softmax(-1)
                c_t = process.members(previous, group)
                log_p = multinomial.log_posterior(log_c0, c_t, alpha_bar_t[..., None], alpha_bar_s[..., None])
                c[..., group.channels] = multinomial.draw(log_p, process.members(uniform, group))
        tick()
    return x, c


def multistep(
    process: StagedDiffusion, network: Parts, noise: NoiseSource, length: int, steps: Plan,
    *, tick: Callable[[], None] = lambda: None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Classes first, then DPM-Solver++ (2M) (Lu et al. 2022) for the values."""
    return _staged(process, network, noise, length, steps, edm.multistep, tick)


def euler(
    process: StagedDiffusion, network: Parts, noise: NoiseSource, length: int, steps: Plan,
    *, tick: Callable[[], None] = lambda: None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Classes first, then Euler steps of the probability-flow ODE (Karras et al. 2022) for the values."""
    return _staged(process, network, noise, length, steps, edm.euler, tick)


def _staged(
    process: StagedDiffusion, network: Parts, noise: NoiseSource, length: int, plan: Plan,
    continuous: Callable[[Tensor, Tensor, tuple[Tensor, Tensor] | None, Tensor, Tensor], Tensor],
    tick: Callable[[], None],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    stays, start = noise.total, noise.normal(length, process.continuous)
    uniform = noise.uniform(len(process.stay))
    whole = network.stay.draw(start.new_zeros(stays, network.stay.width), _by(uniform))
    stay_hot = process.stay_hot(whole)
    c = whole.new_zeros((stays, length, len(process.cells)))
    hidden = torch.ones((stays, length), dtype=torch.bool, device=c.device)
    order = noise.uniform(length).argsort(dim=1)  # steps are uncovered from its end
    for count, left in zip(plan.hidden, [*plan.hidden[1:], 0], strict=False):
        told = told_hidden(start.new_full((stays,), count / length))
        seen = process.input(torch.zeros_like(start), process.cells_hot(c), hidden, stay_hot)
        output = network.rnn(seen, told)[..., process.continuous :]
        uncovered = order[:, left:count]
        picked = output.gather(1, uncovered[..., None].expand(-1, -1, output.shape[-1]))
        drawn = network.cells.draw(picked, _by(noise.uniform(count - left, len(process.cells))))
        c = c.scatter(1, uncovered[..., None].expand_as(drawn), drawn)
        hidden = hidden.scatter(1, uncovered, False)
        tick()
    x, before, hot = start * edm.SIGMA_MAX, None, process.cells_hot(c)
    hidden = torch.zeros_like(hidden)
    for now, then in zip(plan.sigmas, [*plan.sigmas[1:], 0.0], strict=False):
        at, after = (start.new_full((1,), level, dtype=torch.float64) for level in (now, then))
        told = told_noise(at).to(start.dtype).expand(stays)
        output = network.rnn(process.input(edm.scaled_input(x, at), hot, hidden, stay_hot), told)
        d = edm.denoised(x, output[..., : process.continuous].float(), at)
        x, before = continuous(x, d, before, at, after) if then > 0 else d, (d, at.log() - after.log())
        tick()
    classes = torch.empty((stays, length, len(process.cells) + len(process.stay)), dtype=torch.long, device=c.device)
    classes[..., process.over_time], classes[..., process.whole] = c, whole[:, None].expand(-1, length, -1)
    return x, classes


def _by(uniform: Tensor) -> Callable[[Tensor, int], Tensor]:
    """A choice of classes by these uniform numbers (…, n)."""
    return lambda log_p, channel: multinomial.draw(log_p, uniform[..., channel])


SAMPLERS: dict[str, dict[str, Sampler]] = {
    "ddpm": {"ancestral": ancestral, "ddim": ddim},
    "edm": {"multistep": multistep, "euler": euler},
}
