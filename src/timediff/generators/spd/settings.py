"""Settings of stochastic process diffusion: the process, how much noise there is when, what the network predicts."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from timediff.generators.common.settings import BaselineCompute, BaselineSettings, RecurrentSettings
from timediff.settings.checks import MOST_STEPS, above_zero, at_least_one

if TYPE_CHECKING:
    from timediff.generators.spd.diffusion import DiffusionTime
    from timediff.generators.spd.process import NoiseProcess

MOST_BETA = 1000.0


@dataclass(frozen=True)
class SPDModelSettings(RecurrentSettings):
    innovations: bool = False  # the network sees the whitened series too, beside the series


@dataclass(frozen=True)
class NoiseProcessSettings:
    """The process that the noise is, over times from 0 to 1 for a series as long as those trained on."""

    jitter: float = 1e-4  # variance of white noise in it, without which its covariance may have no inverse

    def build(self, steps: int) -> "NoiseProcess":
        raise NotImplementedError(f"{type(self).__name__} does not say which process it is")

    def problems(self) -> list[str]:
        return above_zero({"process.jitter": self.jitter})


@dataclass(frozen=True)
class GaussianProcessSettings(NoiseProcessSettings):
    sigma: float = 0.1  # length scale

    def build(self, steps: int) -> "NoiseProcess":
        from timediff.generators.spd.process import NoiseProcess, gaussian_process

        return NoiseProcess(lambda gap: gaussian_process(gap, self.sigma), steps, self.jitter)

    def problems(self) -> list[str]:
        return super().problems() + above_zero({"process.sigma": self.sigma})


@dataclass(frozen=True)
class OrnsteinUhlenbeckSettings(NoiseProcessSettings):
    theta: float = 0.5  # the rate at which it forgets

    def build(self, steps: int) -> "NoiseProcess":
        from timediff.generators.spd.process import NoiseProcess, ornstein_uhlenbeck

        return NoiseProcess(lambda gap: ornstein_uhlenbeck(gap, self.theta), steps, self.jitter)

    def problems(self) -> list[str]:
        return super().problems() + above_zero({"process.theta": self.theta})


@dataclass(frozen=True)
class DiffusionSettings:
    """CSPD: diffusion time s is any number from 0 to 1."""

    beta_start: float = 0.1  # β(s) rises linearly
    beta_end: float = 20.0
    # What the network predicts of noise L z, whose covariance is L Lᵀ: z ("whitened", as the paper's code does unless
    # told otherwise), L z ("noise"), or the velocity of the whitened series, from what follows from its scale alone.
    prediction: Literal["whitened", "noise", "velocity"] = "whitened"
    weighting: Literal["variance", "none"] = "variance"  # of the loss at s: 1 − ᾱ(s), or none

    def build(self) -> "DiffusionTime":
        from timediff.generators.spd.diffusion import ContinuousTime

        return ContinuousTime(self.beta_start, self.beta_end)

    def problems(self) -> list[str]:
        found = above_zero({"diffusion.beta_start": self.beta_start})
        if not self.beta_start <= self.beta_end <= MOST_BETA:
            found.append(f"diffusion.beta_end is {self.beta_end}; expected diffusion.beta_start to {MOST_BETA:,.0f}")
        return found


@dataclass(frozen=True)
class DiscreteDiffusionSettings(DiffusionSettings):
    """DSPD: diffusion time is one of T steps."""

    steps: int = 1000  # T, each of β(s) / T
    weighting: Literal["variance", "none"] = "none"

    def build(self) -> "DiffusionTime":
        from timediff.generators.spd.diffusion import DiscreteTime

        return DiscreteTime(self.beta_start, self.beta_end, self.steps)

    def problems(self) -> list[str]:
        found = super().problems() + at_least_one({"diffusion.steps": self.steps}, MOST_STEPS)
        if self.beta_end >= self.steps > 0:
            found.append(f"diffusion.beta_end is {self.beta_end}; expected less than diffusion.steps, {self.steps}")
        return found


@dataclass(frozen=True)
class SPDCompute(BaselineCompute):
    sampler: str = ""
    steps: int | None = None  # network calls; unset = 100 (CSPD), or all of diffusion.steps (DSPD)


@dataclass(frozen=True)
class ContinuousCompute(SPDCompute):
    sampler: Literal["sde", "multistep"] = "sde"


@dataclass(frozen=True)
class DiscreteCompute(SPDCompute):
    sampler: Literal["ancestral", "multistep"] = "ancestral"


@dataclass(frozen=True)
class SPDSettings(BaselineSettings):
    bounded: ClassVar[bool] = False

    model: SPDModelSettings = field(default_factory=SPDModelSettings)
    process: NoiseProcessSettings = field(default_factory=NoiseProcessSettings)
    diffusion: DiffusionSettings = field(default_factory=DiffusionSettings)
    sampling: SPDCompute = field(default_factory=SPDCompute)

    def problems(self) -> list[str]:
        found = super().problems() + self.process.problems() + self.diffusion.problems()
        found += at_least_one({"sampling.steps": self.sampling.steps}, MOST_STEPS)
        steps, most = self.sampling.steps, getattr(self.diffusion, "steps", MOST_STEPS)
        if steps is not None and 1 <= most < steps:
            found.append(f"sampling.steps is {steps}; expected at most diffusion.steps, {most}")
        return found


@dataclass(frozen=True)
class DSPDGPSettings(SPDSettings):
    process: GaussianProcessSettings = field(default_factory=GaussianProcessSettings)
    diffusion: DiscreteDiffusionSettings = field(default_factory=DiscreteDiffusionSettings)
    sampling: DiscreteCompute = field(default_factory=DiscreteCompute)


@dataclass(frozen=True)
class DSPDOUSettings(SPDSettings):
    process: OrnsteinUhlenbeckSettings = field(default_factory=OrnsteinUhlenbeckSettings)
    diffusion: DiscreteDiffusionSettings = field(default_factory=DiscreteDiffusionSettings)
    sampling: DiscreteCompute = field(default_factory=DiscreteCompute)


@dataclass(frozen=True)
class CSPDGPSettings(SPDSettings):
    process: GaussianProcessSettings = field(default_factory=GaussianProcessSettings)
    sampling: ContinuousCompute = field(default_factory=ContinuousCompute)


@dataclass(frozen=True)
class CSPDOUSettings(SPDSettings):
    process: OrnsteinUhlenbeckSettings = field(default_factory=OrnsteinUhlenbeckSettings)
    sampling: ContinuousCompute = field(default_factory=ContinuousCompute)
