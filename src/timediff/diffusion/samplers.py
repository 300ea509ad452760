"""Samplers by name, for each process: its functions have one signature, which ddpm/ and cascade/ state."""

from typing import TYPE_CHECKING

from timediff.runtime.registry import Registry

if TYPE_CHECKING:
    from timediff.diffusion.cascade.solvers import Solver
    from timediff.diffusion.ddpm.samplers import ReverseStep


def _at(module: str, *names: str) -> dict[str, str]:
    return {name: f"timediff.diffusion.{module}:{name}" for name in names}


DDPM_SAMPLERS: "Registry[ReverseStep]" = Registry(
    "sampler", "timediff.samplers.ddpm", _at("ddpm.samplers", "ancestral", "ddim")
)
CASCADE_SAMPLERS: "Registry[Solver]" = Registry(
    "sampler", "timediff.samplers.cascade", _at("cascade.solvers", "multistep", "euler", "heun", "stochastic")
)
# Of an autoregressive process there is one: each step given those before it.
AUTOREGRESSIVE_SAMPLERS: "Registry[object]" = Registry(
    "sampler",
    "timediff.samplers.autoregressive",
    {"ancestral": "timediff.diffusion.autoregressive.process:Autoregressive"},
)
