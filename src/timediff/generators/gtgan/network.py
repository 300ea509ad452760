"""GT-GAN: a continuous-time flow in the latent space of an autoencoder of differential equations (Jeon et al. 2022).

The encoder is a neural CDE, decoder and discriminator are GRU-ODEs. The discriminator sees what the decoder makes of
real latents, and of those of the flow.
"""

import torch
from torch import Tensor, nn

from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.generators.common.columns import Columns
from timediff.generators.gtgan.cde import Encoder
from timediff.generators.gtgan.flow import Flow
from timediff.generators.gtgan.gru_ode import GRUODE
from timediff.generators.gtgan.settings import GTGANSettings
from timediff.networks.ode import ODESolver
from timediff.networks.spline import Spline, natural_cubic_spline
from timediff.runtime.randomness import Noise

LEAST = 1e-6  # of a latent number whose logarithm is taken


class Observed:
    """Which numbers of a stay's columns were observed, by the masks among them."""

    def __init__(self, codec: Codec, columns: Columns) -> None:
        layout = codec.layout
        masks = {c.feature: columns.of_channel(i).start for i, c in enumerate(layout.discrete) if c.part == "mask"}
        of_columns = [masks.get(channel.feature) for channel in layout.continuous]
        for channel, width in zip(layout.discrete, columns.widths, strict=True):
            of_columns += [masks.get(channel.feature) if channel.part == "value" else None] * width
        self._masks = of_columns if masks else []

    def __call__(self, x: Tensor) -> Tensor | None:
        """(B, L, P) of booleans; None where all were observed."""
        if not self._masks:
            return None
        always = torch.ones_like(x[..., 0], dtype=torch.bool)
        return torch.stack([always if mask is None else x[..., mask] < 0 for mask in self._masks], dim=-1)


class GTGANNetwork(nn.Module):
    def __init__(self, codec: Codec, settings: GTGANSettings, hidden: int) -> None:
        super().__init__()
        model, solvers = settings.model, settings.solvers
        self.columns = Columns(codec)
        self.observed = Observed(codec, self.columns)
        width = self.columns.width
        self.latent = model.latent or width
        self.positive = model.range == "positive"
        by_cde, by_gru = (
            ODESolver(solvers.encoder, solvers.encoder_step),
            ODESolver(solvers.decoder, solvers.decoder_step),
        )
        self.encoder = Encoder(
            width, self.latent, hidden, model.field_layers, by_cde, positive=self.positive, skip=model.skip
        )
        self.decoder = GRUODE(self.latent, width, hidden, model.layers, by_gru, skip=model.skip)
        self.flow = Flow(
            self.latent, model.flow, codec.schema.steps, ODESolver(solvers.flow, solvers.flow_step),
            held=model.process == "held", linear=model.linear,
        )  # fmt: skip
        self.discriminator = GRUODE(width, 1, hidden, model.discriminator_layers, by_gru)

    def path(self, batch: Batch) -> tuple[Spline, Tensor | None]:
        """The spline of a batch's columns, and which of them were observed."""
        x = self.columns.of(batch)
        observed = self.observed(x)
        return natural_cubic_spline(x, observed), observed

    def decode(self, h: Tensor) -> Tensor:
        x: Tensor = self.decoder(h)
        return x if self.columns.normal else torch.tanh(x)

    def latents(self, z: Tensor) -> Tensor:
        """Those of the flow, (B, L, latent)."""
        with torch.autocast(z.device.type, enabled=False):
            v: Tensor = self.flow(self.flow.process(z))
        return v.exp() if self.positive else v

    def log_likelihood(self, h: Tensor, noise: Noise) -> tuple[Tensor, Tensor]:
        """Of latents (B, L, latent), a step; and the flow's kinetic energy; (B,) each."""
        v = h.clamp(min=LEAST).log() if self.positive else h
        probes = noise.normal(*v.shape[1:]).sign()[None]
        with torch.autocast(v.device.type, enabled=False):  # differences of large numbers
            found = self.flow.inverse(v, probes)
            likelihood = self.flow.log_density(found.w) + found.log_determinant.mean(dim=1)
        if self.positive:
            likelihood = likelihood - v.sum(dim=-1).mean(dim=1)
        return likelihood, found.kinetic.mean(dim=1)

    def sample_noise(self, noise: Noise, length: int) -> tuple[Tensor, ...]:
        return (noise.normal(1 + length, self.latent),)

    def generate(self, z: Tensor, *, length: int) -> Tensor:
        return self.decode(self.latents(z))
