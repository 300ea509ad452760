"""Settings of every generator there is, small enough for tests."""

from helpers.small_baselines import BASELINES
from timediff.settings.resolve import resolve

SHORT = {"model.hidden": 8, "training.steps": 6, "training.batch": 16, "training.checkpoint_every": 3}
PAPER = resolve("paper", assignments={**SHORT, "diffusion.steps": 20})
FAST = resolve("fast", assignments={"model.hidden": 8, "training.steps": 6, "training.batch": 16, "sampling.steps": 20})
EVERY = {  # by preset: the generator's name, and its settings
    "paper": ("timediff", PAPER),
    "fast": ("timediff", FAST),
    **{name: (name, resolve(name, assignments=SHORT)) for name in BASELINES},
    "gtgan-published": ("gtgan", resolve("gtgan-published", assignments=SHORT)),
}
