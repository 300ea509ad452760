"""Augmentation, the paper's TSRTR: classifiers trained on real stays and a growing share of synthetic ones."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from timediff.cohort import Cohort
from timediff.metrics.classifiers import CLASSICAL, KEY, RECURRENT, Bench, auroc, missing
from timediff.metrics.classifiers import resamples as weights_of
from timediff.metrics.record import Score, unavailable
from timediff.metrics.summaries import Kind
from timediff.metrics.usefulness import NO_LABEL, SETS, drawn, labelled, one_class, scored
from timediff.metrics.views import Single, View
from timediff.progress import Progress, silent
from timediff.seeding import stream


def tsrtr(
    view: View,
    train: Cohort,
    test: Cohort,
    synthetic: Cohort,
    *,
    seed: int,
    repetitions: int = 1,
    real: int = 2000,
    shares: Sequence[float] = (0.1, 0.3, 0.5, 0.7, 0.9),
    classifiers: Sequence[str] = CLASSICAL,
    kind: Kind = "flattened",
    bootstrap: int = 200,
    device: str = "cpu",
    trained_on_these: bool = False,
    progress: Progress = silent,
) -> list[Score]:
    """AUROC after training on `real` real stays, or on all, and so many synthetic ones that they are each share.

    The floor of a score is its number at 0 %, of the real stays alone.
    """
    label = view.schema.label
    if label is None:
        return [unavailable("tsrtr", "auc at 0 %", NO_LABEL)]
    bench = Bench(view, train, seed, device)
    train, test, synthetic = drawn(train, seed), labelled(test), drawn(synthetic, seed)
    some = min(real, len(train))
    plans = [
        Plan(f"{wording} {round(100 * share)} %", count, round(count * share / (1 - share)), note)
        for wording, count, note in (
            ("auc at", some, _validity(real, some, trained_on_these)),
            ("auc, all real +", len(train), "Valid only if the generator was trained on these stays and no others."),
        )
        for share in (0.0, *shares)
    ]
    most = max(plan.synthetic for plan in plans if plan.synthetic <= len(synthetic))
    sets = {"real": train, "synthetic": synthetic.take(np.arange(most)), "test": test}
    weights = weights_of(len(test), bootstrap, stream("judging", seed, KEY, 1))
    untestable = one_class(test.label, label, SETS["test"])
    rows: dict[Kind | None, dict[str, Single]] = {}
    out: list[Score] = []
    for i, name in enumerate(classifiers):
        seen: Kind | None = None if name in RECURRENT else kind
        judge = f"{name}, {seen or 'series'}"
        known: dict[tuple[int, int], Score] = {}  # all real stays may be no more than `real`: train once
        for plan in plans:
            size = plan.real, plan.synthetic
            y = np.concatenate([train.label[: plan.real], synthetic.label[: plan.synthetic]])
            why = (
                missing(name) or untestable or plan.lacks(len(synthetic)) or one_class(y, label, "stays to learn from")
            )
            if why:
                out.append(unavailable("tsrtr", plan.what, why, judge=judge))
                continue
            if size not in known:
                x = rows[seen] = rows.get(seen) or bench.rows(seen, sets)
                both = np.concatenate([x["real"][: plan.real], x["synthetic"][: plan.synthetic]])
                models = bench.models(name, seen, both, y, repetitions)
                table = np.stack([auroc(test.label, model(x["test"]), weights) for model in models])
                known[size] = scored("tsrtr", plan.what, judge, table, len(test))
            score = replace(known[size], what=plan.what, note=plan.note)
            alone = known.get((plan.real, 0))
            out.append(score.with_floor(alone) if alone and plan.synthetic else score)
        progress(i + 1, len(classifiers))
    return out


@dataclass(frozen=True)
class Plan:
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
