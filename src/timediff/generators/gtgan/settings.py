"""Settings of GT-GAN. The defaults are the paper's, or of the authors' code for Stocks."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from timediff.generators.common.settings import AdversarialBaseline, AdversarialSettings, RecurrentSettings
from timediff.networks.settings import ODEMethod
from timediff.settings.checks import MOST_LAYERS, MOST_UNITS, above_zero, at_least_one

SMALLEST_STEP = 1e-3  # of a solver: more evaluations than that are a mistake


@dataclass(frozen=True)
class GTGANModelSettings(RecurrentSettings):
    cell: Literal["gru"] = "gru"  # of the jumps: the ODE between them is a GRU's too
    layers: int = 2  # of the decoder
    discriminator_layers: int = 1
    field_layers: int = 3  # hidden layers of the encoder's vector field
    latent: int | None = None  # numbers of a latent step; unset = as many as there are columns
    range: Literal["positive", "real"] = "positive"  # of latents: by a sigmoid and an exponential, or by neither
    skip: bool = False  # the output layers of encoder and decoder see their inputs too
    flow: tuple[int, ...] = (32, 64, 64, 32)  # hidden layers of the flow's velocity
    process: Literal["held", "ou"] = "held"  # that the flow transforms: see flow.py
    linear: bool = False  # the flow ends in a linear layer, which begins as a linear model of the latents


@dataclass(frozen=True)
class SolverSettings:
    """Steps are in units of the time between two steps of a stay, and of the flow's whole time."""

    encoder: ODEMethod = "rk4"
    encoder_step: float = 1.0
    decoder: ODEMethod = "euler"  # and of the discriminator
    decoder_step: float = 0.5
    flow: ODEMethod = "rk4"
    flow_step: float = 0.1

    def problems(self) -> list[str]:
        steps = {
            "solvers.encoder_step": self.encoder_step,
            "solvers.decoder_step": self.decoder_step,
            "solvers.flow_step": self.flow_step,
        }
        return [
            f"{path} is {value}; expected {SMALLEST_STEP} to 1"
            for path, value in steps.items()
            if not SMALLEST_STEP <= value <= 1
        ]


@dataclass(frozen=True)
class GTGANPhaseSettings:
    embedding: float = 0.54  # fraction of the updates in which encoder and decoder are trained alone
    likelihood: float = 0.0  # fraction in which the flow is trained by likelihood alone, after that
    together: float = 1.0  # the learning rate once all are trained together, times training.lr

    def problems(self) -> list[str]:
        found = above_zero({"phases.together": self.together})
        if min(self.embedding, self.likelihood) < 0 or self.embedding + self.likelihood >= 1:
            found.append("phases.embedding and phases.likelihood are fractions, and must leave some for joint training")
        return found


@dataclass(frozen=True)
class LikelihoodSettings:
    every: int = 2  # updates of joint training, of which one is by likelihood too
    kinetic: float = 1.0  # weight of the flow's kinetic energy
    noise: float = 0.0  # standard deviation of what is added to latents (dequantisation)

    def problems(self) -> list[str]:
        found = at_least_one({"likelihood.every": self.every})
        weights = {"likelihood.kinetic": self.kinetic, "likelihood.noise": self.noise}
        return found + [f"{path} is {value}; expected 0 or more" for path, value in weights.items() if value < 0]


@dataclass(frozen=True)
class GTGANAdversarialSettings(AdversarialSettings):
    rounds: int = 2
    enough: float = 0.15  # a discriminator with a lower loss waits
    moments: float = 100.0  # weight of the generator's loss of means and standard deviations

    def problems(self) -> list[str]:
        weights = {"adversarial.enough": self.enough, "adversarial.moments": self.moments}
        wrong = [f"{path} is {value}; expected 0 or more" for path, value in weights.items() if value < 0]
        return super().problems() + wrong


@dataclass(frozen=True)
class GTGANSettings(AdversarialBaseline):
    bounded: ClassVar[bool] = False

    model: GTGANModelSettings = field(default_factory=GTGANModelSettings)
    adversarial: GTGANAdversarialSettings = field(default_factory=GTGANAdversarialSettings)
    solvers: SolverSettings = field(default_factory=SolverSettings)
    phases: GTGANPhaseSettings = field(default_factory=GTGANPhaseSettings)
    likelihood: LikelihoodSettings = field(default_factory=LikelihoodSettings)

    def problems(self) -> list[str]:
        model = self.model
        found = super().problems() + self.solvers.problems() + self.phases.problems() + self.likelihood.problems()
        found += at_least_one({"model.latent": model.latent}, MOST_UNITS)
        found += at_least_one({f"model.flow[{i}]": width for i, width in enumerate(model.flow)}, MOST_UNITS)
        return found + at_least_one(
            {"model.discriminator_layers": model.discriminator_layers, "model.field_layers": model.field_layers},
            MOST_LAYERS,
        )
