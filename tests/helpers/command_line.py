"""How tests call the command line."""

from collections.abc import Callable

Run = Callable[..., tuple[int, str, str]]  # arguments → exit code, standard output, standard error
SMALL = [
    "--preset", "paper", "--set", "model.hidden=8", "--set", "training.steps=4", "--set", "training.batch=16",
    "--set", "diffusion.steps=10",
]  # fmt: skip
