"""Run by test_faults.py: plants defects in TimeDiff, one after the other, and prints what the fault campaign counts.

A process of its own with one thread, so that it can fork.
"""

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import torch

import timediff.data.cohort
import timediff.generators.run
from fault_campaign.campaign import Campaign, Counts
from fault_campaign.children import warm
from fault_campaign.doors import DOORS, chosen
from fault_campaign.mutations import MARK
from timediff.errors import TimeDiffError
from timediff.runtime.manifest import Differences

sound = timediff.data.cohort.read_cohort
save = timediff.generators.run.save


def instead_of_a_refusal(defect):
    """Reads cohorts, and does something else where one is refused."""

    def read_cohort(path, **options):
        try:
            return sound(path, **options)
        except TimeDiffError:
            return defect()

    return patch.object(timediff.data.cohort, "read_cohort", read_cohort)


def key_error():
    return {}["patient"]


def left_behind():
    Path(".train.partial-1").mkdir()
    raise TimeDiffError("the cohort is damaged.")


def leaked():
    raise TimeDiffError(f"the stay {MARK} is damaged.")


def weights_of_this_process(tensors):
    return save({**tensors, "process": torch.tensor([os.getpid()])})


COHORT_DEFECTS = {
    "traceback": key_error,
    "leftover": left_behind,
    "leak": leaked,
    "exit code": lambda: sys.exit(3),
    "hang": lambda: time.sleep(60),
    "crash": os.abort,
}


def main() -> None:
    found = {}
    warm()
    with Campaign(0, limit=2, say=lambda line: None) as campaign:
        numbers = {door: [n for n in range(800) if chosen(0, n)[0] == door] for door in ("cohort", "run")}
        campaign.sound.build((*DOORS["cohort"][2], *DOORS["run"][2]))

        def counted(defect):
            campaign.counts = Counts()
            with defect:
                yield
            found[name] = Counter()
            for (_, kind, where), replays in campaign.counts.failures.items():
                found[name][f"kill: {where}" if kind == "kill" else kind] += len(replays)

        for name, defect in COHORT_DEFECTS.items():
            for _ in counted(instead_of_a_refusal(defect)):
                campaign.cases(numbers["cohort"][: 2 if name in ("hang", "crash") else 6])
        name = "silent acceptance"
        for _ in counted(patch.object(timediff.generators.run, "compared", lambda *given: Differences())):
            campaign.cases(numbers["run"])
        campaign.limit = 60
        name = "kill"
        for _ in counted(patch.object(timediff.generators.run, "save", weights_of_this_process)):
            campaign.kills(range(1), timed=False)
        name = "nothing"
        for _ in counted(patch.object(timediff.generators.run, "save", save)):
            campaign.cases(numbers["cohort"][:12])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
