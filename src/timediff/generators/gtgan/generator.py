"""GT-GAN as a generator: its phases, and their losses."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.generators.common.adversarial import discriminator_loss, loss_if_real
from timediff.generators.common.baseline import Baseline
from timediff.generators.common.stay_losses import by_kind_and_part
from timediff.generators.gtgan.network import GTGANNetwork
from timediff.generators.gtgan.settings import GTGANSettings
from timediff.networks.ode import require_torchdiffeq
from timediff.runtime.randomness import Noise
from timediff.training.objective import Objective

RECOVERY_WEIGHT = 10.0  # of √MSE
INITIAL_STAYS, AT_ONCE = 5000, 64  # that the linear layer is fitted to, and that are encoded together


class GTGAN(Baseline[GTGANSettings]):
    name: ClassVar[str] = "gtgan"
    Settings = GTGANSettings
    preset: ClassVar[str] = "gtgan"
    signed_losses = ("nll of latents",)

    def build(self, codec: Codec) -> nn.Module:
        require_torchdiffeq("gtgan")
        return GTGANNetwork(codec, self.settings, self.hidden)

    def objectives(self, codec: Codec) -> tuple[Objective, ...]:
        adversarial, likelihood, phases = self.settings.adversarial, self.settings.likelihood, self.settings.phases
        updates = self.settings.training.steps
        joint = min(round(updates * (phases.embedding + phases.likelihood)), updates - 1)
        alone = min(round(updates * phases.embedding), joint)

        def blurred(h: Tensor, noise: Noise) -> Tensor:
            return h + likelihood.noise * noise.normal(*h.shape[1:]) if likelihood.noise else h

        def encoded(network: nn.Module, batch: Batch, noise: Noise) -> tuple[GTGANNetwork, Tensor]:
            """The network, and the latents of a batch, with no gradient."""
            assert isinstance(network, GTGANNetwork)
            with torch.no_grad():
                return network, blurred(network.encoder(network.path(batch)[0]), noise)

        def recovery(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            assert isinstance(network, GTGANNetwork)
            path, observed = network.path(batch)
            squares = (network.decode(blurred(network.encoder(path), noise)) - path.values).square()
            error = squares.mean() if observed is None else (squares * observed).sum() / observed.sum()
            return {"total": RECOVERY_WEIGHT * (error + 1e-12).sqrt(), "error": error}

        def initialise(network: nn.Module, data: Batch) -> None:
            assert isinstance(network, GTGANNetwork)
            few = data[:: -(-len(data) // INITIAL_STAYS)]
            with torch.no_grad():
                parts = (few[start : start + AT_ONCE] for start in range(0, len(few), AT_ONCE))
                network.flow.initialise(
                    torch.cat([network.encoder(network.path(part)[0]) for part in parts]), likelihood.noise
                )

        def flow(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            gan, h = encoded(network, batch, noise)
            found, kinetic = (each.mean() for each in gan.log_likelihood(h, noise))
            return {"total": likelihood.kinetic * kinetic - found, "nll": -found, "kinetic": kinetic}

        def generator(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            assert isinstance(network, GTGANNetwork)
            real = network.path(batch)[0].values
            made = network.generate(*network.sample_noise(noise, batch.steps), length=batch.steps)
            fooling, apart = loss_if_real(network.discriminator(made)), moments_apart(made, real)
            return {"total": fooling + adversarial.moments * apart, "fooling": fooling, "moments": apart}

        def discriminator(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            gan, h = encoded(network, batch, noise)
            with torch.no_grad():
                z = gan.sample_noise(noise, batch.steps)
                series = torch.cat([gan.decode(h), gan.generate(*z, length=batch.steps)])
            losses = discriminator_loss(gan.discriminator, series, noise, adversarial.gradient_penalty).losses
            return {**losses, "skip": (losses["entropy"] < adversarial.enough).float()}

        autoencoder, together = ("encoder", "decoder"), phases.together
        late = initialise if alone == joint else None
        faster, rounds = together * adversarial.lr, adversarial.rounds
        return (
            Objective(recovery, "embedding", autoencoder, end=alone),
            Objective(flow, "flow", ("flow",), first=alone, end=joint, initialise=initialise),
            Objective(discriminator, "discriminator", ("discriminator",), faster, rounds, first=joint, initialise=late),
            Objective(recovery, "recovery", autoencoder, together, rounds, first=joint),
            Objective(flow, "likelihood", ("flow",), together, first=joint, every=likelihood.every),
            Objective(generator, "generator", ("flow",), together, first=joint),
        )

    def losses_of(self, network: nn.Module, batch: Batch, codec: Codec, noise: Noise) -> dict[str, Tensor]:
        """The squared error of recovery, and the flow's −log p of the latents, with random probes as in training."""
        assert isinstance(network, GTGANNetwork)
        path, observed = network.path(batch)
        h = network.encoder(path)
        squares = (network.decode(h) - path.values).square()
        errors = by_kind_and_part(squares, network.columns)
        if observed is not None:  # of what was: a part in which nothing was has no error
            counted = by_kind_and_part(observed.to(squares.dtype), network.columns)
            summed = by_kind_and_part(squares * observed, network.columns)
            errors = {kind: summed[kind] / counted[kind].clamp(min=1e-6) for kind in summed}
        return {**errors, "nll of latents": -network.log_likelihood(h, noise)[0][:, None]}


def moments_apart(made: Tensor, real: Tensor) -> Tensor:
    """How far means and standard deviations of each column of each step, over the batch, are apart on average."""
    std = [(series.float().var(dim=0, correction=0) + 1e-6).sqrt() for series in (made, real)]
    mean = [series.float().mean(dim=0) for series in (made, real)]
    return (mean[0] - mean[1]).abs().mean() + (std[0] - std[1]).abs().mean()
