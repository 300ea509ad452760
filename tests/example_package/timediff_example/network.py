"""A denoiser: two convolutions over time, with the noise level as one more input column."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from timediff.networks.settings import NetworkSettings


@dataclass(frozen=True)
class ConvSettings(NetworkSettings):
    network: str = "example-conv"
    channels: int = 16

    def build(self, inputs: int, outputs: int) -> nn.Module:
        return Conv(inputs, outputs, self.channels)

    @property
    def width(self) -> int:
        return self.channels


class Conv(nn.Module):
    def __init__(self, inputs: int, outputs: int, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(inputs + 1, channels, 3, padding=1), nn.SiLU(), nn.Conv1d(channels, outputs, 3, padding=1)
        )

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        level = (t / 1000)[:, None, None].expand(-1, x.shape[1], 1).to(x.dtype)
        output: Tensor = self.layers(torch.cat([x, level], dim=-1).transpose(1, 2))
        return output.transpose(1, 2)
