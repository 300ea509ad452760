"""Attacks by name, our own and those of other packages.

An attack is one function with the decorator `attack`, which says what the attacker has and where the idea is from.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from timediff.data.arrays import Floats
from timediff.runtime.registry import Registry

if TYPE_CHECKING:
    from timediff.evaluation.attacks.case import AttackCase

Has = Literal["cohort", "run"]
# membership: a score of each candidate, the higher the more likely it was trained on.
# inference: of each candidate whether something about it was guessed right, (candidates, guesses).
# description: whether each candidate fits a description that is meant to fit one, (candidates, descriptions).
Kind = Literal["membership", "inference", "description"]
Run = Callable[["AttackCase"], Floats]

HOMES = {
    name: f"timediff.evaluation.attacks.{module}:{name.replace('-', '_')}"
    for name, module in {
        "distance": "distance",
        "domias": "domias",
        "shadow-classifier": "shadow_classifier",
        "singling-out": "inference",
        "linkability": "inference",
        "attribute": "inference",
        "partial-record": "inference",
        "loss": "loss",
        "rmia": "rmia",
        "lira-offline": "lira",
        "lira": "lira",
    }.items()
}  # in the order in which they are made and shown


@dataclass(frozen=True)
class Attack:
    """A function that attacks, and what must be known of it."""

    name: str
    has: Has  # what the attacker has: the synthetic cohort only, or the run folder
    run: Run = field(repr=False)
    title: str = ""
    sentence: str = ""  # what the attacker does, in words
    source: str = ""  # the paper
    kind: Kind = "membership"
    shadows: bool = False  # whether it needs shadow models
    reference: bool = False  # whether the attacker has real stays of other patients

    def __post_init__(self) -> None:
        # The registry asks a part where it was defined; for an attack that is its function's place.
        for name in ("__module__", "__qualname__"):
            object.__setattr__(self, name, getattr(self.run, name))


ATTACKS: Registry[Attack] = Registry("attack", "timediff.attacks", HOMES)


def attack(
    name: str,
    has: Has,
    *,
    title: str = "",
    sentence: str = "",
    source: str = "",
    kind: Kind = "membership",
    shadows: bool = False,
    reference: bool = False,
) -> Callable[[Run], Attack]:
    """A decorator that makes an attack of a function, and registers it."""

    def made(run: Run) -> Attack:
        found = Attack(name, has, run, title or name, sentence, source, kind, shadows, reference)
        if HOMES.get(name) != f"{run.__module__}:{run.__name__}":  # ours are found by their place
            ATTACKS.add(name, found)
        return found

    return made
