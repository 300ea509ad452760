"""Natural cubic splines of many series at once: the paths that control a neural CDE (Kidger et al. 2020).

Steps are one apart. A spline goes through what was observed of each column; where the first or last step was not, it
goes through what stands there in its place.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Spline(NamedTuple):
    values: Tensor  # (B, L, P) at every step
    curvature: Tensor  # (B, L, P), second derivatives there; linear in between

    def __call__(self, t: float) -> Tensor:
        """(B, P) at time t, from 0 to L − 1."""
        i, u = self._place(t)
        if u == 0:
            return self.values[:, i]
        v, (y, after, m, m_after) = 1 - u, self._around(i)
        return v * y + u * after + ((v**3 - v) * m + (u**3 - u) * m_after) / 6

    def derivative(self, t: float) -> Tensor:
        i, u = self._place(t)
        v, (y, after, m, m_after) = 1 - u, self._around(i)
        return after - y + ((1 - 3 * v**2) * m + (3 * u**2 - 1) * m_after) / 6

    def _place(self, t: float) -> tuple[int, float]:
        i = min(int(t), max(0, self.values.shape[1] - 2))
        return i, t - i

    def _around(self, i: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return self.values[:, i], self.values[:, i + 1], self.curvature[:, i], self.curvature[:, i + 1]


@torch.no_grad()
def natural_cubic_spline(values: Tensor, observed: Tensor | None = None) -> Spline:
    """Through values (B, L, P), or through those of them that were observed."""
    last = values.shape[1] - 1
    knots = torch.ones_like(values[:1, :, :1], dtype=torch.bool) if observed is None else observed
    steps = torch.arange(last + 1, device=values.device)[:, None].expand(knots.shape)
    before = (steps * knots).cummax(dim=1).values  # the knot at each step, or the last before it, or the first step
    after = (last - (last - steps) * knots).flip(1).cummin(dim=1).values.flip(1)
    previous, following = before.roll(1, dims=1), after.roll(-1, dims=1)  # of a knot that is neither first nor last
    gap, next_gap = (steps - previous).to(values), (following - steps).to(values)
    rise = (values - _at(values, previous)) / gap
    next_rise = (_at(values, following) - values) / next_gap

    # Second derivatives M at the knots: gap M₋ + 2 (gap + next_gap) M + next_gap M₊ = 6 (next_rise − rise), and 0 at
    # both ends. The system is tridiagonal; what is no knot passes on what it is given.
    zero = torch.zeros_like(values[:, 0])
    factors, rests = [zero], [zero]
    for i in range(1, last):
        pivot = 2 * (gap[:, i] + next_gap[:, i]) - gap[:, i] * factors[-1]
        factors.append(torch.where(knots[:, i], next_gap[:, i] / pivot, factors[-1]))
        rest = (6 * (next_rise[:, i] - rise[:, i]) - gap[:, i] * rests[-1]) / pivot
        rests.append(torch.where(knots[:, i], rest, rests[-1]))
    found = [zero]
    for i in range(last - 1, 0, -1):
        found.append(torch.where(knots[:, i], rests[i] - factors[i] * found[-1], found[-1]))
    curvature = torch.stack([*found, zero][: last + 1][::-1], dim=1)
    return Spline(values, curvature) if observed is None else _filled(values, curvature, knots, steps, before, after)


def _filled(values: Tensor, curvature: Tensor, knots: Tensor, steps: Tensor, before: Tensor, after: Tensor) -> Spline:
    """The same spline with a knot at every step."""
    width = (after - before).clamp(min=1).to(values)
    u = (steps - before).to(values) / width
    v = 1 - u
    m, m_after = _at(curvature, before), _at(curvature, after)
    bent = width**2 / 6 * ((v**3 - v) * m + (u**3 - u) * m_after)
    between = v * _at(values, before) + u * _at(values, after) + bent
    return Spline(torch.where(knots, values, between), torch.where(knots, curvature, v * m + u * m_after))


def _at(values: Tensor, steps: Tensor) -> Tensor:
    return values.gather(1, steps.expand(values.shape))
