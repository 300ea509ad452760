"""Augmentation, the paper's TSRTR: classifiers trained on real stays and a growing fraction of synthetic ones."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from timediff.data.cohort import Cohort
from timediff.evaluation.case import Measurement
from timediff.evaluation.classifiers.label_classifiers import CLASSICAL, KEY, RECURRENT, Bench, missing
from timediff.evaluation.inputs.summaries import Kind
from timediff.evaluation.inputs.view import Single, View
from timediff.evaluation.metrics.tstr import NO_LABEL, SETS, events, labelled, one_class, scored, shuffled, weighted
from timediff.evaluation.registry import Cost, Meaning, metric
from timediff.evaluation.score import Score, unavailable
from timediff.evaluation.statistics.auc import auroc
from timediff.evaluation.statistics.subsets import Index
from timediff.runtime.progress import Progress, part, silent
from timediff.runtime.seeding import stream

FRACTIONS = (0.1, 0.3, 0.5, 0.7, 0.9)  # of synthetic stays among all
SOME, ALL = "auc at", "auc, all real +"  # a fixed number of real stays, and all of them


def _what(wording: str, fraction: float) -> str:
    return f"{wording} {round(100 * fraction)} %"


def _meaning(wording: str, fraction: float) -> Meaning:
    real = "all real stays" if wording == ALL else "a fixed number of real stays"
    sentence = f"AUROC on real stays after training on {real} and {round(100 * fraction)} % synthetic ones."
    return Meaning(_what(wording, fraction), sentence, "not below 0 % synthetic")


@metric(
    "tsrtr",
    "useful",
    title="Adding synthetic to real stays",
    sentence="Classifiers are trained on real stays with more and more synthetic stays beside them; all are tested on "
    "real stays. The percentage is that of synthetic stays in the whole.",
    numbers={_what(words, part): _meaning(words, part) for words in (SOME, ALL) for part in (0.0, *FRACTIONS)}
    | {"events": Meaning("events", "Unseen real stays of the rarer outcome.", in_terminal=False, whole=True)},
    cost=Cost(50, 10),
    quick=False,
    headline="mean of five",
)
def measure(given: Measurement) -> list[Score]:
    settings = given.settings
    paper = settings.protocol == "paper"
    kinds: Sequence[Kind] = ("flattened", "summary") if paper else ("flattened",)
    scores = [
        score
        for number, kind in enumerate(kinds)
        for score in tsrtr(
            given.view,
            given.train,
            given.test,
            given.cohort,
            seed=settings.seed,
            repetitions=settings.repetitions if paper else 1,
            real=settings.tsrtr_real,
            kind=kind,
            bootstrap=settings.bootstrap,
            device=given.device,
            trained_on_these=len(given.train) <= settings.tsrtr_real,
            progress=part(given.progress, number, len(kinds)),
        )
        if number == 0 or score.classifier is not None  # that there is no label is said once
    ]
    return [*scores, *events("tsrtr", given.test)]


def tsrtr(
    view: View,
    train: Cohort,
    test: Cohort,
    synthetic: Cohort,
    *,
    seed: int,
    repetitions: int = 1,
    real: int = 2000,
    fractions: Sequence[float] = FRACTIONS,
    classifiers: Sequence[str] = CLASSICAL,
    kind: Kind = "flattened",
    bootstrap: int = 200,
    device: str = "cpu",
    trained_on_these: bool = False,
    progress: Progress = silent,
) -> list[Score]:
    """AUROC after training on `real` real stays, or on all, and so many synthetic ones that they are each fraction.

    The floor of a score is its number at 0 %, of the real stays alone. In the paper's protocol each repetition draws
    its own real and synthetic stays; otherwise it is another seed of the same.
    """
    label = view.schema.label
    if label is None:
        return [unavailable("tsrtr", _what(SOME, 0), NO_LABEL)]
    bench = Bench(view, train, seed, device)
    train, test, synthetic = shuffled(train, seed), labelled(test), shuffled(synthetic, seed)
    some = min(real, len(train))
    mixtures = [
        Mixture(_what(wording, fraction), count, round(count * fraction / (1 - fraction)), note)
        for wording, count, note in (
            (SOME, some, _validity(real, some, trained_on_these)),
            (ALL, len(train), "Valid only if the generator was trained on these stays and no others."),
        )
        for fraction in (0.0, *fractions)
    ]
    there = len(synthetic)
    if not bench.paper:  # no more than are seen
        most = max(mixture.synthetic for mixture in mixtures if mixture.synthetic <= there)
        synthetic = synthetic.take(np.arange(most))
    sets, labels = {"real": train, "synthetic": synthetic, "test": test}, np.concatenate([train.label, synthetic.label])
    weights = weighted(test, bootstrap, seed)
    untestable = one_class(test.label, label, SETS["test"])
    rows: dict[Kind | None, dict[str, Single]] = {}
    out: list[Score] = []
    for i, name in enumerate(classifiers):
        seen: Kind | None = None if name in RECURRENT else kind
        classifier = f"{name}, {seen or 'series'}"
        known: dict[tuple[int, int], Score] = {}  # all real stays may be no more than `real`: train once
        for mixture in mixtures:
            size = mixture.real, mixture.synthetic
            drawn = mixture.drawn(len(train), len(synthetic), seed, repetitions if bench.paper else None)
            trained_on = (one_class(labels[positions], label, "training stays") for positions in drawn)
            why = missing(name) or untestable or mixture.lacks(there) or next(filter(None, trained_on), None)
            if why:
                out.append(unavailable("tsrtr", mixture.what, why, classifier=classifier))
                continue
            if size not in known:
                x = rows[seen] = rows.get(seen) or bench.rows(seen, sets)
                both = np.concatenate([x["real"], x["synthetic"]])
                if bench.paper:
                    models = bench.models(name, seen, both, labels, repetitions, subsets=drawn)
                else:
                    models = bench.models(name, seen, both[drawn[0]], labels[drawn[0]], repetitions)
                table = np.stack([auroc(test.label, model(x["test"]), weights) for model in models])
                known[size] = scored("tsrtr", mixture.what, classifier, table, len(test))
            score = replace(known[size], what=mixture.what, note=mixture.note)
            alone = known.get((mixture.real, 0))
            out.append(score.with_floor(alone) if alone and mixture.synthetic else score)
        progress(i + 1, len(classifiers))
    return out


@dataclass(frozen=True)
class Mixture:
    """One training set of TSRTR."""

    what: str
    real: int
    synthetic: int
    note: str

    def drawn(self, real: int, synthetic: int, seed: int, repetitions: int | None) -> list[Index]:
        """Positions among so many real stays and the synthetic ones behind them: at random, or once the first."""
        if repetitions is None:
            return [np.concatenate([np.arange(self.real), real + np.arange(min(self.synthetic, synthetic))])]
        rngs = [stream("evaluation", seed, KEY, 4, repetition) for repetition in range(repetitions)]
        orders = [(rng.permutation(real), real + rng.permutation(synthetic)) for rng in rngs]
        return [np.concatenate([own[: self.real], made[: self.synthetic]]) for own, made in orders]

    def lacks(self, there: int) -> str | None:
        if self.synthetic <= there:
            return None
        return f"needs {self.synthetic:,} synthetic stays beside {self.real:,} real ones; there are {there:,}."


def _validity(real: int, used: int, trained_on_these: bool) -> str:
    fewer = f"All {used:,} training stays, fewer than {real:,}. " if used < real else ""
    if trained_on_these:
        return f"{fewer}The generator was trained on just these {used:,} real stays."
    return (
        f"{fewer}Valid only if the generator was trained on just these {used:,} real stays; it is not known to be so."
    )
