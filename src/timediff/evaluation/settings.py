"""What an evaluation is asked for."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from timediff.errors import TimeDiffError
from timediff.evaluation.inputs.view import Protocol
from timediff.evaluation.registry import HOMES, METRICS
from timediff.runtime.seeding import require_seed

RANGES = {"repetitions": (1, 10_000), "bootstrap": (0, 1_000_000), "samples": (1, 10**7), "tsrtr_real": (1, 10**9)}


@dataclass(frozen=True)
class EvaluationSettings:
    protocol: Protocol = "strict"
    seed: int = 0
    repetitions: int = 10  # of every classifier that is trained, each with its own seed
    bootstrap: int = 200
    only: tuple[str, ...] = ()  # names of metrics; empty = all of ours (those of other packages are asked for by name)
    skip: tuple[str, ...] = ()
    mir_threshold: float = 0.08  # the paper's; it takes 0.005 for eICU
    samples: int = 2000  # of each set in an embedding
    tsrtr_real: int = 2000
    internal: bool = False  # draw single points of real stays: a page that stays in the house
    device: str = "auto"

    def _repr_html_(self) -> str:
        from timediff.report.notebook import facts_html

        return facts_html(type(self).__name__, asdict(self))

    @staticmethod
    def quick(**changes: Any) -> "EvaluationSettings":
        """Three repetitions, and the quick metrics alone."""
        slow = tuple(name for name in HOMES if not METRICS(name).quick)
        return EvaluationSettings(**{"repetitions": 3, "skip": slow, **changes})

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(name for name in self.only or HOMES if name not in self.skip)

    def check(self) -> None:
        for name in (*self.only, *self.skip):
            METRICS(name)  # one that is not there is answered with the nearest
        if self.protocol not in ("paper", "strict"):
            raise TimeDiffError(f"protocol is {self.protocol!r}; expected strict or paper.")
        require_seed(self.seed)
        for name, (least, most) in RANGES.items():
            if not least <= getattr(self, name) <= most:
                raise TimeDiffError(
                    f"{name} is {getattr(self, name)}; expected a whole number from {least} to {most:,}."
                )
        if not 0 <= self.mir_threshold < math.inf:
            raise TimeDiffError(f"mir_threshold is {self.mir_threshold}; expected a distance, such as 0.08.")
