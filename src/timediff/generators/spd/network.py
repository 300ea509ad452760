"""The network of stochastic process diffusion and its loss, for series (B, L, P) whose noise is a process over time."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from timediff.diffusion.process import STAY_LEVELS, NoiseSource
from timediff.generators.spd.process import NoiseFactor
from timediff.generators.spd.settings import SPDModelSettings, SPDSettings
from timediff.networks.embedding import StepEmbedding
from timediff.networks.recurrent import Recurrent

SMALLEST_SCALE = 1e-3  # of a whitened column, also of one that stands still
EMBEDDED = 32  # columns of the diffusion time in the RNN's input


class RecurrentDenoiser(nn.Module):
    """A bidirectional RNN: (B, L, inputs) and the diffusion time (B,) → (B, L, outputs).

    The diffusion time is in its input and in its first states, and its input says the time of each step.
    """

    def __init__(self, inputs: int, outputs: int, model: SPDModelSettings, hidden: int, spacing: float) -> None:
        super().__init__()
        self.spacing, self.hidden, self.kinds = spacing, hidden, 2 if model.cell == "lstm" else 1
        states = self.kinds * 2 * model.layers * hidden
        self.widths = (EMBEDDED, states)
        self.embedding = StepEmbedding(EMBEDDED + states)
        self.rnn = Recurrent(
            inputs + 1 + EMBEDDED, outputs, hidden, model.layers, model.cell, bidirectional=True, skip=True
        )

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        (stays, length), (every, first) = x.shape[:2], self.embedding(t).split(self.widths, dim=1)
        times = (torch.arange(length, device=x.device) * self.spacing).to(x.dtype)[None, :, None]
        x = torch.cat([x, times.expand(stays, -1, -1), every[:, None].expand(-1, length, -1)], dim=-1)
        parts = first.unflatten(1, (-1, self.hidden)).transpose(0, 1).contiguous().chunk(self.kinds)
        output: Tensor = self.rnn(x, parts if self.kinds == 2 else parts[0])
        return output


class SPD(nn.Module):
    """Series by their whitened form w = L⁻¹ x, in which noise of covariance L Lᵀ is white."""

    scale: Tensor  # (L, P): the root mean square of whitened training series

    def __init__(self, columns: int, steps: int, settings: SPDSettings, hidden: int) -> None:
        super().__init__()
        self.process, self.time = settings.process.build(steps), settings.diffusion.build()
        self.columns, self.innovations = columns, settings.model.innovations
        self.prediction, self.weighting = settings.diffusion.prediction, settings.diffusion.weighting
        inputs = columns * (1 + self.innovations)
        self.denoiser = RecurrentDenoiser(inputs, columns, settings.model, hidden, self.process.spacing)
        self.register_buffer("scale", torch.ones(steps, columns))

    @torch.no_grad()
    def fit_scale(self, series: Tensor) -> None:
        """To the training series, (N, L, P)."""
        mean = torch.zeros_like(self.scale, dtype=torch.float64)
        factor = self.process.factor(len(self.scale))
        for part in torch.split(series, 10_000):
            mean += factor.whitened(part).double().square().sum(dim=0) / len(series)
        self.scale.copy_(mean.sqrt().clamp(min=SMALLEST_SCALE))

    def scale_of(self, length: int) -> Tensor:
        """(length, P); a longer series goes on as the last step."""
        return torch.cat([self.scale, self.scale[-1:].expand(max(0, length - len(self.scale)), -1)])[:length]

    def loss(self, x: Tensor, noise: NoiseSource) -> Tensor:
        """Of what the network predicts, at a time each: ‖z − z_θ‖², or as [diffusion] says."""
        found: Tensor = self._errors(x, *self.time.draw(noise), noise).mean()
        return found

    def stay_losses(self, x: Tensor, noise: NoiseSource) -> Tensor:
        """The same of each column of each stay at fixed times, (B, levels, P)."""
        fractions = (torch.arange(STAY_LEVELS, device=x.device) + 0.5) / STAY_LEVELS
        times = (self.time.fraction(u.expand(len(x))) for u in fractions)
        return torch.stack([self._errors(x, *time, noise).mean(dim=1) for time in times], dim=1)

    def _errors(self, x: Tensor, t: Tensor, level: Tensor, noise: NoiseSource) -> Tensor:
        """Squared and weighted, (B, L, P)."""
        z, factor = noise.normal(*x.shape[1:]), self.process.factor(x.shape[1])
        level = level[:, None, None]
        a, s = level.sqrt().to(x.dtype), (1 - level).sqrt().to(x.dtype)
        w0 = factor.whitened(x)
        w = a * w0 + s * z
        output = self.denoiser(self.input(w, a, s, factor), t).float()
        error: Tensor = (output - self.target(w0, z, a, s, factor)).square()
        if self.weighting == "variance":
            error = error * s.square()
        return error

    def input(self, w: Tensor, a: Tensor, s: Tensor, factor: NoiseFactor) -> Tensor:
        """The series, and with `innovations` its whitened form at unit scale."""
        x = factor.colored(w)
        return torch.cat([x, w / self._rms(w, a, s)], dim=-1) if self.innovations else x

    def target(self, w0: Tensor, z: Tensor, a: Tensor, s: Tensor, factor: NoiseFactor) -> Tensor:
        """What the network should predict, from what is known in training."""
        if self.prediction == "whitened":
            return z
        if self.prediction == "noise":
            return factor.colored(z)
        scale = self.scale_of(w0.shape[1])
        return (a * scale * z - s * w0 / scale) / self._rms(w0, a, s)

    def predicted(self, output: Tensor, w: Tensor, a: Tensor, s: Tensor, factor: NoiseFactor) -> Tensor:
        """w_0 by the network's output."""
        if self.prediction == "velocity":
            scale, rms = self.scale_of(w.shape[1]), self._rms(w, a, s)
            return a * scale**2 / rms**2 * w - s * scale / rms * output
        z = output if self.prediction == "whitened" else factor.whitened(output)
        return (w - s * z) / a

    def denoise(
        self, network: Callable[[Tensor, Tensor], Tensor], w: Tensor, level: Tensor, factor: NoiseFactor
    ) -> Tensor:  # fmt: skip
        """The predicted w_0 of series that all are at ᾱ = `level` (1,), by a network that computes the denoiser."""
        a, s = level.sqrt().to(w.dtype), (1 - level).sqrt().to(w.dtype)
        output = network(self.input(w, a, s, factor), self.time.at(level).expand(len(w))).float()
        return self.predicted(output, w, a, s, factor)

    def _rms(self, w: Tensor, a: Tensor, s: Tensor) -> Tensor:
        """Of a √ᾱ w_0 + s z."""
        return (a.square() * self.scale_of(w.shape[1]).square() + s.square()).sqrt()
