"""What each network of EHR-M-GAN minimises, from the network, a batch and its noise."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

from timediff.generators.common.adversarial import loss_if_real, with_penalty
from timediff.generators.common.stay_losses import by_part
from timediff.generators.ehrmgan.losses import contrastive, kl_divergence, moment_gap, smoothed_entropy
from timediff.generators.ehrmgan.network import CoupledGAN
from timediff.generators.ehrmgan.settings import CoupledAdversarialSettings, VAESettings
from timediff.generators.ehrmgan.sides import CONTINUOUS, DISCRETE
from timediff.runtime.randomness import Noise

# Between which a discriminator's targets are sampled, of real and of made stays, where they are noisy.
TARGETS = {CONTINUOUS: ((0.7, 1.2), (0.1, 0.3)), DISCRETE: ((0.8, 0.9), (0.1, 0.1))}


def vae_loss(side: str, gan: CoupledGAN, x: Tensor, noise: Noise, settings: VAESettings) -> dict[str, Tensor]:
    """The error and KL divergence of one side's VAE, and what ties the latent series of both together."""
    sides, known = gan.sides.split(x)
    encoded = {name: gan.vae.encode(name, part, known, noise.normal(gan.vae.latent)) for name, part in sides.items()}
    own, latents = encoded[side], [one.z for one in encoded.values()]
    losses = {"error": mse_loss(own.decoded, sides[side]), "kl": kl_divergence(own.mean, own.log_std).sum(dim=1).mean()}
    weights = {"error": 1.0, "kl": settings.kl if side == CONTINUOUS else settings.kl_discrete}
    if len(latents) == 2:
        one, other = latents
        losses["matching"] = mse_loss(one, other)
        losses["contrastive"] = contrastive(one, other, cosine=settings.similarity == "cosine")
        weights |= {"matching": settings.matching, "contrastive": settings.contrastive}
    if gan.sides.known:
        losses["semantic"] = cross_entropy(gan.vae.semantic_logits(latents).float(), classes_of(known))
        weights["semantic"] = settings.semantic
    total = torch.stack([weights[name] * loss for name, loss in losses.items()]).sum()
    return {"total": total, **losses}


def discriminator_loss(
    side: str, gan: CoupledGAN, x: Tensor, noise: Noise, settings: CoupledAdversarialSettings
) -> dict[str, Tensor]:
    sides, known = gan.sides.split(x)
    discriminator = gan.discriminators[side]
    with torch.no_grad():
        made = gan.made(side, gan.noise_of(noise, x.shape[1]), known)
    logits, penalty = with_penalty(
        lambda series: discriminator(series)[0], torch.cat([sides[side], made]), noise, settings.gradient_penalty
    )
    real, fake = logits.chunk(2)
    wanted, unwanted = (torch.ones_like(real), torch.zeros_like(fake))
    if settings.noisy_labels:
        wanted, unwanted = (low + (high - low) * noise.uniform(1) for low, high in TARGETS[side])
    entropy = smoothed_entropy(real, wanted) + smoothed_entropy(fake, unwanted)
    return {"total": entropy + settings.gradient_penalty * penalty, "entropy": entropy, "penalty": penalty}


def generator_loss(
    side: str, gan: CoupledGAN, x: Tensor, noise: Noise, settings: CoupledAdversarialSettings
) -> dict[str, Tensor]:
    """The adversarial loss, and feature matching: of the discriminator's states, or of discrete data themselves."""
    sides, known = gan.sides.split(x)
    made = gan.made(side, gan.noise_of(noise, x.shape[1]), known)
    logits, features = gan.discriminators[side](made)
    if side == DISCRETE:
        weight, matching = settings.feature_matching_discrete, moment_gap(made, sides[side], rooted=False)
    else:
        with torch.no_grad():
            _, wanted = gan.discriminators[side](sides[side])
        weight, matching = settings.feature_matching, moment_gap(features, wanted, rooted=True)
    fooling = loss_if_real(logits)
    return {"total": fooling + weight * matching, "fooling": fooling, "matching": matching}


def stay_losses(gan: CoupledGAN, x: Tensor) -> dict[str, Tensor]:
    """What the VAEs' losses are of single stays, (B, levels): error, KL divergence, and the label's cross-entropy.

    Latents are their means, with no noise on them.
    """
    sides, known = gan.sides.split(x)
    zeros = x.new_zeros(len(x), gan.vae.latent)
    encoded = {name: gan.vae.encode(name, part, known, zeros) for name, part in sides.items()}
    found = {}
    for name, own in encoded.items():
        found[f"{name} error"] = by_part((own.decoded - sides[name]).square().mean(dim=2))
        found[f"{name} kl"] = by_part(kl_divergence(own.mean, own.log_std))
    if gan.sides.known:
        logits = gan.vae.semantic_logits([own.z for own in encoded.values()]).float()
        found["label"] = cross_entropy(logits, classes_of(known), reduction="none")[:, None]
    return found


def classes_of(known: Tensor) -> Tensor:
    """The label's columns in [0, 1], (B, L, …), as classes (B,)."""
    first = known[:, 0]
    return (first[:, 0] > 0.5).long() if first.shape[1] == 1 else first.argmax(dim=-1)
