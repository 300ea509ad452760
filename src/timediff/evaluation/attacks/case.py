"""What an attacker is given: candidates, and what he has. Who was trained on is not among it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from timediff.data.arrays import Floats
from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.evaluation.inputs.view import View
from timediff.generators.base import Generator
from timediff.runtime.seeding import stream

Flags = npt.NDArray[np.bool_]
ROUNDING = 1e-2  # of a loss, in single precision, that is 0


@dataclass(frozen=True)
class Shadow:
    """A model that the attacker trained himself, and so knows on whom."""

    model: Generator
    trained: Flags  # (candidates,) whether it was trained on each
    synthetic: Cohort | None = None  # sampled for attacks on cohorts alone


@dataclass(frozen=True)
class AttackCase:
    candidates: Cohort  # real stays, some of which were trained on
    reference: Cohort  # real stays of other patients, none of them trained on
    synthetic: Cohort | None = None
    model: Generator | None = None
    shadows: Sequence[Shadow] = ()
    seed: int = 0
    device: str = "cpu"
    known: dict[tuple[int, int], Floats] = field(default_factory=dict, repr=False)  # losses, by model and cohort

    @cached_property
    def view(self) -> View:
        """How the attacker scales stays: by those that he knows."""
        return View.fit(self.reference, "strict")

    @property
    def attacked(self) -> Cohort:
        """The synthetic cohort."""
        if self.synthetic is None:
            raise TimeDiffError("this attack is on a synthetic cohort, and none was given: add --synthetic SYN.")
        return self.synthetic

    @cached_property
    def losses(self) -> Floats:
        """Logarithms of the attacked model's losses, (candidates, levels)."""
        if self.model is None:
            raise TimeDiffError("this attack is on a run folder, and none was given: add --run RUN.")
        return self.losses_by(self.model)

    @cached_property
    def shadow_losses(self) -> Floats:
        """The same of the shadow models, (shadows, candidates, levels)."""
        return np.stack([self.losses_by(shadow.model) for shadow in self.shadows])

    @cached_property
    def reference_losses(self) -> Floats:
        """The attacked model's of the reference stays."""
        assert self.model is not None
        return self.losses_by(self.model, self.reference)

    def losses_by(self, model: Generator, cohort: Cohort | None = None) -> Floats:
        """Of the candidates, or of other stays; computed once for all attacks."""
        cohort = self.candidates if cohort is None else cohort
        key = id(model), id(cohort)
        if key not in self.known:
            self.known[key] = log_losses(model, cohort, self.seed)
        return self.known[key]

    @property
    def shadow_cohorts(self) -> list[Cohort]:
        """What the shadow models generate."""
        return [shadow.synthetic for shadow in self.shadows if shadow.synthetic is not None]

    @property
    def trained(self) -> Flags:
        """Who was trained on, (shadows, candidates)."""
        return np.stack([shadow.trained for shadow in self.shadows])

    def as_if(self, shadow: int) -> "AttackCase":
        """One of the shadow models is attacked, with the others as shadows: on whom it was trained is known."""
        target, others = self.shadows[shadow], [s for i, s in enumerate(self.shadows) if i != shadow]
        return replace(self, synthetic=target.synthetic, model=target.model, shadows=others)

    def rng(self, *key: int) -> np.random.Generator:
        return stream("evaluation", self.seed, *key)


def log_losses(model: Generator, cohort: Cohort, seed: int) -> Floats:
    """Logarithms, since losses differ by orders of magnitude between noise levels, (stays, levels).

    A loss that may be negative is one already. Which one may the generator says, and not the numbers: else losses of
    one model could be logarithms, and those of another, to compare with, not.
    """
    found = model.stay_losses(cohort, seed=seed)
    return np.concatenate([_logarithm(model, name, losses) for name, losses in found.items()], axis=1)


def _logarithm(model: Generator, name: str, losses: Floats) -> Floats:
    if name in model.signed_losses:
        return losses
    if losses.min(initial=0.0) < -ROUNDING:
        raise TimeDiffError(
            f"the loss {name!r} that {model.name} has of a stay is negative ({losses.min():.3g}): a generator names "
            "such losses in its `signed_losses`."
        )
    return np.log(losses.clip(0) + 1e-6)  # it may be 0 (a class that is certain)
