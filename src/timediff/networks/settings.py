"""Denoisers by name, each with its own settings: the table [model] of a run. Building one imports PyTorch."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from timediff.errors import TimeDiffError
from timediff.runtime.registry import Registry
from timediff.settings.checks import MOST_LAYERS, MOST_UNITS, at_least_one

if TYPE_CHECKING:
    from torch import nn

ODEMethod = Literal["euler", "midpoint", "rk4"]  # of torchdiffeq, with fixed steps
MOST_SOLVER_STEPS = 1000  # of an ODE between two steps of a stay: more are a mistake


@dataclass(frozen=True)
class NetworkSettings:
    """What every denoiser's settings are: its name first, then its own."""

    choose_by: ClassVar[str] = "network"
    causal: ClassVar[bool] = False  # whether it keeps a state from step to step in place of a conditioning

    network: str = ""

    @staticmethod
    def choose(name: str) -> "type[NetworkSettings]":
        return NETWORKS(name)

    def build(self, inputs: int, outputs: int) -> "nn.Module":
        """(B, L, inputs) and the conditioning (B,) → (B, L, outputs), for any length L.

        A causal one: (B, L, inputs) and the state before → (B, L, outputs) and the state after.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how to build its network")

    def sized(self, width: int) -> Self:
        """These settings with this width, where they have one and it is unset."""
        return self

    @property
    def width(self) -> int | None:
        """Units of a layer, which the learning rate follows where it is unset; None = nothing follows."""
        return None

    def problems(self) -> list[str]:
        """What is out of range."""
        return []


def chosen_network(network: "str | NetworkSettings | type[NetworkSettings]") -> NetworkSettings:
    """Of a name, of settings, or of their class, which is registered by it."""
    if isinstance(network, str):
        return NETWORKS(network)()
    given = network() if isinstance(network, type) and issubclass(network, NetworkSettings) else network
    if not isinstance(given, NetworkSettings) or not given.network:
        kind = network if isinstance(network, type) else type(network)
        raise TimeDiffError(
            f"the network is given as {kind.__name__}; expected the name of one, or a NetworkSettings with a name and "
            "a method build(inputs, outputs) that returns the module; see docs/extending.md."
        )
    if given.network not in NETWORKS or NETWORKS(given.network) is not type(given):
        NETWORKS.add(given.network, type(given))
    return given


NETWORKS: Registry[type[NetworkSettings]] = Registry(
    "network", "timediff.networks",
    {
        "brnn": "timediff.networks.settings:BRNNSettings", "cde": "timediff.networks.settings:CDESettings",
        "causal": "timediff.networks.settings:CausalSettings",
    },
)  # fmt: skip


@dataclass(frozen=True)
class BRNNSettings(NetworkSettings):
    """The paper's bidirectional RNN."""

    network: str = "brnn"
    cell: Literal["lstm", "gru"] = "lstm"
    hidden: int | None = None  # units of each direction; unset = as the process says, see its settings
    layers: int = 2
    dropout: float = 0.0  # between layers and before the output
    noise_level_input: bool = False  # the noise level conditions the RNN's input too, not only its states

    def build(self, inputs: int, outputs: int) -> "nn.Module":
        from timediff.networks.brnn import BidirectionalRNN

        if self.hidden is None:
            raise ValueError("model.hidden is unset: whoever knows the cohort sets it")
        return BidirectionalRNN(
            inputs, self.hidden, self.layers, self.cell, outputs=outputs, dropout=self.dropout,
            noise_level_input=self.noise_level_input,
        )  # fmt: skip

    def sized(self, width: int) -> Self:
        return replace(self, hidden=self.hidden or width)

    @property
    def width(self) -> int | None:
        return self.hidden

    def problems(self) -> list[str]:
        return _of_rnn(self.hidden, self.layers, self.dropout)


@dataclass(frozen=True)
class CausalSettings(NetworkSettings):
    """An RNN from the first step to the last."""

    causal: ClassVar[bool] = True

    network: str = "causal"
    cell: Literal["lstm", "gru"] = "lstm"
    hidden: int | None = None  # units of a layer; unset = as the process says, see its settings
    layers: int = 2
    dropout: float = 0.0  # between layers and before the output

    def build(self, inputs: int, outputs: int) -> "nn.Module":
        from timediff.networks.causal import CausalRNN

        if self.hidden is None:
            raise ValueError("model.hidden is unset: whoever knows the cohort sets it")
        return CausalRNN(inputs, outputs, self.hidden, self.layers, self.cell, self.dropout)

    def sized(self, width: int) -> Self:
        return replace(self, hidden=self.hidden or width)

    @property
    def width(self) -> int | None:
        return self.hidden

    def problems(self) -> list[str]:
        return _of_rnn(self.hidden, self.layers, self.dropout)


@dataclass(frozen=True)
class CDESettings(NetworkSettings):
    """A neural controlled differential equation, which the paper considers; needs torchdiffeq."""

    network: str = "cde"
    hidden: int | None = None  # units of the state; unset = as the process says, see its settings
    field_layers: int = 1  # hidden layers of the vector field
    field_width: int | None = None  # their units; unset = hidden
    solver: ODEMethod = "rk4"
    solver_steps: int = 1  # between two steps of a stay

    def build(self, inputs: int, outputs: int) -> "nn.Module":
        from timediff.networks.cde import NeuralCDE
        from timediff.networks.ode import ODESolver, require_torchdiffeq

        require_torchdiffeq("model.network = 'cde'")
        if self.hidden is None:
            raise ValueError("model.hidden is unset: whoever knows the cohort sets it")
        solver, field_width = ODESolver(self.solver, 1 / self.solver_steps), self.field_width or self.hidden
        return NeuralCDE(
            inputs, outputs, self.hidden, solver, field_layers=self.field_layers, field_width=field_width
        )  # fmt: skip

    def sized(self, width: int) -> Self:
        return replace(self, hidden=self.hidden or width)

    @property
    def width(self) -> int | None:
        return self.hidden

    def problems(self) -> list[str]:
        found = at_least_one({"model.hidden": self.hidden, "model.field_width": self.field_width}, MOST_UNITS)
        found += at_least_one({"model.field_layers": self.field_layers}, MOST_LAYERS)
        return found + at_least_one({"model.solver_steps": self.solver_steps}, MOST_SOLVER_STEPS)


def _of_rnn(hidden: int | None, layers: int, dropout: float) -> list[str]:
    found = at_least_one({"model.hidden": hidden}, MOST_UNITS)
    found += at_least_one({"model.layers": layers}, MOST_LAYERS)
    if not 0 <= dropout < 1:
        found.append(f"model.dropout is {dropout}; expected 0 up to but not including 1")
    return found
