"""Settings of EHR-M-GAN. The defaults are those of the paper and its published code, but for the widths."""

from dataclasses import dataclass, field
from typing import Literal

from timediff.generators.common.settings import AdversarialBaseline, AdversarialSettings, RecurrentSettings
from timediff.settings.checks import MOST_LAYERS, MOST_UNITS, above_zero, at_least_one, fractions


@dataclass(frozen=True)
class CoupledModelSettings(RecurrentSettings):
    """Of the generators, whose cells are bilateral LSTMs; `cell` is that of VAEs and discriminators."""

    latent: int = 25  # columns of the latent space that both VAEs share
    noise: int | None = None  # random numbers of a generator a step; unset = half as many as its data have columns
    held: float = 0.0  # fraction of the noise that is the same at every step


@dataclass(frozen=True)
class VAESettings:
    hidden: int | None = None  # unset = model.hidden
    layers: int = 3  # of encoder and decoder each; the one next to the latent space is shared
    dropout: float = 0.2
    feedback: bool = True  # the encoder also sees how far the decoder was off before, step by step
    kl: float = 0.5  # weight of the KL divergence, a sum over steps and latent columns, of the continuous VAE
    kl_discrete: float = 0.05  # the same of the discrete one
    matching: float = 0.1  # weights
    contrastive: float = 0.1
    semantic: float = 1.0
    similarity: Literal["dot", "cosine"] = "dot"  # of latent series in the contrastive loss

    def problems(self) -> list[str]:
        found = at_least_one({"vae.hidden": self.hidden}, MOST_UNITS) + at_least_one(
            {"vae.layers": self.layers}, MOST_LAYERS
        )
        if self.layers == 1:
            found.append("vae.layers is 1; expected at least 2, of which one is shared by both VAEs")
        found += fractions({"vae.dropout": self.dropout})
        weights = {
            "vae.kl": self.kl, "vae.kl_discrete": self.kl_discrete, "vae.matching": self.matching,
            "vae.contrastive": self.contrastive, "vae.semantic": self.semantic,
        }  # fmt: skip
        return found + weights_problems(weights)


@dataclass(frozen=True)
class CoupledAdversarialSettings(AdversarialSettings):
    hidden: int | None = None  # units of a discriminator; unset = model.hidden
    layers: int = 1
    dropout: float = 0.1  # of the continuous discriminator
    dropout_discrete: float = 0.2
    generator_rounds: int = 3  # optimizer steps of each generator, an update
    noisy_labels: bool = True  # the discriminators' targets are not 1 and 0, but sampled near them
    feature_matching: float = 20.0  # weight, beside the adversarial loss
    feature_matching_discrete: float = 10.0

    def problems(self) -> list[str]:
        found = super().problems() + at_least_one({"adversarial.hidden": self.hidden}, MOST_UNITS)
        found += at_least_one({"adversarial.layers": self.layers}, MOST_LAYERS)
        found += at_least_one({"adversarial.generator_rounds": self.generator_rounds})
        found += fractions({
            "adversarial.dropout": self.dropout, "adversarial.dropout_discrete": self.dropout_discrete,
        })  # fmt: skip
        weights = {
            "adversarial.feature_matching": self.feature_matching,
            "adversarial.feature_matching_discrete": self.feature_matching_discrete,
        }
        return found + weights_problems(weights)


@dataclass(frozen=True)
class CoupledPhaseSettings:
    pretraining: float = 5 / 13  # fraction of the updates in which the VAEs are trained alone
    pretraining_lr: float = 5.0  # the learning rate of these, times training.lr
    vae_lr: float = 1.0  # that of the VAEs once all are trained together, times training.lr

    def problems(self) -> list[str]:
        found = above_zero({"phases.pretraining_lr": self.pretraining_lr, "phases.vae_lr": self.vae_lr})
        if not 0 <= self.pretraining < 1:
            found.append(f"phases.pretraining is {self.pretraining}; expected a fraction that leaves some for the rest")
        return found


@dataclass(frozen=True)
class EHRMGANSettings(AdversarialBaseline):
    model: CoupledModelSettings = field(default_factory=CoupledModelSettings)
    vae: VAESettings = field(default_factory=VAESettings)
    adversarial: CoupledAdversarialSettings = field(default_factory=CoupledAdversarialSettings)
    phases: CoupledPhaseSettings = field(default_factory=CoupledPhaseSettings)

    def problems(self) -> list[str]:
        model = self.model
        found = super().problems() + self.vae.problems() + self.phases.problems()
        found += at_least_one({"model.latent": model.latent, "model.noise": model.noise}, MOST_UNITS)
        return found + fractions({"model.held": model.held})


def weights_problems(weights: dict[str, float]) -> list[str]:
    return [f"{path} is {value}; expected a weight of 0 or more" for path, value in weights.items() if value < 0]
