"""The four generators of stochastic process diffusion: DSPD or CSPD, with GP or OU noise."""

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

from torch import Tensor, nn

from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.generators.common.baseline import Baseline
from timediff.generators.common.columns import Columns
from timediff.generators.common.stay_losses import by_kind
from timediff.generators.sampling import Compute
from timediff.generators.spd.diffusion import SAMPLERS, levels_for
from timediff.generators.spd.network import SPD
from timediff.generators.spd.settings import (
    CSPDGPSettings,
    CSPDOUSettings,
    DSPDGPSettings,
    DSPDOUSettings,
    SPDCompute,
    SPDSettings,
)  # fmt: skip
from timediff.runtime.progress import Say
from timediff.runtime.randomness import Noise
from timediff.training.objective import Objective

P = TypeVar("P", bound=SPDSettings)


class ProcessSampler:
    """Stays from noise, by one of the samplers."""

    def __init__(self, network: SPD, columns: Columns, compute: Compute[SPDCompute]) -> None:
        self._network, self._columns, self._sampler = network, columns, SAMPLERS[compute.settings.sampler]
        self._denoiser, self._factor = compute.accelerated(network.denoiser), network.process.factor(compute.length)
        self._levels = levels_for(network.time, compute.settings.sampler, compute.settings.steps).to(compute.device)
        self.calls = len(self._levels)

    def __call__(self, noise: Noise, tick: Callable[[], None]) -> Batch:
        def denoise(w: Tensor, level: Tensor) -> Tensor:
            w0 = self._network.denoise(self._denoiser, w, level, self._factor)
            tick()
            return w0

        start = noise.normal(len(self._factor.color), self._network.columns)
        w0 = self._sampler(denoise, start, self._levels, noise)
        return Batch.of(*self._columns.split(self._factor.colored(w0)))


class ProcessDiffusion(Baseline[P], Generic[P]):
    """What all four share."""

    def build(self, codec: Codec) -> SPD:
        return SPD(Columns(codec).width, codec.schema.steps, self.settings, self.hidden)

    def prepare(self, network: nn.Module, data: Batch, codec: Codec, say: Say) -> None:
        assert isinstance(network, SPD)
        network.fit_scale(Columns(codec).of(data))

    def objectives(self, codec: Codec) -> tuple[Objective, ...]:
        columns = Columns(codec)

        def objective(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            assert isinstance(network, SPD)
            return {"total": network.loss(columns.of(batch), noise)}

        return (Objective(objective),)

    def losses_of(self, network: nn.Module, batch: Batch, codec: Codec, noise: Noise) -> dict[str, Tensor]:
        """The training loss of each kind of column at each of 24 times."""
        assert isinstance(network, SPD)
        columns = Columns(codec)
        return by_kind(network.stay_losses(columns.of(batch), noise), columns)

    def sampler(self, network: nn.Module, codec: Codec, compute: Compute[Any]) -> ProcessSampler:
        assert isinstance(network, SPD)
        return ProcessSampler(network, Columns(codec), compute)


class DSPDGP(ProcessDiffusion[DSPDGPSettings]):
    name: ClassVar[str] = "dspd-gp"
    Settings = DSPDGPSettings
    preset: ClassVar[str] = "dspd-gp"


class DSPDOU(ProcessDiffusion[DSPDOUSettings]):
    name: ClassVar[str] = "dspd-ou"
    Settings = DSPDOUSettings
    preset: ClassVar[str] = "dspd-ou"


class CSPDGP(ProcessDiffusion[CSPDGPSettings]):
    name: ClassVar[str] = "cspd-gp"
    Settings = CSPDGPSettings
    preset: ClassVar[str] = "cspd-gp"


class CSPDOU(ProcessDiffusion[CSPDOUSettings]):
    name: ClassVar[str] = "cspd-ou"
    Settings = CSPDOUSettings
    preset: ClassVar[str] = "cspd-ou"
