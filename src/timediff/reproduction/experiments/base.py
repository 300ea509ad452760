"""What an experiment is: methods, what is measured of them, and which printed numbers stand beside it."""

from dataclasses import dataclass
from typing import Literal

from timediff.reproduction.methods import Method

Part = Literal["train", "some"]  # all training stays, or the 2,000 of TSRTR


@dataclass(frozen=True)
class Number:
    """One number of a measure, and its name in the paper's tables."""

    measure: str  # of measures.py
    what: str  # of the score; all that begin so
    metric: str  # in published/ and in our results
    title: str
    classifier: str = ""  # all that begin so


@dataclass(frozen=True)
class Arm:
    """Methods that are trained on the same stays and measured alike."""

    methods: tuple[Method, ...]
    measures: tuple[str, ...]
    part: Part = "train"
    label: str = ""  # where an experiment has several arms
    records_only: bool = False  # only stays of hospitals, and no windows of one series
    beside: tuple[tuple[str, str], ...] = ()  # methods that the paper's table calls otherwise

    def row(self, method: Method) -> str:
        """The method's name in the paper's table."""
        return dict(self.beside).get(method.name, method.name)


@dataclass(frozen=True)
class Experiment:
    name: str
    title: str
    place: str  # tables and figures of the paper
    differs: str  # from what the paper did, whatever the budget; empty: nothing that we know of
    arms: tuple[Arm, ...] = ()
    numbers: tuple[Number, ...] = ()
    published: str = ""  # a file of published/; empty: the paper has figures without numbers
    own_data: bool = False  # runs on data sets that are made for it alone
    real: Literal["floor", "measured", "none"] = "none"  # where the paper's row of real data comes from
    told: Literal["scores", "statistics", "times"] = "scores"  # what its rows are made of
