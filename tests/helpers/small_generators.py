"""Settings of every generator there is, small enough for tests."""

from helpers.small_baselines import BASELINES, PROCESS_DIFFUSION, PUBLISHED
from timediff.generators.registry import GENERATORS
from timediff.settings.resolve import generator_of, resolve

SHORT = {"model.hidden": 8, "training.steps": 6, "training.batch": 16, "training.checkpoint_every": 3}
PAPER = resolve("paper", assignments={**SHORT, "diffusion.steps": 20})
QUICK = {"model.hidden": 8, "training.steps": 6, "training.batch": 16}
AUTOREGRESSIVE = resolve("autoregressive", assignments=QUICK)
FAST = resolve("fast", assignments={**QUICK, "sampling.steps": 20})
HALO_SHORT = {**SHORT, "model.heads": 2, "model.layers": 2}
OURS = [  # in this process tests may have registered more
    name for name in GENERATORS.names() if GENERATORS(name).__module__.startswith("timediff.")
]
EVERY = {  # by preset, or what is set in one: the generator's name, and its settings
    "paper": ("timediff", PAPER),
    **{
        f"{key}={value}": ("timediff", resolve(PAPER, assignments={key: value}))
        for key, value in (
            ("diffusion.discrete", "rounding"),
            ("diffusion.discrete", "softmax"),
            ("model.network", "cde"),
        )
    },
    "autoregressive": ("timediff", AUTOREGRESSIVE),
    "fast": ("timediff", FAST),
    "diffusion.separate=true": ("timediff", resolve(FAST, assignments={"diffusion.separate": True})),
    **{
        name: (generator_of(name), resolve(name, assignments=SHORT))
        for name in (*BASELINES, *PUBLISHED)
        if name not in PROCESS_DIFFUSION
    },
    **{name: (name, resolve(name, assignments={**SHORT, "sampling.steps": 5})) for name in PROCESS_DIFFUSION},
    **{name: ("halo", resolve(name, assignments=HALO_SHORT)) for name in ("halo", "halo-published")},
}
