"""The cascade: a stay is sampled in three stages, each given those before it.

1. Static classes (outcome, sex), one given those before it.
2. The classes of its steps (what is missing, categories), by absorbing diffusion over whole steps (Austin et al. 2021):
   a step is masked or known, and steps are uncovered in random order. One at a time, as here wherever there are calls
   enough, this is an order-agnostic autoregressive model (Hoogeboom et al. 2022), with no error of its own. All classes
   of a step are sampled together.
3. Its values, by EDM (Karras et al. 2022), once it is known where there are any.

Masks that are uncovered beside half-finished values would follow the traces that filled values leave in these; so what
is missing would come out too rare.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from timediff.data.batch import Batch, Layout
from timediff.diffusion import categorical
from timediff.diffusion.cascade import edm
from timediff.diffusion.cascade.edm import EDMPrecond, NetworkOutput
from timediff.diffusion.cascade.head import AutoregressiveHead
from timediff.diffusion.cascade.solvers import calls_for, levels_for
from timediff.diffusion.process import STAY_LEVELS, BuildNetwork, Denoiser, Losses, NoiseSource, Process
from timediff.diffusion.samplers import CASCADE_SAMPLERS

CLASS_FRACTION = 0.5  # of the training stays are for the classes of steps; the others are for values
STATIC_WEIGHT = 0.1  # of the static classes in the loss: they are trained soon, by parameters of their own
EMBEDDED = 1000.0  # conditioning is on the scale of diffusion steps
STAGE_2 = 2.0  # its conditioning is STAGE_2 + the fraction of masked steps: above every log σ / 4 of stage 3
CALLS = 72  # of the network, where sampling.steps is unset


class StageLosses(NamedTuple):
    """Losses of stays, (B,) each; None of a stage that there is not."""

    values: Tensor | None
    classes: Tensor | None  # a masked step
    static: Tensor | None


class CallPlan(NamedTuple):
    """Network calls of a sampler: the number of masked steps at each of stage 2, the noise levels of stage 3."""

    masked: tuple[int, ...]
    sigmas: tuple[float, ...]


def stage_2_conditioning(fraction: Tensor) -> Tensor:
    """From the fraction of masked steps."""
    return EMBEDDED * (STAGE_2 + fraction)


class Cascade(Process):
    """Losses and samples of all three stages, by two heads and one network; or else two, each trained by itself."""

    temporal_at: Tensor
    static_at: Tensor

    def __init__(
        self, layout: Layout, build: BuildNetwork, lambda_: float = 1.0, *, joint: bool = True, separate: bool = False
    ) -> None:
        super().__init__()
        self.layout, self.lambda_, self.continuous = layout, lambda_, len(layout.continuous)
        static, temporal = layout.discrete_where(static=True), layout.discrete_where(static=False)
        self.register_buffer("temporal_at", torch.tensor(temporal, dtype=torch.long), persistent=False)
        self.register_buffer("static_at", torch.tensor(static, dtype=torch.long), persistent=False)
        step_head = AutoregressiveHead([layout.classes[i] for i in temporal], joint=joint)
        inputs = layout.width + 1  # values, one-hot classes, and whether the step is masked
        self.separate = separate
        if separate:
            self.denoiser = build(inputs, self.continuous)
            self.class_denoiser = build(inputs, step_head.width)
        else:
            self.denoiser = build(inputs, max(1, self.continuous + step_head.width))
        self.step_head = step_head
        self.static_head = AutoregressiveHead([layout.classes[i] for i in static])

    @property
    def denoisers(self) -> tuple[nn.Module, ...]:
        """Of values and of classes, which may be one."""
        return (self.denoiser, self.class_denoiser) if self.separate else (self.denoiser,)

    def loss(self, batch: Batch, noise: NoiseSource) -> Losses:
        if self.separate:
            values, classes = (self.stage_loss(stage, batch, noise) for stage in ("values", "classes"))
            return Losses(values.total + classes.total, values.continuous, classes.discrete)
        return self.loss_at(batch, noise.stratified(), noise)

    def stage_loss(self, stage: str, batch: Batch, noise: NoiseSource) -> Losses:
        """That of the values, or of all classes, of every stay of the batch; where each has a network of its own."""
        none = batch.continuous.new_zeros(())
        if stage == "values":
            normal = self._values_of(batch, noise.stratified(), noise).mean()
            return Losses(normal, normal, none)
        each, of_static = self._classes_of(batch, noise.stratified(), noise)
        classes = each.mean()
        total = self.lambda_ * classes / max(1, self.continuous)
        if of_static is not None:
            total = total + STATIC_WEIGHT * of_static.mean()
        return Losses(total, none, classes)

    def loss_at(self, batch: Batch, u: Tensor, noise: NoiseSource) -> Losses:
        """EDM's loss, and the absorbing bound a step, each of the stays whose stage it is.

        `u` (B,) says where to train: below CLASS_FRACTION stage 2, from there on stage 3, each from none to all of its
        noise.
        """
        fraction = self.class_fraction
        each = self._of_stays(batch, u, noise)
        normal = classes = of_static = batch.continuous.new_zeros(())
        if each.values is not None:
            normal = (each.values * ~(u < fraction)).mean() / (1 - fraction)
        if each.classes is not None:
            classes = each.classes.mean() / fraction
        if each.static is not None:
            of_static = each.static.mean()
        total = normal + self.lambda_ * classes / max(1, self.continuous) + STATIC_WEIGHT * of_static
        return Losses(total, normal, classes)

    @property
    def class_fraction(self) -> float:
        """Of the training stays: how many are for stage 2."""
        return (CLASS_FRACTION if self.continuous else 1.0) if self.step_head.classes else 0.0

    def stay_losses(self, batch: Batch, noise: NoiseSource) -> dict[str, Tensor]:
        fraction, found = self.class_fraction, dict[str, list[Tensor]]()
        for k in range(STAY_LEVELS):
            level = (k + 0.5) / STAY_LEVELS
            if self.separate:
                at = batch.continuous.new_full((len(batch),), level)
                found.setdefault("values", []).append(self._values_of(batch, at, noise))
                classes, static = self._classes_of(batch, at, noise)
                found.setdefault("classes", []).append(classes)
                found |= {} if static is None else {"static": [static]}
                continue
            for stage, u in (("values", fraction + (1 - fraction) * level), ("classes", fraction * level)):
                if not (self.continuous if stage == "values" else self.step_head.classes):
                    continue
                each = self._of_stays(batch, batch.continuous.new_full((len(batch),), u), noise)
                loss = each.values if stage == "values" else each.classes
                assert loss is not None
                found.setdefault(stage, []).append(loss)
                if each.static is not None:  # the same at every level
                    found["static"] = [each.static]
        return {name: torch.stack(losses, dim=1) for name, losses in found.items()}

    def _of_stays(self, batch: Batch, u: Tensor, noise: NoiseSource) -> StageLosses:
        """What each stay (B,) adds to the losses, at the place of training that `u` says."""
        x0, length = batch.continuous, batch.steps
        fraction = self.class_fraction
        second = u < fraction
        level = torch.where(second, u / max(fraction, 1e-9), (u - fraction) / max(1 - fraction, 1e-9))
        count = torch.where(second, 1 + (level * length).long().clamp(max=length - 1), 0)
        masked = noise.uniform(length).argsort(dim=1).argsort(dim=1) < count[:, None]
        sigma = edm.training_sigma(level)[:, None, None]
        x = x0 + sigma.to(x0.dtype) * noise.normal(*x0.shape[1:])
        c, static = self.split(batch.discrete.long())
        hot, static_hot = self.step_head.one_hot(c), self.static_head.one_hot(static)

        def network(scaled: Tensor, c_noise: Tensor) -> NetworkOutput:
            scaled = scaled * (~second)[:, None, None]  # stage 2 sees no values
            conditioning = torch.where(second, stage_2_conditioning(count / length), (EMBEDDED * c_noise).to(u.dtype))
            return self._output(self.denoiser(self.input(scaled, hot, masked, static_hot), conditioning))

        denoised, start = EDMPrecond(network)(x, sigma)
        values = classes = of_static = None
        if self.continuous:
            values = (denoised - x0).square().mean(dim=(1, 2)) * edm.weight(sigma.flatten()).to(x0.dtype)
        if self.step_head.classes:
            classes = (self.step_head(start, c, hot).sum(dim=2) * masked).sum(dim=1) / count.clamp(min=1)
        if self.static_head.classes:
            of_static = self.static_head(start.new_zeros(1), static, static_hot).sum(dim=1)
        return StageLosses(values, classes, of_static)

    def _values_of(self, batch: Batch, level: Tensor, noise: NoiseSource) -> Tensor:
        """EDM's loss of each stay (B,), by the network of values; levels are from 0 to 1."""
        x0 = batch.continuous
        c, static = self.split(batch.discrete.long())
        sigma = edm.training_sigma(level)[:, None, None]
        x = x0 + sigma.to(x0.dtype) * noise.normal(*x0.shape[1:])
        denoised = self._value_denoiser(self.denoiser, c, static)(x, sigma)
        return (denoised - x0).square().mean(dim=(1, 2)) * edm.weight(sigma.flatten()).to(x0.dtype)

    def _classes_of(self, batch: Batch, level: Tensor, noise: NoiseSource) -> tuple[Tensor, Tensor | None]:
        """The bound a masked step of each stay (B,), by the network of classes, and −log p of the static ones."""
        x0, length = batch.continuous, batch.steps
        c, static = self.split(batch.discrete.long())
        hot, static_hot = self.step_head.one_hot(c), self.static_head.one_hot(static)
        count = 1 + (level * length).long().clamp(max=length - 1)
        masked = noise.uniform(length).argsort(dim=1).argsort(dim=1) < count[:, None]
        inputs = self.input(torch.zeros_like(x0), hot, masked, static_hot)
        start = self.class_denoiser(inputs, stage_2_conditioning(count / length))
        classes = (self.step_head(start, c, hot).sum(dim=2) * masked).sum(dim=1) / count
        if not self.static_head.classes:
            return classes, None
        return classes, self.static_head(start.new_zeros(1), static, static_hot).sum(dim=1)

    def input(self, x: Tensor, hot: Tensor, masked: Tensor, static_hot: Tensor) -> Tensor:
        """The network's, (B, L, inputs): scaled values, classes of known steps, which steps are masked, static ones."""
        hide = masked[..., None].to(x.dtype)
        return torch.cat([x, hot * (1 - hide), hide, static_hot[:, None].expand(-1, x.shape[1], -1)], dim=-1)

    def split(self, c: Tensor) -> tuple[Tensor, Tensor]:
        """Classes (B, L, P_d) → those of steps (B, L, n), and static ones (B, m)."""
        return c[..., self.temporal_at], c[:, 0, self.static_at]

    def join(self, c: Tensor, static: Tensor) -> Tensor:
        """Back again; static classes are repeated at every step."""
        joined = c.new_empty((*c.shape[:2], len(self.layout.discrete)))
        joined[..., self.temporal_at] = c
        joined[..., self.static_at] = static[:, None].expand(-1, c.shape[1], -1)
        return joined

    def plan(self, length: int, *, sampler: str, steps: int | None = None) -> CallPlan:
        """At most two thirds of the calls uncover steps, the others are for values; at least one for each."""
        calls, first = steps or CALLS, 0
        if self.step_head.classes:
            first = min(length, max(1, 2 * calls // 3) if self.continuous else calls)
        masked = tuple(round(length * (1 - i / first)) for i in range(first))
        levels = levels_for(CASCADE_SAMPLERS(sampler), max(1, calls - first)) if self.continuous else 0
        return CallPlan(masked, edm.sigma_steps(levels))

    def calls(self, length: int, *, sampler: str, steps: int | None = None) -> int:
        plan = self.plan(length, sampler=sampler, steps=steps)
        values = calls_for(CASCADE_SAMPLERS(sampler), len(plan.sigmas)) if self.continuous else 0
        return len(plan.masked) + values

    def sample(
        self, noise: NoiseSource, lengths: Tensor, *, sampler: str, steps: int | None = None,
        denoisers: Sequence[Denoiser] | None = None, tick: Callable[[], None] = lambda: None,
    ) -> Batch:  # fmt: skip
        length = int(lengths.max())
        plan = self.plan(length, sampler=sampler, steps=steps)
        networks = [_ticking(one, tick) for one in denoisers or self.denoisers]
        start = noise.normal(length, self.continuous)  # also says on which device
        # Copied before there is work on the GPU: a copy waits for all of it, and nothing new is queued meanwhile.
        sigmas = torch.tensor([*plan.sigmas, 0.0], dtype=torch.float64, device=start.device)
        static = self._sample_static(start, noise)
        c = self._sample_steps(networks[-1], static, start, plan.masked, noise)
        x = start
        if self.continuous:
            solve = CASCADE_SAMPLERS(sampler)
            denoise = self._value_denoiser(networks[0], c, static)
            x = solve(denoise, start * edm.SIGMA_MAX, sigmas, noise)
        return Batch(x, self.join(c, static), lengths)

    def _sample_static(self, start: Tensor, noise: NoiseSource) -> Tensor:
        """Stage 1: static classes (B, m)."""
        uniform = noise.uniform(len(self.static_head.classes))
        return self.static_head.sample(start.new_zeros(len(start), self.static_head.width), _by(uniform))

    def _sample_steps(
        self, network: Denoiser, static: Tensor, start: Tensor, counts: tuple[int, ...], noise: NoiseSource
    ) -> Tensor:
        """Stage 2: classes of steps (B, L, n); `counts` are the masked steps at each call."""
        stays, length = start.shape[:2]
        static_hot, zeros = self.static_head.one_hot(static), torch.zeros_like(start)
        c = static.new_zeros((stays, length, len(self.step_head.classes)))
        masked = torch.ones((stays, length), dtype=torch.bool, device=c.device)
        order = noise.uniform(length).argsort(dim=1)  # steps are uncovered from its end
        for count, left in zip(counts, [*counts[1:], 0], strict=False):
            conditioning = stage_2_conditioning(start.new_full((stays,), count / length))
            output = network(self.input(zeros, self.step_head.one_hot(c), masked, static_hot), conditioning)
            uncovered = order[:, left:count]
            head = output if self.separate else output[..., self.continuous :]
            picked = head.gather(1, uncovered[..., None].expand(-1, -1, head.shape[-1]))
            sampled = self.step_head.sample(picked, _by(noise.uniform(count - left, len(self.step_head.classes))))
            c = c.scatter(1, uncovered[..., None].expand_as(sampled), sampled)
            masked = masked.scatter(1, uncovered, False)
        return c

    def _value_denoiser(self, network: Denoiser, c: Tensor, static: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        """Stage 3: D(x; σ) given all classes."""
        hot, static_hot = self.step_head.one_hot(c), self.static_head.one_hot(static)
        none = torch.zeros(c.shape[:2], dtype=torch.bool, device=c.device)

        def conditioned(scaled: Tensor, c_noise: Tensor) -> NetworkOutput:
            conditioning = (EMBEDDED * c_noise).to(scaled.dtype).expand(len(scaled))
            return self._output(network(self.input(scaled, hot, none, static_hot), conditioning))

        preconditioned = EDMPrecond(conditioned)
        return lambda x, sigma: preconditioned(x, sigma).values

    def _output(self, output: Tensor) -> NetworkOutput:
        if self.separate:  # of the network of values
            return NetworkOutput(output.float(), output[..., :0])
        # One split and not two slices, whose gradients would each be as wide as the output.
        values, start = torch.split(output, [self.continuous, output.shape[-1] - self.continuous], dim=-1)
        return NetworkOutput(values.float(), start)


def _ticking(network: Denoiser, tick: Callable[[], None]) -> Denoiser:
    def called(x: Tensor, conditioning: Tensor) -> Tensor:
        output = network(x, conditioning)
        tick()
        return output

    return called


def _by(uniform: Tensor) -> Callable[[Tensor, int], Tensor]:
    """A choice of classes by these uniform numbers (…, n)."""
    return lambda log_p, channel: categorical.sample(log_p, uniform[..., channel])
