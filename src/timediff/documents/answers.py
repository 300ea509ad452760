"""What a decision rests on, in sentences: four answers, limits and risks, and what uses and conditions are usual."""

import math
from collections.abc import Iterator

from timediff.data.provenance import HASH
from timediff.documents.known import Known
from timediff.evaluation.attacks.registry import ATTACKS, Has
from timediff.report.audit_verdicts import QUESTIONS as MAY_LEAVE
from timediff.report.audit_verdicts import audit_verdicts
from timediff.report.meanings import LOOKS, USEFUL, families
from timediff.report.plain_words import COPIED, Answer, answer, cohort_may_leave, may_leave
from timediff.report.verdicts import Verdict, verdicts

FEW_STAYS = 1_000  # below that a model remembers each training stay more
WAYS = {"cohort": "--synthetic SYN", "run": "--run RUN"}
EVALUATE = "timediff evaluate --train TRAIN --test TEST --synthetic SYN --out RESULTS"
AUDIT = "timediff audit TRAIN TEST AUDIT {}"
USES = (
    "Developing and testing software, queries and analysis plans",
    "Teaching",
    "Developing methods, with results confirmed on real data before they are reported",
)
NO_USES = (
    "Decisions about a patient",
    "Findings about patients or treatments that are not confirmed on real data",
    "Training of models that are used on patients without a test on real data",
)
CONDITIONS = (
    "Nobody tries to recognise a person, nor joins it with data about persons",
    "It is not passed on",
    "Publications say that the data are synthetic, and name the hash below",
    "Whatever looks like a leak is reported to the contact above, and use stops until it is cleared up",
    "The run folder stays in the house",
)
EXPIRY = (
    "on a new release of stays of the same patients: several releases tell more than each of them",
    "when an attack becomes known that was not made here",
    "when a patient withdraws consent, where the use rests on consent",
)
RESIDUAL = (
    "No test proves that nobody can be recognised: an attacker may know more, train more models, or have a better "
    "attack than those that were made.",
    "Nothing here is differentially private: there is no bound that holds for every patient and every attacker.",
    "One release was looked at. Several cohorts from one run, or of the same patients, tell more than each of them.",
    "What an attacker knows of a patient from elsewhere was modelled only as far as the attacks above say.",
    "Numbers are averages or are about groups: for a patient who stands out, the risk can be larger.",
)


def answers(known: Known) -> list[Answer]:
    """Does it look real? Is it useful? May the cohort leave, may the run folder?"""
    if known.results is None:
        missing = (f"It was not evaluated: {EVALUATE}",)
        unknown = [Answer(question, "not evaluated", said, missing) for question, said in NOT_EVALUATED.items()]
        return [*unknown, _cohort(known, None), _run(known)]
    looks, useful, exposes = verdicts(known.results, known.name)
    return [answer(looks), answer(useful), _cohort(known, exposes), _run(known)]


def _cohort(known: Known, exposes: Verdict | None) -> Answer:
    question, audited = MAY_LEAVE["cohort"], "cohort" in known.audits
    if exposes is not None:
        found = cohort_may_leave(question, exposes, audited=audited)
    elif audited:
        found = may_leave(audit_verdicts(known.audits["cohort"])[0], "cohort")
    else:
        missing = f"It was not audited: {AUDIT.format(WAYS['cohort'])}"
        found = cohort_may_leave(question, Verdict(question, "not measured", (missing,)), audited=False)
    if not known.copies or found.word == "signs of a leak":
        return found
    copied = COPIED.format(known.copies, "equals" if known.copies == 1 else "equal")
    return Answer(question, "signs of a leak", copied, found.reasons)


def _run(known: Known) -> Answer:
    audit = known.audits.get("run")
    if audit is not None:
        return may_leave(audit_verdicts(audit)[1], "run")
    return Answer(
        MAY_LEAVE["run"], "not audited", NOT_AUDITED_RUN, (f"It was not audited: {AUDIT.format(WAYS['run'])}",)
    )


NOT_EVALUATED = {
    LOOKS: "Not evaluated: nobody has compared its stays with real ones.",
    USEFUL: "Not evaluated: nobody has tried what it can be used for.",
}
NOT_AUDITED_RUN = "Not audited: it must be kept like the training data themselves."


def limits(known: Known) -> list[str]:
    """What is not known, and what is known to be weak; from what was given."""
    return [*known.notes, *_of_data(known), *_of_evaluation(known), *_of_audits(known)]


def _of_data(known: Known) -> Iterator[str]:
    if len(known.train) < FEW_STAYS:
        yield (
            f"The generator was trained on {len(known.train):,} stays, which are few: a model remembers each of them "
            "more than one of many."
        )
    if known.train.schema.patient is None:
        yield "No column says which stays are of one patient, so all were taken to be of different patients."
    if known.provenance.derived:
        yield "The cohort is a part of what was sampled, or of several samplings; how the stays were chosen is unknown."
    if known.trained.get("edited"):
        yield f"The run was resumed after files in it were edited: {', '.join(known.trained['edited'])}."
    rare = "A kind of stay that few patients have may be absent or wrong: a model learns the frequent first."
    yield rare


def _of_evaluation(known: Known) -> Iterator[str]:
    if known.results is None:
        yield "It was not evaluated: whether it looks real and what it can be used for is unknown."
        return
    yield from known.results.warnings
    scores = known.results.scores[known.name]
    measured = {s.metric for s in scores if not math.isnan(s.value)}
    if absent := [metric.title for metric in families() if metric.name not in measured]:
        yield f"Not measured: {', '.join(absent)}."
    if lost := sum(math.isnan(s.value) for s in scores):
        yield f"{lost} of {len(scores)} numbers could not be computed; the report of the evaluation says why."
    if not any(s.group for s in scores):
        yield "Whether some groups of patients are generated worse than others was not measured."
    if len(known.results.facts.get(f"{known.name}, SHA-256", "").split()) > 1:
        yield "The evaluation is of several cohorts of this generator together; this one is among them."


def _of_audits(known: Known) -> Iterator[str]:
    names: dict[Has, str] = {"cohort": "synthetic cohort", "run": "run folder"}
    for has, name in names.items():
        audit = known.audits.get(has)
        if audit is None:
            yield f"The {name} was not audited: no attack on it was made."
            continue
        made = {score.classifier for score in audit.scores if score.classifier}
        every = [one for one in map(ATTACKS, ATTACKS.names()) if one.has == has]
        if absent := [one.title for one in every if one.name not in made]:
            yield f"Attacks on the {name} that were not made: {'; '.join(absent)}."
        yield from audit.notes


def described(known: Known) -> str:
    """The cohort in one sentence."""
    schema = known.synthetic.schema
    label = f", with the outcome {schema.label.name}" if schema.label else ""
    return (
        f"{len(known.synthetic):,} synthetic stays of up to {schema.steps} steps of {schema.step}, "
        f"{len(schema.temporal)} features over time and {len(schema.static)} of the whole stay{label}. A model "
        f"({known.generator}) that was trained on {len(known.train):,} real stays made them."
    )


def hashes(known: Known) -> dict[str, str]:
    """What belongs together, by the digits that a person compares."""
    found = {
        "synthetic cohort": known.synthetic.digest(),
        "run": known.identity,
        "training stays": known.train.digest(),
        "held-out stays": known.test.digest(),
    }
    return {name: digest[:HASH] for name, digest in found.items()}
