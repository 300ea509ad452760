"""What a dossier is of: real stays, a run, what was sampled, an evaluation and an audit, as small as they can be."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from helpers.small_runs import small_settings
from timediff.data.cohort import Cohort
from timediff.evaluation.audit import audit
from timediff.evaluation.audit_work import AuditSettings
from timediff.evaluation.evaluate import evaluate
from timediff.generators.timediff.generator import TimeDiff
from timediff.sources.simulated import simulate


@dataclass(frozen=True)
class Released:
    home: Path

    def given(self, **changes: Any) -> dict[str, Any]:
        """What `dossier` takes; a change may name another folder of the home."""
        names = {"run": "run", "synthetic": "synthetic", "train": "train", "test": "test"} | changes
        return {key: self.home / name if isinstance(name, str) else name for key, name in names.items()}

    def options(self, **changes: Any) -> list[str]:
        """The same for the command line."""
        return [word for key, value in self.given(**changes).items() for word in (f"--{key}", str(value))]


def released(home: Path) -> Released:
    whole = simulate(460, steps=5, seed=8)

    def part(first: int, last: int) -> Cohort:
        return whole.take(np.arange(first, last))

    train, test, other = part(0, 200), part(200, 400), part(400, 460)
    for name, one in (("train", train), ("test", test), ("other", other)):
        one.write(home / name)
    models = {"run": 0, "run-2": 1}
    for name, seed in models.items():
        TimeDiff(settings=small_settings(2)).fit(train, seed=seed, run=home / name)
    model = TimeDiff.load(home / "run")
    synthetic, second = model.sample(120, seed=1), model.sample(120, seed=2)
    synthetic.write(home / "synthetic")
    second.write(home / "synthetic-2")
    only = ["copies", "near_copies", "fidelity"]
    evaluate(train, test, {"small": synthetic}, only=only).write(home / "results")
    evaluate(train, test, {"small": second}, only=["copies"]).write(home / "results-2")
    evaluate(train, other, {"small": synthetic}, only=["copies"]).write(home / "results-other")
    settings = AuditSettings(attacks=("distance",))
    audit(train, test, synthetic=synthetic, settings=settings).write(home / "audit")
    weak = AuditSettings(attacks=("distance",), power=False)
    audit(train, test, synthetic=second, settings=weak).write(home / "audit-2")
    audit(test, train, synthetic=synthetic, settings=weak).write(home / "audit-other")
    loss = AuditSettings(attacks=("loss",), power=False)
    audit(train, test, run=model, settings=loss).write(home / "audit-run")
    audit(train, test, run=TimeDiff.load(home / "run-2"), settings=loss).write(home / "audit-run-2")
    return Released(home)
