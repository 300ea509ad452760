"""The work of an audit: candidates, shadow models and planted leaks, which its attacks share."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from timediff.data.arrays import Floats
from timediff.data.cohort import Cohort, concatenate
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.data.splitting import apart
from timediff.data.units import resampling_units
from timediff.errors import Stopped, TimeDiffError
from timediff.evaluation.attacks.case import AttackCase, Flags, Shadow
from timediff.evaluation.attacks.lira import exposure
from timediff.evaluation.attacks.membership import (
    METRIC,
    Truth,
    description_scores,
    group_scores,
    inference_scores,
    membership_scores,
    succeeded,
)
from timediff.evaluation.attacks.planted import DOSES, MEMORISED, with_copies
from timediff.evaluation.attacks.registry import ATTACKS, Attack
from timediff.evaluation.attacks.shadow_training import trained_or_kept
from timediff.evaluation.attacks.shadows import FEWEST, ShadowPlan, TooFew, halves, shadow_models, usual_jobs
from timediff.evaluation.audit_results import Power
from timediff.evaluation.score import Score, unavailable
from timediff.generators.base import Generator
from timediff.runtime.progress import Progress, Say
from timediff.runtime.seeding import stream
from timediff.settings.base import NeuralSettings
from timediff.settings.resolve import resolve

REPETITIONS = 3  # of each dose; an attack finds a dose that it finds in all of them
MOST_JOBS = 1000
RARE = 0.2  # a class that at most so many stays have is a group of its own
EXTREME = 0.1  # of the stays at either end of a static number
EXPOSED = 0.1
MOST_EXPOSED = "the tenth of the stays on which training shows most, by the shadow models"


@dataclass(frozen=True)
class AuditSettings:
    attacks: tuple[str, ...] = ()  # none named = all that can be made
    models: int = 8  # shadow models
    minutes: float | None = None  # for shadow models; fewer are trained where they would take longer
    changes: Mapping[str, Any] = field(default_factory=dict)  # settings of the shadow models, where they differ
    seed: int = 0
    power: bool = True  # whether leaks are planted too
    jobs: int | None = None  # shadow models trained at once; None = 1 on the CPU, and on a GPU 4

    def check(self) -> None:
        for name in self.attacks:
            ATTACKS(name)
        if self.models < FEWEST:
            raise TimeDiffError(f"{self.models} shadow models were asked for; expected at least {FEWEST}.")
        if self.jobs is not None and not 1 <= self.jobs <= MOST_JOBS:
            raise TimeDiffError(f"jobs is {self.jobs:,}; expected a whole number from 1 to {MOST_JOBS:,}.")


class Work:
    """One audit: what every attack shares is made once."""

    def __init__(
        self, train: Cohort, held_out: Cohort, run: Generator | None, synthetic: Cohort | None,
        settings: AuditSettings, folder: Path | None, progress: Progress, say: Say,
    ) -> None:  # fmt: skip
        self.train, self.held_out, self.run, self.synthetic = train, held_out, run, synthetic
        self.settings, self.folder, self.progress, self.say = settings, folder, progress, say
        self.notes: list[str] = []
        self.known: dict[tuple[int, int], Floats] = {}
        others, known = apart(held_out, 0.5, seed=settings.seed)
        self.others, self.reference = held_out.take(others), held_out.take(known)
        self.truth = Truth.of(resampling_units(train), resampling_units(self.others))
        joined = concatenate([train, self.others])
        self.candidates = replace(joined, stay_id=np.arange(len(joined)))

    @cached_property
    def attacks(self) -> list[Attack]:
        """Those that were named, or all that can be made with what was given."""
        chosen = [ATTACKS(name) for name in self.settings.attacks or ATTACKS.names()]
        has = {"cohort": self.synthetic is not None, "run": self.run is not None}
        if self.settings.attacks:
            for one in chosen:
                if not has[one.has]:
                    option = "--synthetic SYN" if one.has == "cohort" else "--run RUN"
                    raise TimeDiffError(f"the attack {one.name} needs {option}.")
                if one.shadows and self.run is None:
                    raise TimeDiffError(f"the attack {one.name} trains models like the attacked one: add --run RUN.")
            return chosen
        return [one for one in chosen if has[one.has] and not (one.shadows and self.run is None)]

    @cached_property
    def shadows(self) -> list[Shadow]:
        assert self.run is not None
        sampled = self.synthetic is not None and any(one.shadows and one.has == "cohort" for one in self.attacks)
        plan = ShadowPlan(
            self.run, self.candidates, self.truth.units, self.settings.models, self.settings.seed,
            len(self.synthetic) if self.synthetic is not None and sampled else 0,
            self.settings.changes, self.settings.minutes, self.settings.jobs or usual_jobs(),
        )  # fmt: skip
        shadows, failures = shadow_models(plan, self.folder, self.progress, self.say)
        self.notes += failures
        return shadows

    def case(self, one: Attack) -> AttackCase:
        shadows = self.shadows if one.shadows else ()
        return AttackCase(
            self.candidates, self.reference, self.synthetic, self.run if one.has == "run" else None, shadows,
            self.settings.seed, known=self.known,
        )  # fmt: skip

    def rng(self, one: Attack, *key: int) -> np.random.Generator:
        number = int.from_bytes(hashlib.sha256(one.name.encode()).digest()[:4], "big")
        return stream("evaluation", self.settings.seed, 52, number, *key)

    def scores_of(self, one: Attack) -> list[Score]:
        """What the attack finds, of all and of groups."""
        try:
            case = self.case(one)
            found = one.run(case)
        except (Stopped, TooFew):
            raise
        except TimeDiffError as error:
            self.notes.append(f"{one.title}: {error}")
            return [unavailable(METRIC, "auc", str(error), classifier=one.name)]
        rng = self.rng(one)
        if one.kind == "inference":
            return inference_scores(one.name, found, self.truth, rng)
        if one.kind == "description":
            return description_scores(one.name, found, self.truth, rng)
        scores = membership_scores(one.name, found, self.truth, rng)
        groups = dict(groups_of(self.candidates))
        if one.shadows and one.has == "run":
            shown = exposure(case)
            groups[MOST_EXPOSED] = shown >= np.nanquantile(shown, 1 - EXPOSED)
        return scores + group_scores(one.name, found, self.truth, groups, rng)

    def power_of(self, one: Attack) -> list[Power]:
        """What the attack finds of copies, or of what a model has memorised; and what it finds where nothing is."""
        if one.has == "cohort":
            return list(self._copies(one))
        return list(self._memorised(one))

    def _copies(self, one: Attack) -> Iterator[Power]:
        case = self.case(one)
        # Of the stays that the attacker does not know and that are no candidates there are none left, so those of the
        # reference stand in for a cohort without a leak, each attacker knowing one half, the cohort being the other.
        clean, known = self._halved()
        for dose in (0.0, *DOSES):
            if dose and round(dose * len(self.train)) < 1:
                continue
            hits = 0
            for repetition in range(REPETITIONS):
                rng = self.rng(one, 1, repetition, int(1e6 * dose))
                cohort = with_copies(clean, _generated(self.train), dose, rng) if dose else clean
                planted = replace(case, synthetic=cohort, reference=known)
                hits += self._success(one, planted, self.truth, rng)
            yield Power(one.name, one.has, "copies of training stays, disturbed a little", dose, hits, REPETITIONS)
            if hits == REPETITIONS and dose:
                return  # a larger dose would be found too

    def _halved(self) -> tuple[Cohort, Cohort]:
        one, other = apart(self.reference, 0.5, seed=self.settings.seed + 1)
        return _generated(self.reference.take(one)), self.reference.take(other)

    def _memorised(self, one: Attack) -> Iterator[Power]:
        case, truth = self.case(one), self.truth
        model, inside = self.memoriser
        kept = inside | ~truth.member
        hits = self._success_of(one, replace(case, model=model), truth.only(kept), kept, self.rng(one, 2))
        yield Power(one.name, one.has, f"a model trained on {int(inside.sum())} stays to the end", 1.0, int(hits), 1)
        if one.shadows:  # one that was trained on others: half of those it does not know are called its own
            number = 0
            out = ~self.shadows[number].trained
            pretended = halves(truth.units, 2, self.settings.seed + 7)[0]
            false = Truth(pretended, truth.units).only(out)
            hits = self._success_of(one, self.case(one).as_if(number), false, out, self.rng(one, 3))
            yield Power(one.name, one.has, "a model that was trained on other stays", 0.0, int(hits), 1)

    @cached_property
    def memoriser(self) -> tuple[Generator, Flags]:
        """A model trained on a few of the training stays to the end, and which they are."""
        assert self.run is not None
        rng = stream("evaluation", self.settings.seed, 53)
        inside = np.zeros(len(self.candidates), dtype=bool)
        inside[rng.permutation(len(self.train))[:MEMORISED]] = True
        changes = dict(self.settings.changes)
        if isinstance(self.run.settings, NeuralSettings):  # all of its training, and not where held-out stays say stop
            changes |= {"training.validation": 0.0, "training.batch": MEMORISED}
        settings = resolve(self.run.settings, assignments=changes)
        cohort = self.candidates.take(np.flatnonzero(inside))
        self.say("training a model on a few stays to the end, to see whether attacks find that")
        path = None if self.folder is None else self.folder / "memoriser"
        return trained_or_kept(type(self.run)(settings=settings), cohort, 0, path), inside

    def _success(self, one: Attack, case: AttackCase, truth: Truth, rng: np.random.Generator) -> bool:
        return self._success_of(one, case, truth, np.ones(len(self.candidates), dtype=bool), rng)

    def _success_of(self, one: Attack, case: AttackCase, truth: Truth, kept: Flags, rng: np.random.Generator) -> bool:
        """Whether the attack's success on the kept candidates is more than chance."""
        try:
            found: Floats = one.run(case)
        except TimeDiffError:
            return False
        if one.kind == "inference":
            scores = inference_scores(one.name, found[kept], truth, rng)
        elif one.kind == "description":
            scores = description_scores(one.name, found[kept], truth, rng)
        else:
            scores = membership_scores(one.name, found[kept], truth, rng)
        return succeeded(scores)


def groups_of(cohort: Cohort) -> Iterator[tuple[str, Flags]]:
    """Rare classes, and the ends of static numbers: who stands out is easier to find."""
    for feature in cohort.schema.generated().static:
        values = np.asarray(cohort.static[feature.name], np.float64)
        if feature.discrete:
            for index, name in enumerate(feature.classes):
                inside = values == index
                if MIN_AGGREGATE <= inside.sum() <= RARE * len(cohort):
                    yield f"{feature.name} = {name}", inside
        elif (~np.isnan(values)).sum() >= MIN_AGGREGATE / EXTREME:
            low, high = np.nanquantile(values, [EXTREME, 1 - EXTREME])
            yield f"the lowest tenth of {feature.name}", values <= low
            yield f"the highest tenth of {feature.name}", values >= high


def _generated(cohort: Cohort) -> Cohort:
    """As a generator would give it: without patients and order."""
    schema = cohort.schema.generated()
    static = {feature.name: cohort.static[feature.name] for feature in schema.static}
    return replace(cohort, schema=schema, static=static)
