"""Settings of every generator there is, small enough for tests."""

from helpers.small_baselines import BASELINES, PUBLISHED
from timediff.settings.resolve import generator_of, resolve

SHORT = {"model.hidden": 8, "training.steps": 6, "training.batch": 16, "training.checkpoint_every": 3}
PAPER = resolve("paper", assignments={**SHORT, "diffusion.steps": 20})
FAST = resolve("fast", assignments={"model.hidden": 8, "training.steps": 6, "training.batch": 16, "sampling.steps": 20})
EVERY = {  # by preset: the generator's name, and its settings
    "paper": ("timediff", PAPER),
    "fast": ("timediff", FAST),
    **{name: (generator_of(name), resolve(name, assignments=SHORT)) for name in (*BASELINES, *PUBLISHED[1:])},
}
