"""Augmentation, the paper's TSRTR: classifiers trained on real stays and a growing fraction of synthetic ones."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from timediff.data.cohort import Cohort
from timediff.evaluation.case import Measurement
from timediff.evaluation.classifiers.label_classifiers import CLASSICAL, RECURRENT, Bench, missing
from timediff.evaluation.inputs.summaries import Kind
from timediff.evaluation.inputs.view import Single, View
from timediff.evaluation.metrics.tstr import NO_LABEL, SETS, events, labelled, one_class, scored, shuffled, weighted
from timediff.evaluation.registry import Cost, Meaning, metric
from timediff.evaluation.score import Score, unavailable
from timediff.evaluation.statistics.auc import auroc
from timediff.runtime.progress import Progress, silent

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
    cost=Cost(50),
    quick=False,
    headline="mean of five",
)
def measure(given: Measurement) -> list[Score]:
    settings = given.settings
    scores = tsrtr(
        given.view,
        given.train,
        given.test,
        given.cohort,
        seed=settings.seed,
        real=settings.tsrtr_real,
        bootstrap=settings.bootstrap,
        device=given.device,
        trained_on_these=len(given.train) <= settings.tsrtr_real,
        progress=given.progress,
    )
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

    The floor of a score is its number at 0 %, of the real stays alone.
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
    most = max(mixture.synthetic for mixture in mixtures if mixture.synthetic <= len(synthetic))
    sets = {"real": train, "synthetic": synthetic.take(np.arange(most)), "test": test}
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
            y = np.concatenate([train.label[: mixture.real], synthetic.label[: mixture.synthetic]])
            why = missing(name) or untestable or mixture.lacks(len(synthetic)) or one_class(y, label, "training stays")
            if why:
                out.append(unavailable("tsrtr", mixture.what, why, classifier=classifier))
                continue
            if size not in known:
                x = rows[seen] = rows.get(seen) or bench.rows(seen, sets)
                both = np.concatenate([x["real"][: mixture.real], x["synthetic"][: mixture.synthetic]])
                models = bench.models(name, seen, both, y, repetitions)
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
