"""Samplers: plain functions with one signature, from pure noise to x_0 (B, L, P_r) and c_0 (B, L, P_d).

`ancestral` and `ddim` belong to the process in steps (MixedDiffusion), `multistep` and `euler` to that in continuous
time (JointDiffusion); the network is called once for each entry of `steps`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from timediff.diffusion import edm, gaussian, multinomial
from timediff.diffusion.joint import JointDiffusion
from timediff.diffusion.mixed import Denoiser, MixedDiffusion, NoiseSource


class Sampler(Protocol):
    def __call__(
        self,
        process: Any,
        denoise: Denoiser,
        noise: NoiseSource,
        length: int,
        steps: Any,
        *,
        tick: Callable[[], None] = ...,
    ) -> tuple[Tensor, Tensor]: ...


def ancestral(
    process: MixedDiffusion, denoise: Denoiser, noise: NoiseSource, length: int, steps: Sequence[int],
    *, tick: Callable[[], None] = lambda: None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Draws from p_θ(x_s | x_t) down the given steps; with all T of them the paper's way (Ho et al. 2020, alg. 2)."""

    def continuous(x0: Tensor, x_t: Tensor, alpha_bar_t: Tensor, alpha_bar_s: Tensor) -> Tensor:
        mean, variance = gaussian.posterior(x0, x_t, alpha_bar_t, alpha_bar_s)
        return mean + variance.sqrt() * noise.normal(length, process.continuous)

    return _descend(process, denoise, noise, length, steps, continuous, tick)


def ddim(
    process: MixedDiffusion, denoise: Denoiser, noise: NoiseSource, length: int, steps: Sequence[int],
    *, tick: Callable[[], None] = lambda: None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """DDIM for the continuous channels (Song et al. 2021), the matching strided posterior for the discrete ones."""
    return _descend(process, denoise, noise, length, steps, gaussian.ddim, tick)


def _descend(
    process: MixedDiffusion, denoise: Denoiser, noise: NoiseSource, length: int, steps: Sequence[int],
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
        output = denoise(process.join(x, c), at_t.expand(len(x))).float()
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
    process: JointDiffusion, denoise: Denoiser, noise: NoiseSource, length: int, steps: Sequence[float],
    *, tick: Callable[[], None] = lambda: None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """DPM-Solver++ (2M) (Lu et al. 2022) for the continuous channels, uncovering the discrete ones on the way."""
    return _uncover(process, denoise, noise, length, steps, edm.multistep, tick)


def euler(
    process: JointDiffusion, denoise: Denoiser, noise: NoiseSource, length: int, steps: Sequence[float],
    *, tick: Callable[[], None] = lambda: None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Euler steps of the probability-flow ODE (Karras et al. 2022), uncovering the discrete channels on the way."""
    return _uncover(process, denoise, noise, length, steps, edm.euler, tick)


def _uncover(
    process: JointDiffusion, denoise: Denoiser, noise: NoiseSource, length: int, steps: Sequence[float],
    continuous: Callable[[Tensor, Tensor, tuple[Tensor, Tensor] | None, Tensor, Tensor], Tensor],
    tick: Callable[[], None],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    x = noise.normal(length, process.continuous) * edm.SIGMA_MAX
    c = process.hidden.expand(noise.total, length, len(process.classes)).clone()
    order = noise.uniform(length, len(process.classes))  # a cell is uncovered when the level falls below its number
    for channel, u in zip(process.whole, steps, strict=False):
        _, output = process.call(denoise, x, c, x.new_full((len(x),), u))
        chosen = _drawn(process, output.mean(dim=1, keepdim=True), noise.uniform(1, len(process.classes)))
        c[..., channel] = chosen[..., channel]
        tick()
    before = None
    levels = steps[len(process.whole) :]
    for u, s in zip(levels, [*levels[1:], 0.0], strict=True):
        d, output = process.call(denoise, x, c, x.new_full((len(x),), u))
        at_u, at_s = (edm.sigma(x.new_full((1,), level, dtype=torch.float64)) for level in (u, s))
        x, before = continuous(x, d, before, at_u, at_s) if s > 0 else d, (d, at_u.log() - at_s.log())
        if process.classes:
            uncovered = (c == process.hidden) & (order >= process.covered(at_s.new_full((1,), s)).to(order.dtype))
            c = torch.where(uncovered, _drawn(process, output, noise.uniform(length, len(process.classes))), c)
        tick()
    return x, c


def _drawn(process: JointDiffusion, output: Tensor, uniform: Tensor) -> Tensor:
    """Classes (B, L, P_d) by the network's probabilities."""
    c = torch.empty(uniform.shape, dtype=torch.long, device=uniform.device)
    for group in process.groups:
        log_p = process.logits(output, group).log_softmax(-1)
        c[..., group.channels] = multinomial.draw(log_p, process.members(uniform, group))
    return c


SAMPLERS: dict[str, dict[str, Sampler]] = {
    "ddpm": {"ancestral": ancestral, "ddim": ddim},
    "edm": {"multistep": multistep, "euler": euler},
}
