"""Settings: frozen dataclasses ⇄ TOML. The defaults are the paper's; presets and files say what differs."""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal, Self

from timediff import toml, typed
from timediff.errors import Problems, TimeDiffError

DEFAULT_PRESET = "fast"
SMALLEST_BATCH, LARGEST_BATCH = 16, 512  # where training.batch is unset


@dataclass(frozen=True)
class CodecSettings:
    # To [−1, 1] by the training minimum and maximum, or by the schema's bounds, so that no training extreme is kept; or
    # to a standard normal by the training quantiles.
    scale: Literal["training", "bounds", "quantile"] = "training"
    fill: Literal["mean", "carry"] = "mean"  # what stands in place of a null; carry: the last value, or else the next
    sparse: tuple[str, ...] = ()  # continuous features whose missing values are a value below the range, not a mask
    allow_constant: bool = False  # carry constant and all-null columns through instead of refusing them


@dataclass(frozen=True)
class ModelSettings:
    cell: Literal["lstm", "gru"] = "lstm"
    hidden: int | None = None  # width of each direction; unset = 4 × the channels (ddpm), or by the cohort (edm)
    layers: int = 2
    dropout: float = 0.0  # between layers and before the output
    early: bool = False  # tell the RNN the noise level at its input too, not only after it


@dataclass(frozen=True)
class DiffusionSettings:
    process: Literal["ddpm", "edm"] = "ddpm"  # in T steps, or in continuous time
    steps: int = 1000  # T of ddpm
    schedule: Literal["cosine", "linear"] = "cosine"  # of ddpm
    discrete: Literal["multinomial", "absorbing"] = "multinomial"  # absorbing goes with edm
    cells: Literal["joint", "independent"] = "joint"  # of edm: classes of one step given each other, or each alone
    lambda_: float = 0.01  # weight of the discrete bound beside the Gaussian loss


@dataclass(frozen=True)
class TrainingSettings:
    steps: int = 200_000  # optimiser updates; the paper does not say how many
    batch: int | None = 32  # stays; unset = by their number, see batch_for
    accumulate: int = 2  # batches an update
    lr: float | None = 8e-5  # the highest; unset = 0.5 / model.hidden
    betas: tuple[float, float] = (0.9, 0.99)
    warmup: int = 0  # updates over which the learning rate rises from 0
    decay: Literal["none", "linear", "cosine"] = "none"  # how it falls to 0 by the last update
    clip: float = 1.0  # largest norm of the gradient
    ema: float = 0.995
    validation: float = 0.0  # share of the training stays held out; the weights with the lowest loss on them are kept
    validate_every: int = 250  # updates
    patience: int | None = None  # looks at held-out stays without a lower loss before training ends
    # Of a GPU's products, but that cuDNN's RNN takes TF32 in place of float32; a CPU's are always in float32.
    precision: Literal["float32", "bfloat16"] = "float32"
    capture: bool = True  # record an update as a CUDA graph, where there is a GPU
    kernels: bool = True  # in bfloat16, learn LSTMs by kernels of our own, where they can be built; or else by cuDNN
    seed: int = 2023
    log_every: int = 100
    checkpoint_every: int = 1000
    keep: int = 2  # checkpoints kept

    def batch_for(self, stays: int) -> int:
        """The batch for a number of stays to learn from: as set, or a power of two of about a tenth of them."""
        tenth = 2 ** int(math.log2(max(1, stays / 10)))
        return self.batch or min(LARGEST_BATCH, max(tenth, min(SMALLEST_BATCH, stays)))


@dataclass(frozen=True)
class SamplingSettings:
    sampler: Literal["ancestral", "ddim", "multistep", "euler"] = (
        "ancestral"  # the first two of ddpm, the others of edm
    )
    steps: int | None = None  # network calls; unset = all of diffusion.steps, or 72 in continuous time
    # Of the network on a GPU; a rounded probability now and then flips a class where the compute batch differs.
    precision: Literal["float32", "tf32", "float16", "bfloat16"] = "float32"
    batch: int | None = None  # stays computed at once, rounded up to whole blocks of 500; unset = by device


class AnySettings:
    """What the settings of every generator have and can do; each generator's own are a frozen dataclass."""

    training: TrainingSettings
    sampling: Any
    codec: CodecSettings

    def __post_init__(self) -> None:
        if found := self.problems():
            raise Problems("settings", found)

    def problems(self) -> list[str]:
        """What is out of range or does not go together."""
        return _of_training(self.training)

    def updated(self, table: Mapping[str, Any], where: str = "settings") -> Self:
        """These settings with those of a nested table (as from TOML) in their place."""
        return typed.update(self, table, where)

    def to_toml(self) -> str:
        return toml.dumps(typed.plain(self))

    def differences(self, other: "AnySettings") -> dict[str, tuple[Any, Any]]:
        """Dotted paths whose values differ, with both values."""
        mine, theirs = typed.flat(self), typed.flat(other)
        return {path: (mine[path], theirs.get(path)) for path in mine if mine[path] != theirs.get(path)}


@dataclass(frozen=True)
class Settings(AnySettings):
    """TimeDiff's."""

    model: ModelSettings = field(default_factory=ModelSettings)
    diffusion: DiffusionSettings = field(default_factory=DiffusionSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    codec: CodecSettings = field(default_factory=CodecSettings)

    def problems(self) -> list[str]:
        return super().problems() + _of_diffusion(self) + _unfit(self)


def resolve(
    preset: str | AnySettings = DEFAULT_PRESET,
    config: str | Path | None = None,
    assignments: Mapping[str, Any] | None = None,
) -> Any:
    """A preset (or settings to start from), then a TOML file, then single settings by dotted path.

    They are of the type that the preset's generator has.
    """
    settings = _of_preset(preset) if isinstance(preset, str) else preset
    if config is not None:
        settings = settings.updated(parse_file(Path(config)), str(config))
    return settings.updated(_nested(assignments or {}), "settings")


def _nested(assignments: Mapping[str, Any]) -> dict[str, Any]:
    """{"training.lr": 1} → {"training": {"lr": 1}}."""
    nested: dict[str, Any] = {}
    for path, value in assignments.items():
        *tables, key = path.split(".")
        table = nested
        for name in tables:
            inner = table.setdefault(name, {})
            if not isinstance(inner, dict):
                raise TimeDiffError(f"{name} was given a value and a setting of its own ({path}): give one of them.")
            table = inner
        table[key] = value
    return nested


def parse_assignment(text: str) -> tuple[str, Any]:
    """`key=value` of the command line; the value is TOML, and a bare word is a text."""
    path, equals, value = text.partition("=")
    if not equals or not path.strip():
        raise TimeDiffError(f"--set {text}: expected key=value, such as training.steps=5000.")
    try:
        return path.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return path.strip(), value.strip()


def presets() -> list[str]:
    folder = resources.files("timediff") / "presets"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def generator_of(preset: str) -> str:
    """The generator that a preset is for: the one that it names, or TimeDiff."""
    if preset not in presets():
        raise TimeDiffError(f"there is no preset {preset!r}; the presets are {', '.join(presets())}.")
    return str(_preset(preset).get("generator", "timediff"))


def _of_preset(name: str) -> AnySettings:
    from timediff.generators.registry import settings_type

    kind = settings_type(generator_of(name))
    table = {key: value for key, value in _preset(name).items() if key != "generator"}
    return kind().updated(table, f"preset {name}")


def _preset(name: str) -> dict[str, Any]:
    return tomllib.loads((resources.files("timediff") / "presets" / f"{name}.toml").read_text())


def parse_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise TimeDiffError(f"{path} could not be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TimeDiffError(f"{path} is not valid TOML: {error}") from error


def at_least_one(values: Mapping[str, int | None]) -> list[str]:
    return [
        f"{path} is {value}; expected at least 1" for path, value in values.items() if value is not None and value < 1
    ]


def above_zero(values: Mapping[str, float | None]) -> list[str]:
    return [
        f"{path} is {value}; expected a number above 0"
        for path, value in values.items()
        if value is not None and value <= 0
    ]


def _of_training(t: TrainingSettings) -> list[str]:
    found = at_least_one({
        "training.steps": t.steps, "training.batch": t.batch, "training.accumulate": t.accumulate,
        "training.log_every": t.log_every, "training.keep": t.keep, "training.checkpoint_every": t.checkpoint_every,
        "training.validate_every": t.validate_every, "training.patience": t.patience,
    })  # fmt: skip
    found += above_zero({"training.lr": t.lr, "training.clip": t.clip})
    if not 0 <= t.ema < 1:
        found.append(f"training.ema is {t.ema}; expected 0 (none) up to but not including 1")
    if not all(0 <= beta < 1 for beta in t.betas):
        found.append(f"training.betas is {list(t.betas)}; expected two numbers from 0 up to but not including 1")
    if t.warmup < 0 or t.seed < 0:
        found.append("training.warmup and training.seed cannot be negative")
    if not 0 <= t.validation <= 0.5:
        found.append(f"training.validation is {t.validation}; expected a share from 0 to 0.5")
    return found


def _of_diffusion(settings: Settings) -> list[str]:
    d, m, s = settings.diffusion, settings.model, settings.sampling
    found = at_least_one({
        "model.layers": m.layers, "model.hidden": m.hidden, "diffusion.steps": d.steps, "sampling.steps": s.steps,
        "sampling.batch": s.batch,
    })  # fmt: skip
    if d.lambda_ < 0:
        found.append("diffusion.lambda cannot be negative")
    if not 0 <= m.dropout < 1:
        found.append(f"model.dropout is {m.dropout}; expected 0 up to but not including 1")
    if d.process == "ddpm" and s.steps is not None and s.steps > d.steps:
        found.append(f"sampling.steps is {s.steps}; expected at most diffusion.steps, which is {d.steps}")
    return found


def _unfit(settings: Settings) -> list[str]:
    """What does not go with the process."""
    process, discrete = settings.diffusion.process, settings.diffusion.discrete
    fitting = {
        "ddpm": ("multinomial", ("ancestral", "ddim"), ("training", "bounds")),
        "edm": ("absorbing", ("multistep", "euler"), ("quantile",)),
    }
    expected, samplers, scales = fitting[process]
    found = []
    if discrete != expected:
        found.append(f"diffusion.discrete is {discrete!r}; diffusion.process = {process!r} goes with {expected!r}")
    if settings.sampling.sampler not in samplers:
        found.append(
            f"sampling.sampler is {settings.sampling.sampler!r}; diffusion.process = {process!r} has "
            f"{' and '.join(samplers)}"
        )
    if settings.codec.scale not in scales:
        found.append(
            f"codec.scale is {settings.codec.scale!r}; diffusion.process = {process!r} goes with {' or '.join(scales)}"
        )
    return found
