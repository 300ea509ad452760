"""Plain words: each question answered in one sentence that needs no statistics; the numbers stand behind it.

They say what a verdict says (`verdicts`, `audit_verdicts`), and decide nothing themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from timediff.evaluation.results import Results
from timediff.report.meanings import EXPOSES, LOOKS, USEFUL
from timediff.report.verdicts import Verdict, verdicts

if TYPE_CHECKING:
    from timediff.report.audit_verdicts import AuditVerdict

SHORTLY = {
    LOOKS: {
        "good": "look real",
        "with care": "look nearly real",
        "too few to say": "are too few to say whether they look real",
        "poor": "do not look real",
        "not measured": "may look real or not",
    },
    USEFUL: {
        "good": "are useful for what was tried",
        "with care": "are of limited use for what was tried",
        "too few to say": "are too few to say whether they are useful",
        "poor": "are of little use for what was tried",
        "not measured": "are of unknown use",
    },
    EXPOSES: {
        "good": "no attack found a patient in them",
        "not shown": "whether they expose anyone is not shown",
        "with care": "a leak is not ruled out",
        "too few to say": "there are too few to rule out a leak",
        "poor": "they show signs of a leak",
        "not measured": "nobody has looked for a leak",
    },
}
UNSURE = "It cannot be said: there are too few stays to tell."
SENTENCES = {
    LOOKS: {
        "good": "Yes: classifiers tell synthetic from real stays hardly better than real stays from each other.",
        "with care": "Nearly: a classifier tells synthetic from real stays somewhat better than it should.",
        "too few to say": UNSURE,
        "poor": "No: a classifier plainly tells synthetic from real stays.",
        "not measured": "Not measured: no classifier has tried to tell its stays from real ones.",
    },
    USEFUL: {
        "good": "Yes, for what was tried: what is learned from synthetic stays does about as well on real ones.",
        "with care": "Partly: what is learned from synthetic stays does somewhat worse on real ones.",
        "too few to say": UNSURE,
        "poor": "No: what is learned from synthetic stays does clearly worse on real ones.",
        "not measured": "Not measured: what can be learned from its stays is not known.",
    },
    EXPOSES: {
        "good": "Nobody, as far as was tried: the attacks that were made succeed no better than chance.",
        "not shown": "Not shown: nothing was found, but what was done could not have found everything.",
        "with care": "Not ruled out: a test found something small, or was not made.",
        "too few to say": UNSURE,
        "poor": "Patients of the training data: there are signs of a leak.",
        "not measured": "Not measured: nobody has looked for a leak.",
    },
}
# Of an audit, by its word. Whether something may leave is for people to say, so no sentence says yes.
LEAVES = {
    "cohort": {
        "no sign of a leak": "Nothing that was tried speaks against it: no attack succeeded, and the attacks would "
        "have found copies of a few patients. It is no proof that nobody can be recognised.",
        "not shown": "It cannot be said: no attack succeeded, but the attacks would have missed a small leak.",
        "with care": "Only with care: an attack succeeded a little better than chance.",
        "signs of a leak": "No: there are signs that patients of the training data can be recognised.",
        "not attacked": "Not audited: nobody has tried to recognise patients in it.",
    },
    "run": {
        "no sign of a leak": "Nothing that was tried speaks against it: no attack succeeded, and the attacks find what "
        "a model knows by heart. It still knows more than any cohort sampled from it.",
        "not shown": "It cannot be said: no attack succeeded, but the attacks would have missed a leak.",
        "with care": "Only with care: an attack succeeded a little better than chance.",
        "signs of a leak": "No: who has it can recognise patients of the training data.",
        "not attacked": "Not audited: it must be kept like the training data themselves.",
    },
}
COHORT_OF = {"good": "no sign of a leak", "poor": "signs of a leak", "not measured": "not attacked"}
NO_AUDIT = "Not audited: no copies of patients were found in it, but nobody has tried to recognise anyone."
COPIED = "No: {:,} of its stays {} a stay of the training data, value for value."
CLASSES = {
    "good": "good",
    "no sign of a leak": "good",
    "not shown": "few",
    "with care": "care",
    "too few to say": "few",
    "poor": "poor",
    "signs of a leak": "poor",
}  # of the badge, by grade or word; any other has none


@dataclass(frozen=True)
class Answer:
    question: str
    word: str
    sentence: str
    reasons: tuple[str, ...] = ()  # with their numbers, the one that decided first

    @property
    def kind(self) -> str:
        """The class of its badge."""
        return CLASSES.get(self.word, "none")


def answer(verdict: Verdict) -> Answer:
    """A verdict of an evaluation; a grade without a sentence of its own stands for itself."""
    plain = SENTENCES[verdict.question].get(verdict.grade, f"{verdict.word[:1].upper()}{verdict.word[1:]}.")
    return Answer(verdict.question, verdict.word, plain, verdict.sentences)


def may_leave(verdict: "AuditVerdict", what: str) -> Answer:
    """A verdict of an audit of the "cohort" or of the "run"."""
    plain = LEAVES[what].get(verdict.word, f"{verdict.word[:1].upper()}{verdict.word[1:]}.")
    return Answer(verdict.question, verdict.word, plain, verdict.sentences)


def cohort_may_leave(question: str, verdict: Verdict, *, audited: bool) -> Answer:
    """From the third question of an evaluation, which an audit of the cohort has answered or not."""
    word = COHORT_OF.get(verdict.grade, verdict.grade)
    plain = LEAVES["cohort"].get(word, UNSURE)
    if not audited and word == "not shown":
        plain = NO_AUDIT
    elif not audited and word == "with care":
        plain = "Not audited, and copies of patients were not looked for in every way."
    return Answer(question, word if word != "not attacked" else "not audited", plain, verdict.sentences)


def overall(results: Results, names: Sequence[str]) -> list[str]:
    """One sentence a generator, before anything else."""
    said = []
    for name in names:
        looks, useful, exposes = (SHORTLY[v.question].get(v.grade, v.word) for v in verdicts(results, name))
        said.append(f"The synthetic stays of {name} {looks}, {useful}, and {exposes}.")
    return said
