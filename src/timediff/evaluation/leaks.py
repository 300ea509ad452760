"""Leaks: what makes an evaluation lie before anything is measured. Test stays that were trained on, or copied."""

from dataclasses import dataclass

from timediff.data.cohort import Cohort
from timediff.data.overlap import identical_stays, overlapping_windows, shared_patients
from timediff.errors import TimeDiffError


@dataclass(frozen=True)
class Leak:
    """What the training and the test cohort share though they must not, and how to mend it."""

    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}; expected none. {self.remedy}"


def leaks(train: Cohort, test: Cohort) -> list[Leak]:
    """Patients, steps of one series, and whole stays that are in both cohorts."""
    found = []
    if count := shared_patients(train, test):
        found.append(
            Leak(
                f"{count:,} patient{'s' * (count > 1)} of the test cohort {_are(count)} in the training cohort too",
                "Split again with `timediff split`, which keeps the stays of a patient together, and fit again.",
            )
        )
    if count := overlapping_windows(train, test):
        found.append(
            Leak(
                f"{count:,} of {len(test):,} test windows overlap{'s' * (count == 1)} windows of the training cohort",
                "Split again with `timediff split --by blocks`, which leaves gaps, and fit again.",
            )
        )
    if count := identical_stays(train, test):
        found.append(
            Leak(
                f"{count:,} of {len(test):,} test stays {_are(count)} in the training cohort too, value for value",
                "Give the two cohorts that `timediff split` wrote, or take these stays out of one of them.",
            )
        )
    return found


def refuse_leaks(train: Cohort, test: Cohort) -> None:
    """For a protocol whose numbers are of stays that no generator has seen."""
    if found := leaks(train, test):
        raise TimeDiffError(f"{found[0]} (--protocol paper measures anyway, and warns.)")


def refuse_copied(test: Cohort, name: str, synthetic: Cohort) -> None:
    """For the same protocol: a synthetic cohort that holds test stays."""
    if count := identical_stays(test, synthetic):
        raise TimeDiffError(
            f"{count:,} of {len(synthetic):,} stays of the synthetic cohort {name!r} {_are(count)} copied from the "
            "test cohort; expected none, since a generator must not have seen it. Fit to the training cohort "
            "alone and sample again, or give a test cohort that was never trained on."
        )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
