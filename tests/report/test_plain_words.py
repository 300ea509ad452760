"""Every verdict has a sentence in plain words, and none says more than the verdict does."""

import re
from typing import get_args

import pytest

from timediff.evaluation.results import Results
from timediff.evaluation.score import Score
from timediff.report.audit_verdicts import AuditVerdict, Word
from timediff.report.meanings import EXPOSES, QUESTIONS
from timediff.report.plain_words import (
    CLASSES,
    LEAVES,
    SENTENCES,
    SHORTLY,
    answer,
    cohort_may_leave,
    may_leave,
    overall,
)
from timediff.report.verdicts import Grade, Verdict

JARGON = re.compile(r"AUC|AUROC|NNAA|MIR|TSTR|TPR|floor|classifier's|ε|0\.\d")


def test_each_grade_and_word_has_its_sentence_without_jargon() -> None:
    for question in QUESTIONS:
        assert set(SENTENCES[question]) | {"not shown"} == set(get_args(Grade))
        assert set(SHORTLY[question]) == set(SENTENCES[question])
    assert all(set(sentences) == set(get_args(Word)) for sentences in LEAVES.values())
    said = [text for table in (SENTENCES, LEAVES, SHORTLY) for row in table.values() for text in row.values()]
    assert not [text for text in said if JARGON.search(text)]
    assert all(text.endswith(".") for table in (SENTENCES, LEAVES) for row in table.values() for text in row.values())


def test_no_sentence_says_that_something_may_leave() -> None:
    """That is for people to decide."""
    assert not any(text.startswith("Yes") for row in LEAVES.values() for text in row.values())


@pytest.mark.parametrize("word", get_args(Word))
def test_what_is_bad_looks_bad(word: Word) -> None:
    found = may_leave(AuditVerdict("May it?", word, ("why",)), "run")
    assert found.sentence.startswith("No:") == (word == "signs of a leak") == (found.kind == "poor")
    assert (found.kind == "good") == (word == "no sign of a leak")
    assert found.reasons == ("why",)


@pytest.mark.parametrize("grade", get_args(Grade))
def test_without_an_audit_nothing_is_called_safe(grade: Grade) -> None:
    found = cohort_may_leave("May it?", Verdict(EXPOSES, grade, ()), audited=False)
    if grade == "poor":
        assert found.sentence.startswith("No:")
    elif grade != "too few to say" and grade != "good":  # "good" is only said of attacks
        assert found.sentence.startswith("Not audited")


def test_an_unknown_grade_stands_for_itself() -> None:
    odd = Verdict(EXPOSES, "odd", ())  # type: ignore[arg-type]
    assert answer(odd).sentence == "Odd."
    assert answer(odd).kind == "none"
    assert set(CLASSES) <= {*get_args(Grade), *get_args(Word)}


def test_one_sentence_a_generator_says_all_three() -> None:
    poor = [Score("discriminative", "auc", 0.9, classifier="strong", floor=0.5), Score("copies", "share", 0.5, floor=0)]
    results = Results(("a", "b"), {"a": poor, "b": []}, {}, {})
    assert overall(results, results.generators) == [
        "The synthetic stays of a do not look real, are of unknown use, and they show signs of a leak.",
        "The synthetic stays of b may look real or not, are of unknown use, and nobody has looked for a leak.",
    ]
