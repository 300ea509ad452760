"""Absorbing diffusion whose steps are uncovered in the order of time: an autoregressive model.

First all static values, then one step after the other: how each feature is recorded, and its value, each given those
before it. The likelihood is exact, so the loss of held-out stays sees repeats, lattices and relations as well as
levels. A causal network reads what has been; nothing is denoised twice.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from timediff.data.batch import Batch, Layout
from timediff.diffusion.autoregressive.head import FURTHEST, StepHead
from timediff.diffusion.autoregressive.memory import Memory, last
from timediff.diffusion.process import BuildNetwork, Denoiser, Losses, NoiseSource, Process

PERSISTENCE = 0.7  # of a value at the start of training: the fraction of the last one that is expected
CLOCK = 3  # columns that say which step it is


class StayLosses(NamedTuple):
    """−log p of stays: of classes and values a step (B, L), and of what is static (B,)."""

    classes: Tensor
    values: Tensor
    static: Tensor


class Autoregressive(Process):
    of_class: Tensor  # (n,) of the terms of a step: 1 of a class, 0 of a value
    temporal_at: Tensor
    static_at: Tensor
    temporal_values: Tensor
    static_values: Tensor

    def __init__(self, layout: Layout, build: BuildNetwork, lambda_: float = 1.0, *, units: int, mixture: int) -> None:
        super().__init__()
        self.layout, self.lambda_ = layout, lambda_
        channels = {
            static: (
                [i for i, channel in enumerate(layout.discrete) if channel.static is static],
                [i for i, channel in enumerate(layout.continuous) if channel.static is static],
            )
            for static in (False, True)
        }
        heads = {
            static: StepHead([layout.discrete[i] for i in c], [layout.continuous[i] for i in x], units, mixture)
            for static, (c, x) in channels.items()
        }
        places = {
            "temporal_at": channels[False][0], "static_at": channels[True][0],
            "temporal_values": channels[False][1], "static_values": channels[True][1],
        }  # fmt: skip
        is_class = [term.kind == "class" for term in heads[False].terms]
        self.register_buffer("of_class", torch.tensor(is_class, dtype=torch.float32), persistent=False)
        for name, place in places.items():
            self.register_buffer(name, torch.tensor(place, dtype=torch.long), persistent=False)
        self.step_head, self.static_head = heads[False], heads[True]
        p = self.step_head.values
        self.memory = Memory(self.step_head)
        inputs = self.step_head.columns + self.memory.columns + self.static_head.columns + CLOCK
        self.denoiser = build(inputs, max(1, self.step_head.width))
        self.carry = nn.Parameter(PERSISTENCE * torch.eye(p))  # of last values, what is expected of the next

    def loss(self, batch: Batch, noise: NoiseSource) -> Losses:
        """The mean of −log p a step; with λ = 1 no term has another weight."""
        each = self._of_stays(batch, noise)
        values, classes = each.values.mean(), each.classes.mean()
        total = values + self.lambda_ * classes + each.static.mean() / batch.steps
        return Losses(total, values, classes)

    def stay_losses(self, batch: Batch, noise: NoiseSource) -> dict[str, Tensor]:
        each = self._of_stays(batch, noise)
        found = {"values": each.values.sum(dim=1), "classes": each.classes.sum(dim=1), "static": each.static}
        there = self.step_head.values, self.step_head.one_hot.classes, self.static_head.terms
        return {f"nll of {name}": found[name][:, None] for name, any_ in zip(found, there, strict=True) if any_}

    def _of_stays(self, batch: Batch, noise: NoiseSource) -> StayLosses:
        c, x = batch.discrete.long(), batch.continuous
        intervals = x[..., None].expand(*x.shape, 2) if batch.intervals is None else batch.intervals
        static = self._parts(c[:, 0], x[:, 0], intervals[:, 0], self.static_at, self.static_values)
        temporal = self._parts(c, x, intervals, self.temporal_at, self.temporal_values)
        # Any number that is decoded as the value may stand for it, as it may when sampling.
        s_x = _somewhere(*static[1:], noise.uniform(len(self.static_values)))
        t_x = _somewhere(*temporal[1:], noise.uniform(batch.steps, len(self.temporal_values)))
        columns = self.static_head.column(static[0], s_x, self.static_head.meanings(static[0]).known)
        start = s_x.new_zeros((len(c), self.static_head.width))
        expected = self.static_head.expected(torch.zeros_like(s_x), columns)
        of_static = self.static_head(start, columns, static[0], static[2], expected).sum(dim=-1)
        terms = self._of_steps(temporal[0], t_x, temporal[2], columns)
        of_classes = (terms * self.of_class).sum(dim=-1)
        return StayLosses(of_classes, terms.sum(dim=-1) - of_classes, of_static)

    @staticmethod
    def _parts(
        c: Tensor, x: Tensor, intervals: Tensor, classes: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        return c[..., classes], x[..., values], intervals[..., values, :]

    def _of_steps(self, c: Tensor, x: Tensor, intervals: Tensor, static: Tensor) -> Tensor:
        """−log p of every term of every step, (B, L, n)."""
        said, steps = self.step_head.meanings(c), torch.arange(c.shape[1], device=c.device)
        # A repeat is where the value was that it repeats; of none, at 0, as sampled.
        x = torch.where(said.repeat, last(x, said.known & ~said.repeat)[0], x)
        columns = self.step_head.column(c, x, said.known)
        before = _one_later(last(x, said.known)[0]) @ self.carry.T
        expected = self.step_head.expected(before, columns)
        seen, remembered = (_one_later(part) for part in (columns, self.memory(c, x, said.known, expected.detach())))
        clock = _clock(steps)[None].expand(len(c), -1, -1)
        inputs = torch.cat([seen, remembered, static[:, None].expand(-1, c.shape[1], -1), clock], dim=-1)
        start = self.denoiser(inputs)[0]
        found: Tensor = self.step_head(start, columns, c, intervals, expected)
        return found

    def calls(self, length: int, *, sampler: str, steps: int | None = None) -> int:
        return 1

    def sample(
        self, noise: NoiseSource, lengths: Tensor, *, sampler: str, steps: int | None = None,
        denoisers: Sequence[Denoiser] | None = None, tick: Callable[[], None] = lambda: None,
    ) -> Batch:  # fmt: skip
        length = int(lengths.max())
        static_noise, step_noise = self.sample_noise(noise, length)
        columns = self.generate(static_noise, step_noise, length=length)
        tick()
        continuous = len(self.layout.continuous)
        return Batch(columns[..., :continuous], columns[..., continuous:].long(), lengths)

    def sample_noise(self, noise: NoiseSource, length: int) -> tuple[Tensor, Tensor]:
        return noise.uniform(self.static_head.uniforms), noise.uniform(length, self.step_head.uniforms)

    def generate(self, static_noise: Tensor, step_noise: Tensor, length: int) -> Tensor:
        """Channels (B, L, P_r + P_d), continuous ones first, from uniform numbers."""
        stays, head = len(step_noise), self.step_head
        none = step_noise.new_zeros((stays, self.static_head.values))
        start = step_noise.new_zeros((stays, self.static_head.width))
        static = self.static_head.sample(start, static_noise, none, none)
        memory, seen = self.memory.start(step_noise), step_noise.new_zeros((stays, head.columns))
        remembered = step_noise.new_zeros((stays, self.memory.columns))
        clock = _clock(torch.arange(length, device=step_noise.device))
        state: object = None
        sampled = []
        for step in range(length):
            inputs = torch.cat([seen, remembered, static.columns, clock[step].expand(stays, -1)], dim=-1)
            start, state = self.denoiser(inputs[:, None], state)
            now = head.sample(start[:, 0], step_noise[:, step], memory.values @ self.carry.T, memory.values)
            sampled.append(now)
            memory = self.memory.after(memory, now.classes, now.values, now.known > 0, now.expected)
            seen, remembered = now.columns, self.memory.shown(memory)
        return self._joined(
            torch.stack([one.classes for one in sampled], dim=1), torch.stack([one.values for one in sampled], dim=1),
            static.classes, static.values,
        )  # fmt: skip

    def _joined(self, c: Tensor, x: Tensor, static_c: Tensor, static_x: Tensor) -> Tensor:
        continuous, shape = len(self.layout.continuous), c.shape[:2]
        columns = x.new_empty((*shape, continuous + len(self.layout.discrete)))
        parts = [
            (self.temporal_values, x), (self.static_values, static_x[:, None]),
            (continuous + self.temporal_at, c), (continuous + self.static_at, static_c[:, None]),
        ]  # fmt: skip
        for place, part in parts:
            columns[..., place] = part.to(columns.dtype).expand(*shape, -1)
        return columns


def _somewhere(x: Tensor, intervals: Tensor, uniform: Tensor) -> Tensor:
    low, high = intervals.clamp(-FURTHEST, FURTHEST).unbind(-1)
    return torch.where(high > low, low + (high - low) * uniform.to(x.dtype), x)


def _one_later(columns: Tensor) -> Tensor:
    """What each step knows: that of the step before; nothing at the first."""
    return torch.cat([torch.zeros_like(columns[:, :1]), columns[:, :-1]], dim=1)


def _clock(steps: Tensor) -> Tensor:
    step = steps.float()
    return torch.stack([step.log1p() / 4, torch.exp(-step / 3), step / 100], dim=-1)
