"""What a diffusion process is: a loss of a batch, and samples from noise and lengths."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from torch import Tensor, nn

from timediff.data.batch import Batch, Layout

STAY_LEVELS = 24  # noise levels at which the losses of single stays are computed
# The network: (B, L, inputs) and the noise level as its conditioning (B,) → (B, L, outputs).
Denoiser = Callable[[Tensor, Tensor], Tensor]
# Builds a network of so many inputs and outputs.
BuildNetwork = Callable[[int, int], nn.Module]


class NoiseSource(Protocol):
    """Where noise comes from; an argument, so that a test can fix it. Every draw has a row for each stay."""

    @property
    def total(self) -> int: ...
    def normal(self, *shape: int) -> Tensor: ...
    def uniform(self, *shape: int) -> Tensor: ...
    def integers(self, high: int) -> Tensor: ...
    def stratified(self) -> Tensor: ...


class Losses(NamedTuple):
    total: Tensor
    continuous: Tensor
    discrete: Tensor


class Process(nn.Module):
    """A diffusion over the channels of a layout, and the network that it trains.

    Its parameters are the network's, and those of heads that it may add. Tables and indices are buffers that are not
    saved: they follow from the settings.
    """

    layout: Layout
    denoiser: nn.Module

    @property
    def denoisers(self) -> tuple[nn.Module, ...]:
        """All networks that it calls."""
        return (self.denoiser,)

    def stage_loss(self, stage: str, batch: Batch, noise: NoiseSource) -> Losses:
        """The training loss of one of the stages that its settings name (`ProcessSettings.stages`)."""
        raise NotImplementedError(f"{type(self).__name__} is trained as a whole")

    @abstractmethod
    def loss(self, batch: Batch, noise: NoiseSource) -> Losses:
        """The training loss of a batch, with noise levels and noise from `noise`."""

    @abstractmethod
    def stay_losses(self, batch: Batch, noise: NoiseSource) -> dict[str, Tensor]:
        """Losses of each stay, (B, levels), by what they are the losses of; for attacks on a trained network."""

    @abstractmethod
    def sample(
        self, noise: NoiseSource, lengths: Tensor, *, sampler: str, steps: int | None = None,
        denoisers: Sequence[Denoiser] | None = None, tick: Callable[[], None] = lambda: None,
    ) -> Batch:  # fmt: skip
        """Stays of these lengths (B,). `denoisers` compute what its own do, in a faster way.

        `steps` are network calls, each of which calls `tick`.
        """

    @abstractmethod
    def calls(self, length: int, *, sampler: str, steps: int | None = None) -> int:
        """How often `sample` calls the network for stays of this length."""
