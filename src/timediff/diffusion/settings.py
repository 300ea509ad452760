"""Diffusion processes by name, each with its own settings: the table [diffusion]. Building one imports PyTorch."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from timediff.diffusion.samplers import AUTOREGRESSIVE_SAMPLERS, CASCADE_SAMPLERS, DDPM_SAMPLERS
from timediff.runtime.registry import Registry
from timediff.settings.checks import MOST_STEPS, MOST_UNITS, at_least_one
from timediff.settings.training import LARGEST_BATCH

if TYPE_CHECKING:
    from timediff.data.batch import Layout
    from timediff.diffusion.process import BuildNetwork, Process

CASCADE_WIDTHS = ((2000, 256), (0, 64))  # from so many training stays: units of each direction, where it is unset
AUTOREGRESSIVE_WIDTHS = ((20_000, 256), (1000, 128), (0, 64))  # likewise
AUTOREGRESSIVE_BATCH = 64  # every step of a stay is an example, so few stays are many
PAPER_WIDTH = 4  # times the channels
MOST_COMPONENTS = 100  # of a mixture


@dataclass(frozen=True)
class ProcessSettings:
    """What every process's settings are: its name first, then its own."""

    samplers: ClassVar["Registry[object]"]
    scales: ClassVar[tuple[str, ...]] = ("training", "bounds")  # of the codec, that give values as the process wants
    causal: ClassVar[bool] = False  # whether its network goes from step to step, and keeps a state; see networks/
    intervals: ClassVar[bool] = False  # whether it wants to know which numbers are decoded as the same value

    choose_by: ClassVar[str] = "process"

    process: str = ""

    @staticmethod
    def choose(name: str) -> "type[ProcessSettings]":
        return PROCESSES({"edm": "cascade"}.get(name, name))  # as 0.1.0 called it

    def build(self, layout: "Layout", network: "BuildNetwork") -> "Process":
        raise NotImplementedError(f"{type(self).__name__} does not say how to build its process")

    def default_width(self, stays: int, layout: "Layout") -> int:
        """Of the network, where it is unset."""
        return PAPER_WIDTH * layout.width

    def largest_batch(self) -> int:
        """Stays, where training.batch is unset."""
        return LARGEST_BATCH

    def stages(self, layout: "Layout") -> dict[str, tuple[str, ...]]:
        """What is trained by itself: stages of the loss, and the modules of each; none = all by one loss."""
        return {}

    def problems(self, sampler: str, steps: int | None, scale: str) -> list[str]:
        """What is out of range, or does not go with this sampler, its number of calls, or the codec's scale."""
        found = []
        if sampler not in self.samplers:
            names = ", ".join(self.samplers.names())
            found.append(f"sampling.sampler is {sampler!r}; diffusion.process = {self.process!r} has {names}")
        if scale not in self.scales:
            found.append(
                f"codec.scale is {scale!r}; diffusion.process = {self.process!r} goes with {' or '.join(self.scales)}"
            )
        return found


PROCESSES: Registry[type[ProcessSettings]] = Registry(
    "diffusion process", "timediff.processes",
    {
        "ddpm": "timediff.diffusion.settings:DDPMSettings", "cascade": "timediff.diffusion.settings:CascadeSettings",
        "autoregressive": "timediff.diffusion.settings:AutoregressiveSettings",
    },
)  # fmt: skip


@dataclass(frozen=True)
class DDPMSettings(ProcessSettings):
    """The paper's: continuous and discrete channels together, in T steps."""

    samplers: ClassVar["Registry[object]"] = DDPM_SAMPLERS  # type: ignore[assignment]

    process: str = "ddpm"
    steps: int = 1000  # T
    schedule: Literal["cosine", "linear"] = "cosine"
    discrete: Literal["multinomial", "rounding", "softmax"] = "multinomial"  # the others: see gaussian_classes.py
    lambda_: float = 0.01  # weight of the multinomial bound beside the Gaussian loss; the others have no use for it

    def build(self, layout: "Layout", network: "BuildNetwork") -> "Process":
        from timediff.diffusion.ddpm.gaussian_classes import GaussianClasses
        from timediff.diffusion.ddpm.process import MixedDiffusion
        from timediff.diffusion.ddpm.schedules import SCHEDULES

        alpha_bar = SCHEDULES[self.schedule](self.steps)
        if self.discrete == "multinomial":
            return MixedDiffusion(layout, network, alpha_bar, self.lambda_)
        return GaussianClasses(layout, network, alpha_bar, self.discrete)

    def default_width(self, stays: int, layout: "Layout") -> int:
        if self.discrete == "rounding":  # one input a channel
            return PAPER_WIDTH * (len(layout.continuous) + len(layout.discrete))
        return super().default_width(stays, layout)

    def problems(self, sampler: str, steps: int | None, scale: str) -> list[str]:
        found = super().problems(sampler, steps, scale) + at_least_one({"diffusion.steps": self.steps}, MOST_STEPS)
        found += _of_lambda(self.lambda_)
        if steps is not None and steps > self.steps:
            found.append(f"sampling.steps is {steps}; expected at most diffusion.steps, which is {self.steps}")
        return found


@dataclass(frozen=True)
class CascadeSettings(ProcessSettings):
    """Static classes, then masks and categories by absorbing diffusion, then values by EDM."""

    samplers: ClassVar["Registry[object]"] = CASCADE_SAMPLERS  # type: ignore[assignment]
    scales: ClassVar[tuple[str, ...]] = ("quantile",)

    process: str = "cascade"
    discrete: Literal["absorbing"] = "absorbing"
    joint: bool = True  # the classes of one step given each other; or else each alone
    lambda_: float = 1.0  # weight of the classes of steps beside the values
    separate: bool = False  # classes have a network of their own, trained and stopped by itself

    def build(self, layout: "Layout", network: "BuildNetwork") -> "Process":
        from timediff.diffusion.cascade.process import Cascade

        return Cascade(layout, network, self.lambda_, joint=self.joint, separate=bool(self.stages(layout)))

    def stages(self, layout: "Layout") -> dict[str, tuple[str, ...]]:
        both = bool(layout.continuous and layout.discrete_where(static=False))
        if not (self.separate and both):  # one of them needs no network of its own beside the other's
            return {}
        static = ("static_head",) if layout.discrete_where(static=True) else ()
        return {"values": ("denoiser",), "classes": ("class_denoiser", "step_head", *static)}

    def default_width(self, stays: int, layout: "Layout") -> int:
        return next(width for least, width in CASCADE_WIDTHS if stays >= least)

    def problems(self, sampler: str, steps: int | None, scale: str) -> list[str]:
        return super().problems(sampler, steps, scale) + _of_lambda(self.lambda_)


@dataclass(frozen=True)
class AutoregressiveSettings(ProcessSettings):
    """Step after step, classes and values together."""

    samplers: ClassVar["Registry[object]"] = AUTOREGRESSIVE_SAMPLERS
    scales: ClassVar[tuple[str, ...]] = ("quantile",)
    causal: ClassVar[bool] = True
    intervals: ClassVar[bool] = True

    process: str = "autoregressive"
    units: int = 48  # of each class and value in the head
    mixture: int = 6  # logistics that a value's distribution is a mixture of
    lambda_: float = 1.0  # weight of the classes of steps beside the values; with 1 the loss is the likelihood

    def build(self, layout: "Layout", network: "BuildNetwork") -> "Process":
        from timediff.diffusion.autoregressive.process import Autoregressive

        return Autoregressive(layout, network, self.lambda_, units=self.units, mixture=self.mixture)

    def default_width(self, stays: int, layout: "Layout") -> int:
        return next(width for least, width in AUTOREGRESSIVE_WIDTHS if stays >= least)

    def largest_batch(self) -> int:
        return AUTOREGRESSIVE_BATCH

    def problems(self, sampler: str, steps: int | None, scale: str) -> list[str]:
        found = super().problems(sampler, steps, scale) + at_least_one({"diffusion.units": self.units}, MOST_UNITS)
        return found + at_least_one({"diffusion.mixture": self.mixture}, MOST_COMPONENTS) + _of_lambda(self.lambda_)


def _of_lambda(value: float) -> list[str]:
    return ["diffusion.lambda cannot be negative"] if value < 0 else []
