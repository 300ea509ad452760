"""What the classes of a step say of its values, as tables that a GPU can look up; and the order of both in a step."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from timediff.data.batch import Channel, Meaning


class Term(NamedTuple):
    """A factor of a step's likelihood: a class or a value, the how manieth of them."""

    kind: Literal["class", "value"]
    number: int


def terms_of(classes: Sequence[Channel], values: Sequence[Channel]) -> list[Term]:
    """Each feature's class and then its value; those that may follow from other features come last."""
    derived = {channel.feature for channel in classes if "derived" in channel.meanings}
    names = list(dict.fromkeys(channel.feature for channel in (*values, *classes)))
    found = []
    for name in sorted(names, key=lambda name: name in derived):
        found += [Term("class", i) for i, channel in enumerate(classes) if channel.feature == name]
        found += [Term("value", i) for i, channel in enumerate(values) if channel.feature == name]
    return found


class SaidOfValues(NamedTuple):
    """Of values (…, P): whether each is any number, or the one before; whether there is one at all."""

    any: Tensor
    repeat: Tensor
    known: Tensor


class Meanings(nn.Module):
    """A value's class is that of its feature, or without one the same for all: any number."""

    any: Tensor  # (P, K)
    repeat: Tensor
    known: Tensor
    scores: Tensor  # of values that follow from their class
    class_of: Tensor  # (P,) which class says it
    missing: Tensor  # (D,) the class of a channel that says there is no value; −1 = none does

    def __init__(self, classes: Sequence[Channel], values: Sequence[Channel]) -> None:
        super().__init__()
        most = max([1, *(channel.classes for channel in classes)])
        place = {channel.feature: i for i, channel in enumerate(classes) if channel.meanings}
        self.class_at = [place.get(channel.feature) for channel in values]

        def table(*wanted: Meaning) -> Tensor:
            rows = torch.zeros(len(values), most, dtype=torch.bool)
            for row, at in zip(rows, self.class_at, strict=True):
                meanings = ("any",) if at is None else classes[at].meanings
                row[: len(meanings)] = torch.tensor([meaning in wanted for meaning in meanings])
            return rows

        scores = torch.zeros(len(values), most)
        for row, at in zip(scores, self.class_at, strict=True):
            if at is not None and classes[at].scores:
                row[: classes[at].classes] = torch.tensor(classes[at].scores)
        absent = [one.meanings.index("missing") if "missing" in one.meanings else -1 for one in classes]
        tables = {
            "any": table("any"), "repeat": table("repeat"), "known": table("any", "repeat", "fixed"), "scores": scores,
            "class_of": torch.tensor([len(classes) if at is None else at for at in self.class_at], dtype=torch.long),
            "missing": torch.tensor(absent, dtype=torch.long),
        }  # fmt: skip
        for name, tensor in tables.items():
            self.register_buffer(name, tensor, persistent=False)

    def forward(self, c: Tensor) -> SaidOfValues:
        """Of the classes (…, D) of a step."""
        with_none = torch.cat([c, torch.zeros_like(c[..., :1]) if c.shape[-1] else c.new_zeros((*c.shape[:-1], 1))], -1)
        own = with_none[..., self.class_of]  # (…, P)
        each = torch.arange(own.shape[-1], device=c.device)
        return SaidOfValues(self.any[each, own], self.repeat[each, own], self.known[each, own])

    def value(self, i: int, c: Tensor | None, drawn: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """Value i (B,) and whether it is known, from its class (B,), what would be drawn, and the last known one."""
        if c is None:
            return drawn, torch.ones_like(drawn)
        value = torch.where(self.any[i, c], drawn, torch.where(self.repeat[i, c], before, self.scores[i, c]))
        known = self.known[i, c]
        return torch.where(known, value, before), known.to(drawn.dtype)
