"""Baseline: a generator to compare with. Its network sees a stay as real columns, and makes it from noise."""

from typing import Any, ClassVar, Generic, TypeVar, cast

from torch import nn

from timediff.data.codec import Codec
from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.generators.column_sampling import ColumnSampler, SamplesColumns
from timediff.generators.common.columns import Columns
from timediff.generators.common.settings import BaselineSettings
from timediff.generators.neural import NeuralGenerator
from timediff.generators.sampling import BatchSampler, Compute

R = TypeVar("R", bound=BaselineSettings)


class Baseline(NeuralGenerator[R], Generic[R]):
    min_steps: ClassVar[int] = 1  # that it can be trained on

    def _sized_for(self, cohort: Cohort) -> Codec:
        if cohort.schema.steps < self.min_steps:
            raise TimeDiffError(
                f"the stays have {cohort.schema.steps} step; {self.name} learns how one step follows from another, and "
                f"needs at least {self.min_steps}."
            )
        return super()._sized_for(cohort)

    @property
    def hidden(self) -> int:
        """Units of a layer."""
        assert self.settings.model.hidden is not None
        return self.settings.model.hidden

    def sampler(self, network: nn.Module, codec: Codec, compute: Compute[Any]) -> BatchSampler:
        return ColumnSampler(cast(SamplesColumns, network), Columns(codec), compute)
