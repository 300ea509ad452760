"""HALO as a generator: the likelihood of visits."""

from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.generators.column_sampling import Channels, ColumnSampler, SamplesColumns
from timediff.generators.common.settings import BaselineCompute
from timediff.generators.halo.network import HALONetwork
from timediff.generators.halo.settings import HALOSettings
from timediff.generators.neural import NeuralGenerator
from timediff.generators.sampling import Compute
from timediff.runtime.progress import Say
from timediff.runtime.randomness import Noise
from timediff.training.objective import Objective


class HALO(NeuralGenerator[HALOSettings]):
    name: ClassVar[str] = "halo"
    Settings = HALOSettings
    preset: ClassVar[str] = "halo"

    def build(self, codec: Codec) -> nn.Module:
        return HALONetwork(codec.layout, self.settings.model, codec.schema.steps)

    def prepare(self, network: nn.Module, data: Batch, codec: Codec, say: Say) -> None:
        assert isinstance(network, HALONetwork)
        network.codes.fit(data, extremes=self.settings.codec.scale == "training")

    def objectives(self, codec: Codec) -> tuple[Objective, ...]:
        def objective(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            assert isinstance(network, HALONetwork)
            static, visits = network.nll(batch)
            choices = torch.cat([static, visits.flatten(1)], dim=1)
            return {"total": choices.mean()}

        return (Objective(objective),)

    def losses_of(self, network: nn.Module, batch: Batch, codec: Codec, noise: Noise) -> dict[str, Tensor]:
        """−log p of each static variable and of each visit, a variable."""
        assert isinstance(network, HALONetwork)
        static, visits = network.nll(batch)
        found = {"static": static} if static.shape[1] else {}
        return found | {"visits": visits.mean(dim=2)}

    def sampler(self, network: nn.Module, codec: Codec, compute: Compute[BaselineCompute]) -> ColumnSampler:
        return ColumnSampler(cast(SamplesColumns, network), Channels(codec), compute)
