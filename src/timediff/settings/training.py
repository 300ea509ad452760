"""Settings of training and of the codec, which every neural generator has. The defaults are the paper's."""

import math
from dataclasses import dataclass, replace
from typing import Literal

from timediff.runtime.seeding import MAX_SEED
from timediff.settings.checks import MOST, above_zero, at_least_one
from timediff.settings.typed import shown

SMALLEST_BATCH, LARGEST_BATCH = 16, 512  # where training.batch is unset
MOST_ROUNDS = 100  # of distillation
REFINING_STEPS, REFINING_LR = 0.25, 0.4  # in later rounds of it, of training.steps and training.lr


@dataclass(frozen=True)
class CodecSettings:
    # To [−1, 1] by the training minimum and maximum, or by the schema's bounds, so that no training extreme is kept; or
    # to a standard normal by the training quantiles.
    scale: Literal["training", "bounds", "quantile"] = "training"
    fill: Literal["mean", "carry"] = "mean"  # what stands in place of a null; carry: the last value, or else the next
    recording: bool = False  # masks say more: on which lattice a value lies, whether it repeats the last, or is derived
    sparse: tuple[str, ...] = ()  # continuous features whose missing values are a value below the range, not a mask
    allow_constant: bool = False  # carry constant and all-null columns through instead of refusing them


@dataclass(frozen=True)
class TrainingSettings:
    steps: int = 200_000  # optimizer updates
    batch: int | None = 32  # stays; unset = by their number, see batch_for
    accumulate: int = 2  # batches an update
    lr: float | None = 8e-5  # the highest; unset = 0.5 / model.hidden
    optimizer: Literal["adam", "sgd"] = "adam"  # sgd is plain, without momentum
    betas: tuple[float, float] = (0.9, 0.99)  # of Adam
    warmup: int = 0  # updates over which the learning rate rises from 0
    decay: Literal["none", "linear", "cosine"] = "none"  # how it falls to 0 by the last update
    clip: float = 1.0  # largest norm of the gradient
    ema: float = 0.995  # what the average of the weights keeps of itself
    ema_every: int = 1  # updates from one change of the average to the next
    validation: float = 0.0  # fraction of stays held out; the weights with the lowest loss on them are kept
    validate_every: int = 250  # updates
    patience: int | None = None  # validations without a lower loss before training ends
    # Of a GPU's products, but that cuDNN's RNN takes TF32 in place of float32; a CPU's are always in float32.
    precision: Literal["float32", "bfloat16"] = "float32"
    capture: bool = True  # capture an update as a CUDA graph, where there is a GPU
    kernels: bool = True  # in bfloat16, train LSTMs by Triton kernels, where they can be built; or else by cuDNN
    # Rounds of distillation: the network of the run is trained on what a teacher generates, not on the cohort. The
    # teacher of the first round is trained on the cohort, that of any other is the network of the round before.
    distillation: int = 0
    distilled: int = 20_000  # stays of a teacher in each round; as many as the cohort has, where that has more
    # Of twice as many a discriminator, trained on the cohort, says which are chosen: as often as there are real ones.
    selection: bool = True
    seed: int = 2023
    log_every: int = 100
    checkpoint_every: int = 1000
    keep: int = 2  # checkpoints kept
    track: tuple[Literal["tensorboard", "wandb", "mlflow"], ...] = ("tensorboard",)  # who is told of losses

    def batch_for(self, stays: int) -> int:
        """The batch for a number of training stays: as set, or a power of two of about a tenth of them."""
        tenth = 2 ** int(math.log2(max(1, stays / 10)))
        return self.batch or min(LARGEST_BATCH, max(tenth, min(SMALLEST_BATCH, stays)))

    @property
    def refining(self) -> "TrainingSettings":
        """Of a network that has been trained: fewer and smaller steps."""
        lr = None if self.lr is None else REFINING_LR * self.lr
        steps = max(1, round(REFINING_STEPS * self.steps))
        return replace(self, steps=steps, lr=lr, warmup=min(self.warmup, steps // 10))

    def problems(self) -> list[str]:
        found = at_least_one({
            "training.steps": self.steps, "training.batch": self.batch, "training.accumulate": self.accumulate,
            "training.log_every": self.log_every, "training.keep": self.keep,
            "training.checkpoint_every": self.checkpoint_every, "training.validate_every": self.validate_every,
            "training.patience": self.patience, "training.ema_every": self.ema_every,
            "training.distilled": self.distilled,
        })  # fmt: skip
        found += above_zero({"training.lr": self.lr, "training.clip": self.clip})
        if not 0 <= self.ema < 1:
            found.append(f"training.ema is {self.ema}; expected 0 (none) up to but not including 1")
        if not all(0 <= beta < 1 for beta in self.betas):
            found.append(f"training.betas is {list(self.betas)}; expected two numbers from 0 up to but not including 1")
        limits = {"warmup": MOST, "distillation": MOST_ROUNDS, "seed": MAX_SEED}
        for name, most in limits.items():
            value = getattr(self, name)
            if not 0 <= value <= most:
                found.append(f"training.{name} is {shown(value)}; expected 0 to {most:,}")
        if not 0 <= self.validation <= 0.5:
            found.append(f"training.validation is {self.validation}; expected a fraction from 0 to 0.5")
        return found


@dataclass(frozen=True)
class ComputeSettings:
    """How samples are computed, whichever the generator."""

    # Of the network on a GPU; a rounded probability now and then flips a class where the compute batch differs.
    precision: Literal["float32", "tf32", "float16", "bfloat16"] = "float32"
    batch: int | None = None  # stays computed at once, rounded up to whole blocks of 500; unset = by device
