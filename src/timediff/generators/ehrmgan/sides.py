"""The two kinds of data that EHR-M-GAN tells apart, and the label that both know, as columns in [0, 1]."""

from collections.abc import Mapping

import torch
from torch import Tensor

from timediff.generators.common.columns import Columns

CONTINUOUS, DISCRETE = "continuous", "discrete"


class Sides:
    """`widths`: the columns of each side, of which there may be one alone. `label`: the discrete channel that is it."""

    def __init__(self, columns: Columns, label: int | None) -> None:
        if label is not None and columns.widths[label] == columns.width:
            label = None  # else there would be nothing to make under this condition
        self.label, self.classes = label, 1 if label is None else columns.classes[label]
        self.place = slice(columns.width, columns.width) if label is None else columns.of_channel(label)
        self.known = self.place.stop - self.place.start  # columns of the label
        self._continuous = columns.continuous
        widths = {CONTINUOUS: columns.continuous, DISCRETE: columns.width - columns.continuous - self.known}
        self.widths = {side: width for side, width in widths.items() if width}

    def split(self, x: Tensor) -> tuple[dict[str, Tensor], Tensor]:
        """Columns in [−1, 1] → those of each side, and those of the label, (B, L, …)."""
        x = (x + 1) / 2
        continuous, before, known, after = torch.tensor_split(
            x, (self._continuous, self.place.start, self.place.stop), dim=-1
        )
        both = {CONTINUOUS: continuous, DISCRETE: torch.cat([before, after], dim=-1)}
        return {side: both[side] for side in self.widths}, known

    def join(self, sides: Mapping[str, Tensor], known: Tensor) -> Tensor:
        """Back again."""
        nothing = known[..., :0]
        before, after = torch.tensor_split(sides.get(DISCRETE, nothing), (self.place.start - self._continuous,), dim=-1)
        return 2 * torch.cat([sides.get(CONTINUOUS, nothing), before, known, after], dim=-1) - 1
