"""Latent forcing as a generator: its three phases."""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.generators.common.adversarial import discriminator_loss, discriminator_objective, loss_if_real
from timediff.generators.common.baseline import Baseline
from timediff.generators.common.columns import Columns
from timediff.generators.common.next_step import dequantised
from timediff.generators.common.stay_losses import by_kind_and_part, by_part
from timediff.generators.latentforcing.network import LatentForcingNetwork, standardisation
from timediff.generators.latentforcing.settings import LatentForcingSettings
from timediff.runtime.randomness import Noise
from timediff.training.objective import Objective

ETA, LAMBDA = 10.0, 0.1  # of the supervised loss, for generator and supervisor and for the embedder
RECOVERY_WEIGHT = 10.0  # of √MSE, beside the loss that keeps latent columns standardised
ENOUGH = 0.15  # a discriminator with a lower loss waits
INITIAL_STAYS, AT_ONCE = 5000, 64  # that the supervisor starts from, and that are embedded together


class LatentForcing(Baseline[LatentForcingSettings]):
    name: ClassVar[str] = "latent-forcing"
    Settings = LatentForcingSettings
    preset: ClassVar[str] = "latent-forcing"
    min_steps: ClassVar[int] = 2
    signed_losses = ("nll of latents",)

    def build(self, codec: Codec) -> nn.Module:
        return LatentForcingNetwork(Columns(codec), self.settings, self.hidden)

    def objectives(self, codec: Codec) -> tuple[Objective, ...]:
        columns, adversarial = Columns(codec), self.settings.adversarial
        phases = self.settings.phases
        alone, joint = phases.ends(self.settings.training.steps)

        def embedded(network: nn.Module, batch: Batch, noise: Noise) -> tuple[LatentForcingNetwork, Tensor]:
            """The network, and the batch as it sees it in latent space, with no gradient."""
            assert isinstance(network, LatentForcingNetwork)
            with torch.no_grad():
                return network, dequantised(network.embedder(columns.of(batch)).float(), noise)

        def coded(network: nn.Module, batch: Batch, noise: Noise) -> tuple[Tensor, dict[str, Tensor]]:
            """Latent series, and the losses of embedder and recovery."""
            assert isinstance(network, LatentForcingNetwork)
            x = columns.of(batch)
            h = network.embedder(x).float()
            error = mse_loss(network.recovery(dequantised(h, noise)).float(), x)
            return h, {"total": RECOVERY_WEIGHT * (error + 1e-12).sqrt() + standardisation(h), "error": error}

        def embedding(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            return coded(network, batch, noise)[1]

        def initialise(network: nn.Module, data: Batch) -> None:
            assert isinstance(network, LatentForcingNetwork)
            few = columns.of(data[:: -(-len(data) // INITIAL_STAYS)])
            with torch.no_grad():
                latent = [network.embedder(part).float() for part in torch.split(few, AT_ONCE)]
                network.supervisor.initialise(torch.cat(latent))

        def supervised(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            gan, h = embedded(network, batch, noise)
            return {"total": gan.supervisor.nll_of(h)}

        def generator(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            gan, h = embedded(network, batch, noise)
            fooling = loss_if_real(gan.discriminator(gan.latent(*gan.sample_noise(noise, h.shape[1]))))
            nll = gan.supervisor.nll_of(h)
            return {"total": fooling + ETA * nll, "fooling": fooling, "nll": nll}

        def embedder(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            assert isinstance(network, LatentForcingNetwork)
            h, losses = coded(network, batch, noise)
            return {**losses, "total": losses["total"] + LAMBDA * network.supervisor.squared_error(h)}

        def discriminator(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            gan, h = embedded(network, batch, noise)
            with torch.no_grad():
                made = gan.latent(*gan.sample_noise(noise, h.shape[1]))
            both = torch.cat([h, made])
            losses = discriminator_loss(gan.discriminator, both, noise, adversarial.gradient_penalty).losses
            return {**losses, "skip": (losses["entropy"] < ENOUGH).float()}

        autoencoder, late = ("embedder", "recovery"), initialise if alone == joint else None
        lr, rounds = phases.together, adversarial.generator_rounds
        return (
            Objective(embedding, "embedding", autoencoder, end=alone),
            Objective(supervised, "supervised", ("supervisor",), first=alone, end=joint, initialise=initialise),
            Objective(generator, "generator", ("generator", "supervisor"), lr, rounds, first=joint, initialise=late),
            Objective(embedder, "embedder", autoencoder, lr, rounds, first=joint),
            discriminator_objective(discriminator, adversarial, lr=lr, first=joint),
        )

    def losses_of(self, network: nn.Module, batch: Batch, codec: Codec, noise: Noise) -> dict[str, Tensor]:
        """The squared error of recovery, and −log p of the latent series: of a stay itself p is not known."""
        assert isinstance(network, LatentForcingNetwork)
        columns = Columns(codec)
        x = columns.of(batch)
        h = network.embedder(x).float()
        errors = (network.recovery(h).float() - x).square()
        nll = network.supervisor.nll(h).mean(dim=-1)
        return {**by_kind_and_part(errors, columns), "nll of latents": by_part(nll)}
