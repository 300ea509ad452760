"""TSTR: do classifiers that were trained on synthetic stays work on real ones? Every number is an AUROC of the label.

- TSTR: trained on synthetic stays, tested on real ones held out; TRTR: the same, trained on real training stays
- TRTS: trained on real stays, tested on synthetic ones

In the paper's protocol each repetition of the five classifiers trains on a stratified subset as large as the held-out
set, as the authors' code does; the recurrent ones see all stays.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.data.schema import Feature
from timediff.data.units import resampling_units
from timediff.evaluation.case import Measurement
from timediff.evaluation.classifiers.label_classifiers import (
    ALL,
    CLASSICAL,
    KEY,
    RECURRENT,
    Bench,
    Model,
    Trained,
    missing,
)
from timediff.evaluation.classifiers.training_parts import TrainingParts
from timediff.evaluation.inputs.summaries import Kind
from timediff.evaluation.inputs.view import View
from timediff.evaluation.registry import Cost, Meaning, metric
from timediff.evaluation.score import Score, mean_and_std, unavailable
from timediff.evaluation.statistics.auc import auroc
from timediff.evaluation.statistics.bootstrap import Counts, interval, resamples
from timediff.evaluation.statistics.groups import groups
from timediff.runtime.progress import Progress, silent
from timediff.runtime.seeding import stream

SETS = {"real": "real training stays", "synthetic": "synthetic stays", "test": "held-out stays"}
TESTS = {"tstr": ("synthetic", "test"), "trtr": ("real", "test"), "trts": ("real", "synthetic")}  # trained, tested on
FEWEST = 30  # stays of a group
NO_LABEL = "the schema has no label to predict: give one static feature role = 'label'."


@metric(
    "tstr",
    "useful",
    title="Predicting the outcome",
    sentence="Classifiers are trained to predict the outcome once on synthetic and once on real stays; both are tested "
    "on the same real stays that nobody has seen. AUROC: 0.5 is guessing, 1 is always right.",
    numbers={
        "tstr": Meaning(
            "trained on synthetic",
            "AUROC on real stays after training on synthetic ones (TSTR).",
            "as trained on real",
        ),
        "trtr": Meaning(
            "trained on real",
            "AUROC on real stays after training on real ones (TRTR): the yardstick.",
            in_terminal=False,
        ),
        "trts": Meaning(
            "real, tested on synthetic",
            "AUROC on synthetic stays after training on real ones (TRTS).",
            "as on real stays",
            in_terminal=False,
        ),
        "events": Meaning(
            "events",
            "Unseen real stays of the rarer outcome: every number of this table rests on so many, not on more.",
            whole=True,
        ),
        "gap": Meaning(
            "loss",
            "Trained on real minus trained on synthetic, in AUROC. Its floor is what other real stays, as many, lose.",
            "0 or below",
        ),
    },
    cost=Cost(85, 18),
    headline="mean of five",
)
def measure(given: Measurement) -> list[Score]:
    settings = given.settings
    scores = tstr(
        given.view,
        given.train,
        given.test,
        given.cohort,
        seed=settings.seed,
        repetitions=settings.repetitions,
        bootstrap=settings.bootstrap,
        device=given.device,
        real=given.case.trained,
        progress=given.progress,
    )
    return [*scores, *events("tstr", given.test)]


@dataclass(frozen=True)
class Predictions:
    """What one classifier predicts, (N, K), by test and repetition; or why it cannot."""

    classifier: str
    predictions: Mapping[str, Sequence[Floats]]
    whys: Mapping[str, str]
    parts: Sequence[Floats] = ()  # of held-out stays, after training on parts of the real ones

    def areas(self, labels: Mapping[str, Array], weights: Mapping[str, Array]) -> "Areas":
        tables = {
            what: np.stack([auroc(labels[TESTS[what][1]], p, weights[TESTS[what][1]]) for p in several])
            for what, several in self.predictions.items()
        }
        once = np.ones((1, len(labels["test"])))
        parts = np.array([auroc(labels["test"], p, once)[0] for p in self.parts])
        return Areas(self.classifier, tables, self.whys, parts)

    def only(self, inside: Array, why: str | None) -> "Predictions":
        """Of some held-out stays alone; or why not of them."""
        known = {what: [p[inside] for p in several] for what, several in self.predictions.items() if what != "trts"}
        whys = {what: text for what, text in self.whys.items() if what != "trts"}
        return (
            Predictions(self.classifier, {}, dict.fromkeys(known, why) | whys)
            if why
            else Predictions(self.classifier, known, whys, [p[inside] for p in self.parts])
        )


@dataclass(frozen=True)
class Areas:
    """AUROCs of one classifier by test, (repetitions, 1 + bootstrap samples): first the stays as they are."""

    classifier: str
    tables: Mapping[str, Floats]
    whys: Mapping[str, str]
    parts: Floats  # after training on parts of the real stays; of none, where these lack a class


def tstr(
    view: View,
    train: Cohort,
    test: Cohort,
    synthetic: Cohort,
    *,
    seed: int,
    repetitions: int,
    classifiers: Sequence[str] = ALL,
    inputs: Sequence[Kind] = ("flattened", "summary"),
    bootstrap: int = 200,
    device: str = "cpu",
    real: Trained | None = None,
    progress: Progress = silent,
) -> list[Score]:
    """TSTR, TRTR, TRTS and the gap TRTR − TSTR by each classifier, and the means over the paper's five."""
    if view.schema.label is None:
        return [unavailable("tstr", "tstr", NO_LABEL)]
    sets = _equal(train, test, synthetic, seed)
    bench, parts = Bench(view, train, seed, device), TrainingParts.of(sets["real"], seed)
    predicted = _predict(bench, sets, parts, classifiers, inputs, repetitions, real or Trained(train), progress)
    labels = {of: cohort.label for of, cohort in sets.items()}
    weights = {of: weighted(cohort, bootstrap, seed) for of, cohort in sets.items()}
    return _scores([one.areas(labels, weights) for one in predicted], labels, parts)


def tstr_by_group(
    view: View,
    train: Cohort,
    test: Cohort,
    synthetic: Cohort,
    features: str | Sequence[str],
    *,
    seed: int,
    repetitions: int,
    classifiers: Sequence[str] = CLASSICAL,
    inputs: Sequence[Kind] = ("flattened",),
    bootstrap: int = 200,
    device: str = "cpu",
    real: Trained | None = None,
    progress: Progress = silent,
) -> list[Score]:
    """TSTR, TRTR and gap of the held-out stays of each group; classifiers are trained once, on all stays.

    Groups are those of `groups`: values of a static feature, or quarters of the training stays by it.
    """
    label = view.schema.label
    if label is None:
        return [unavailable("tstr", "tstr", NO_LABEL)]
    sets = _equal(train, test, synthetic, seed)
    names = [features] if isinstance(features, str) else features
    found = [group for name in names for group in groups(sets["test"], name, train)]
    bench, parts = Bench(view, train, seed, device), TrainingParts.of(sets["real"], seed)
    predicted = _predict(bench, sets, parts, classifiers, inputs, repetitions, real or Trained(train), progress)
    out = []
    for group, inside in found:
        y = sets["test"].label[inside]
        why = f"{about(len(y))} held-out stays have {group}; {FEWEST} are needed." if len(y) < FEWEST else None
        why = why or one_class(y, label, f"held-out stays with {group}")
        weights = weighted(sets["test"].take(inside), 0 if why else bootstrap, seed)
        areas = [one.only(inside, why).areas({"test": y}, {"test": weights}) for one in predicted]
        out += [replace(score, group=group) for score in _scores(areas, {"test": y}, parts)]
    return out


def about(count: int) -> str:
    """A number of stays, too coarse to point at one."""
    if count == 0:
        return "no"
    return f"fewer than {MIN_AGGREGATE}" if count < MIN_AGGREGATE else f"about {round(count, -1):,}"


def events(metric: str, test: Cohort) -> list[Score]:
    """How many held-out stays have the rarest outcome that is there; fewer than ten are not counted out loud."""
    if test.schema.label is None:
        return []
    y = labelled(test).label
    counts = np.bincount(y)
    rarest = int(counts[counts > 0].min()) if (counts > 0).sum() > 1 else 0
    if rarest < MIN_AGGREGATE:
        return [unavailable(metric, "events", f"{about(rarest)} unseen stays have the rarer outcome")]
    return [Score(metric, "events", rarest, n=len(y))]


def events_by_group(test: Cohort, features: Sequence[str], reference: Cohort) -> list[Score]:
    """The same in each group."""
    known = labelled(test)
    found = [group for name in features for group in groups(known, name, reference)]
    return [replace(score, group=group) for group, inside in found for score in events("tstr", known.take(inside))]


def one_class(y: Array, label: Feature, who: str) -> str | None:
    """Why no AUROC can be had of these classes; None where it can."""
    counts = np.bincount(y, minlength=len(label.classes))
    if (counts > 0).sum() >= 2:
        return None
    parts = [f"{about(count)} {who} have {label.name} = {c}" for c, count in zip(label.classes, counts, strict=True)]
    return f"{' and '.join(parts)}; stays of two classes are needed."


def weighted(cohort: Cohort, bootstrap: int, seed: int) -> Counts:
    """How often each stay counts, (1 + bootstrap, N); the same for all that are tested on this cohort."""
    return resamples(resampling_units(cohort), bootstrap, stream("evaluation", seed, KEY, 1))


def labelled(cohort: Cohort) -> Cohort:
    label = cohort.schema.label
    assert label is not None
    unknown = np.isnan(np.asarray(cohort.static[label.name], np.float64))
    return cohort.take(~unknown) if unknown.any() else cohort


def shuffled(cohort: Cohort, seed: int, count: int | None = None) -> Cohort:
    """The stays with a label in random order; cohorts of one size in the same."""
    cohort = labelled(cohort)
    return cohort.take(stream("evaluation", seed, KEY, 2).permutation(len(cohort))[:count])


def _equal(train: Cohort, test: Cohort, synthetic: Cohort, seed: int) -> dict[str, Cohort]:
    """As many real stays as synthetic ones, so that neither is better to train on by being more."""
    count = min(len(labelled(train)), len(labelled(synthetic)))
    return {"real": shuffled(train, seed, count), "synthetic": shuffled(synthetic, seed, count), "test": labelled(test)}


def _predict(
    bench: Bench,
    sets: Mapping[str, Cohort],
    parts: TrainingParts,
    classifiers: Sequence[str],
    inputs: Sequence[Kind],
    repetitions: int,
    real: Trained,
    progress: Progress,
) -> list[Predictions]:
    """Every classifier on every kind of input, trained and tested."""
    label = bench.view.schema.label
    assert label is not None
    whys = {of: why for of, cohort in sets.items() if (why := one_class(cohort.label, label, SETS[of]))}
    least = min(map(len, sets.values()))
    plans: list[tuple[Kind | None, list[str]]] = [(k, [n for n in classifiers if n not in RECURRENT]) for k in inputs]
    plans.append((None, [name for name in classifiers if name in RECURRENT]))
    total = sum(len(names) for _, names in plans)
    out: list[Predictions] = []
    for kind, names in plans:
        rows = bench.rows(kind, {of: c for of, c in sets.items() if of not in whys}) if names else {}
        for name in names:
            models: dict[str, list[Model]] = {}
            predictions, whys_not = {}, {}
            for what, (trained_on, tested) in TESTS.items():
                if why := missing(name) or whys.get(trained_on) or whys.get(tested):
                    whys_not[what] = why
                    continue
                if trained_on not in models:
                    x, y, kept = rows[trained_on], sets[trained_on].label, real if trained_on == "real" else None
                    subsets = None if name in RECURRENT else bench.subsets(y, least, repetitions)
                    models[trained_on] = bench.models(name, kind, x, y, repetitions, kept, subsets=subsets)
                predictions[what] = [model(rows[tested]) for model in models[trained_on]]
            several = []
            for number, inside in enumerate(parts.positions if "trtr" in predictions else ()):
                x, y = rows["real"][inside], sets["real"].label[inside]
                (model,) = bench.models(name, kind, x, y, 1, real, part=(number + 1, parts.whole))
                several.append(model(rows["test"]))
            out.append(Predictions(f"{name}, {kind or 'series'}", predictions, whys_not, several))
            progress(len(out), total)
    return out


def _means(areas: Sequence[Areas]) -> list[Areas]:
    """The means over the paper's five classifiers, for each kind of input that all five had."""
    out = []
    for kind in ("flattened", "summary"):
        five = [one for one in areas if one.classifier in {f"{name}, {kind}" for name in CLASSICAL}]
        if len(five) < len(CLASSICAL):
            continue
        whys = {w: one.whys[w] for one in five for w in ("tstr", "trtr") if w in one.whys}
        tables = {}
        for what in {"tstr", "trtr"} - whys.keys():
            several = [one.tables[what] for one in five]
            most = max(len(table) for table in several)
            tables[what] = np.mean([np.broadcast_to(t, (most, t.shape[1])) for t in several], axis=0)
        parts = np.mean([one.parts for one in five], axis=0) if all(len(one.parts) for one in five) else np.empty(0)
        out.append(Areas(f"mean of five, {kind}", tables, whys, parts))
    return out


def _scores(areas: Sequence[Areas], labels: Mapping[str, Array], real: TrainingParts) -> list[Score]:
    """All numbers of all classifiers, with their floors: what a classifier trained on real stays reaches."""
    out = []
    for one in [*areas, *_means(areas)]:
        tables = dict(one.tables)
        whys = dict(one.whys)
        if "tstr" in tables and "trtr" in tables:
            tables["gap"] = tables["trtr"] - tables["tstr"]
        else:
            whys["gap"] = whys.get("tstr") or whys["trtr"]
        sizes = {what: len(labels[tested]) for what, (_, tested) in TESTS.items() if tested in labels}
        sizes["gap"] = sizes["tstr"]
        scores = {what: scored("tstr", what, one.classifier, table, sizes[what]) for what, table in tables.items()}
        for what in {"tstr", "trts"} & scores.keys() if "trtr" in scores else ():
            scores[what] = scores[what].with_floor(scores["trtr"])
        reach = real.reach(one.parts)
        if "gap" in scores and not math.isnan(reach):  # which of two sets of real stays loses has no sign
            scores["gap"] = replace(scores["gap"], floor=0.0, floor_low=-reach, floor_high=reach)
        scores |= {what: unavailable("tstr", what, why, classifier=one.classifier) for what, why in whys.items()}
        out += [scores[what] for what in ("tstr", "trtr", "trts", "gap") if what in scores]
    return out


def scored(metric: str, what: str, classifier: str, table: Floats, stays: int) -> Score:
    mean, std = mean_and_std(table[:, 0])
    low, high = interval(table[:, 1:].mean(axis=0))
    return Score(metric, what, mean, classifier=classifier, n=stays, std=std, low=low, high=high)
