"""The autoregressive head of the discrete stages: classes of several channels, each given those before it."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from timediff.data.batch import OneHot

UNITS = 32  # hidden units of a channel


class AutoregressiveHead(nn.Module):
    """p(c_1) p(c_2 | c_1) … of n channels, from a start (…, width), in one pass (MADE: Germain et al. 2015).

    The hidden units of a channel see the start and the classes of the channels before it, and no others. Where `joint`
    is false they see the start alone.
    """

    allowed: Tensor
    absent: Tensor

    def __init__(self, classes: Sequence[int], *, joint: bool = True) -> None:
        super().__init__()
        n, most = len(classes), max(classes, default=1)
        self.one_hot = OneHot(classes)
        self.classes = self.one_hot.classes
        later = self.one_hot.owner[:, None] < torch.arange(n).repeat_interleave(UNITS)
        self.register_buffer("allowed", (later & joint).float(), persistent=False)
        absent = torch.arange(most) >= torch.tensor(self.classes, dtype=torch.long)[:, None]  # (n, K) that are none
        self.register_buffer("absent", torch.zeros(n, most).masked_fill(absent, -torch.inf), persistent=False)
        self.base = nn.Parameter(torch.zeros(self.width))
        self.seen = nn.Parameter(0.1 * torch.randn(sum(classes), self.width))
        self.weight = nn.Parameter(0.5 * UNITS**-0.5 * torch.randn(n, UNITS, most))
        self.bias = nn.Parameter(torch.zeros(n, most))

    @property
    def width(self) -> int:
        return len(self.classes) * UNITS

    def forward(self, start: Tensor, c: Tensor, hot: Tensor) -> Tensor:
        """−log p of classes c (…, n), whose one-hot columns are `hot` (…, ΣK): of each channel given those before."""
        units = silu(start + self.base + hot @ (self.seen * self.allowed))
        units = units.reshape(*units.shape[:-1], len(self.classes), UNITS)
        if units.is_cuda and units.dim() == 4:  # of steps: with weights of each stay gradients are added up sooner
            logits = torch.einsum("blnu,bnuk->blnk", units, self.weight.expand(len(units), -1, -1, -1)) + self.bias
        else:
            logits = torch.einsum("...nu,nuk->...nk", units, self.weight) + self.bias
        log_p = (logits.float() + self.absent).log_softmax(-1)
        return -log_p.gather(-1, c[..., None])[..., 0]

    def sample(self, start: Tensor, choose: Callable[[Tensor, int], Tensor]) -> Tensor:
        """Classes (…, n); `choose` gives those of channel i from their log-probabilities (…, K)."""
        units, seen = start + self.base, self.seen * self.allowed
        sampled = []
        for i, k in enumerate(self.classes):
            own = silu(units[..., i * UNITS : (i + 1) * UNITS])
            log_p = (own @ self.weight[i, :, :k] + self.bias[i, :k]).float().log_softmax(-1)
            sampled.append(choose(log_p, i))
            units = units + seen[self.one_hot.offsets[i] + sampled[-1]]
        return torch.stack(sampled, dim=-1) if sampled else start.new_zeros((*start.shape[:-1], 0), dtype=torch.long)
