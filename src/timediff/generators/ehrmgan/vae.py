"""The dual VAE: one for each kind of data, with layers next to the latent space that both share."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from timediff.generators.ehrmgan.settings import VAESettings
from timediff.networks.recurrent import Cell, State

SEMANTIC_UNITS = 24  # of the classifier of latent series


class Encoded(NamedTuple):
    """What a VAE makes of series (B, L, P)."""

    decoded: Tensor  # (B, L, P)
    mean: Tensor  # (B, L, latent), as those below
    log_std: Tensor
    z: Tensor


class SideVAE(nn.Module):
    """What belongs to one kind of data: the first layers of its encoder, the last ones of its decoder."""

    def __init__(self, width: int, condition: int, hidden: int, cell: Cell, settings: VAESettings) -> None:
        super().__init__()
        seen = width * (1 + settings.feedback) + condition
        self.encoder = _rnn(cell, seen, hidden, settings.layers - 1, settings.dropout)
        self.decoder = _rnn(cell, hidden, hidden, settings.layers - 1, settings.dropout)
        self.output = nn.Linear(hidden, width)


class SharedVAE(nn.Module):
    """What both share: the encoder's last layer, mean and std, the decoder's first layer, the label's classifier."""

    def __init__(self, latent: int, condition: int, hidden: int, cell: Cell, classifier: nn.Module) -> None:
        super().__init__()
        self.encoder = _rnn(cell, hidden, hidden, 1, 0.0)
        self.moments = nn.Linear(hidden, 2 * latent)
        self.decoder = _rnn(cell, latent + condition, hidden, 1, 0.0)
        self.classifier = classifier


def semantic_classifier(seen: int, classes: int) -> nn.Module:
    """The label's logits from the latent series of all VAEs, (B, L, latent × VAEs)."""
    layers = nn.Linear(seen, SEMANTIC_UNITS), nn.ReLU(), nn.Linear(SEMANTIC_UNITS, classes), nn.Tanh()
    return nn.Sequential(nn.Flatten(), *layers)


class DualVAE(nn.Module):
    """Of series with columns in [0, 1]; `widths` are the columns of each kind, of which there may be one alone."""

    def __init__(
        self, widths: Mapping[str, int], condition: int, classes: int, *, steps: int, latent: int, hidden: int,
        cell: Cell, settings: VAESettings,
    ) -> None:  # fmt: skip
        super().__init__()
        self.latent, self.feedback, self.dropout = latent, settings.feedback, settings.dropout
        both = {name: SideVAE(width, condition, hidden, cell, settings) for name, width in widths.items()}
        self.sides: Mapping[str, SideVAE] = nn.ModuleDict(both)  # type: ignore[assignment]
        seen = steps * latent * len(widths)
        classifier = semantic_classifier(seen, classes) if condition else nn.Identity()
        self.shared = SharedVAE(latent, condition, hidden, cell, classifier)

    def encode(self, name: str, x: Tensor, condition: Tensor, e: Tensor) -> Encoded:
        """With z = mean + std · e, where e (B, latent) is the same at every step; the condition is (B, L, …)."""
        e = e[:, None]
        if not self.feedback:
            mean, log_std, _ = self._moments(name, torch.cat([x, condition], dim=-1))
            z = mean + log_std.exp() * e
            return Encoded(self.decode(name, z, condition)[0], mean, log_std, z)
        steps, before, encoding, decoding = [], torch.zeros_like(x[:, :1]), None, None
        for step, known in zip(torch.split(x, 1, dim=1), torch.split(condition, 1, dim=1), strict=True):
            off = step - before.sigmoid()
            mean, log_std, encoding = self._moments(name, torch.cat([step, known, off], dim=-1), encoding)
            z = mean + log_std.exp() * e
            before, decoding = self.decode(name, z, known, decoding)
            steps.append((before, mean, log_std, z))
        return Encoded(*(torch.cat(parts, dim=1) for parts in zip(*steps, strict=True)))

    def decode(self, name: str, z: Tensor, condition: Tensor, state: State = None) -> tuple[Tensor, State]:
        """Columns (B, L, P) of latent steps, and the state to go on from."""
        own, shared = self.sides[name], self.shared
        before_shared, before_own = state or (None, None)
        h, after_shared = shared.decoder(torch.cat([z, condition], dim=-1), before_shared)
        h, after_own = own.decoder(self._dropped(h), before_own)
        return own.output(self._dropped(h)).float(), (after_shared, after_own)

    def semantic_logits(self, latents: Sequence[Tensor]) -> Tensor:
        """Of the label, from the latent series of all VAEs."""
        logits: Tensor = self.shared.classifier(torch.cat(list(latents), dim=-1))
        return logits

    def _moments(self, name: str, seen: Tensor, state: State = None) -> tuple[Tensor, Tensor, State]:
        before_own, before_shared = state or (None, None)
        h, after_own = self.sides[name].encoder(seen, before_own)
        h, after_shared = self.shared.encoder(self._dropped(h), before_shared)
        mean, log_std = self.shared.moments(self._dropped(h)).float().chunk(2, dim=-1)
        return mean, log_std, (after_own, after_shared)

    def _dropped(self, h: Tensor) -> Tensor:
        return dropout(h, self.dropout, self.training)


def _rnn(cell: Cell, inputs: int, hidden: int, layers: int, dropout: float) -> nn.RNNBase:
    kind: type[nn.LSTM | nn.GRU] = {"lstm": nn.LSTM, "gru": nn.GRU}[cell]
    return kind(inputs, hidden, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0)
