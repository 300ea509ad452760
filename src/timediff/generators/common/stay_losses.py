"""Losses of single stays in levels: by kind of column, and by part of the stay. Attacks learn how much each tells."""

import torch
from torch import Tensor

from timediff.generators.common.columns import Columns

PARTS = 24  # at most, of a stay


def by_kind(losses: Tensor, columns: Columns) -> dict[str, Tensor]:
    """Of each column (…, P) → the mean over those of values and over those of classes, (…)."""
    values, classes = losses[..., : columns.continuous], losses[..., columns.continuous :]
    return {name: own.mean(dim=-1) for name, own in (("values", values), ("classes", classes)) if own.shape[-1]}


def by_part(losses: Tensor) -> Tensor:
    """Of each step (B, L) → the means over consecutive steps, (B, parts); of few steps each is a part."""
    parts = losses.tensor_split(min(PARTS, losses.shape[1]), dim=1)
    return torch.stack([part.mean(dim=1) for part in parts], dim=1)


def by_kind_and_part(losses: Tensor, columns: Columns) -> dict[str, Tensor]:
    """Of each column of each step (B, L, P) → (B, parts) by kind of column."""
    return {name: by_part(own) for name, own in by_kind(losses, columns).items()}
