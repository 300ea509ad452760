"""A budget: what is cut so that everything that was asked for fits into so many minutes, and what does not fit then.

Nothing is measured while it works: costs follow from the sizes of networks and from one small probe of the machine.
What was decided is written down, so that whoever resumes does the same.
"""

import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

FEWEST_UPDATES = 50
GRACE = 1.5  # of the budget, after which nothing more is begun, however long it was thought to take
START = 4.0  # seconds for a training to begin: reading, compiling, checkpoints
REFERENCE = 8e10  # FLOP/s of two cores in an LSTM of the paper's size, by which the costs of metrics are counted
LEAST_STEP = 2e-4  # seconds of a step of a recurrent network, however small it is
SIMULATED = (600, 5000)  # stays of a simulated database: with a budget of less than an hour, and else


@dataclass(frozen=True)
class Scale:
    """How much of everything is done."""

    updates: float = 1.0  # of each preset's
    seeds: int = 3  # trainings
    repetitions: int = 10  # of each classifier
    stays: int | None = None  # of a data set, before it is split
    sampling: int | None = None  # steps

    def cuts(self) -> list[str]:
        """What is not as without a budget, in words."""
        full, found = Scale(), []
        if self.updates < full.updates:
            found.append(f"{100 * self.updates:g} % of each preset's updates, but at least {FEWEST_UPDATES}")
        if self.seeds < full.seeds:
            found.append(f"{self.seeds} training seed{'s' * (self.seeds > 1)} instead of {full.seeds}")
        if self.repetitions < full.repetitions:
            times = f"repetition{'s' * (self.repetitions > 1)}"
            found.append(f"{self.repetitions} {times} of each classifier instead of {full.repetitions}")
        if self.stays is not None:
            found.append(f"at most {self.stays:,} stays of each data set, training and test together")
        if self.sampling is not None:
            found.append(f"at most {self.sampling} sampling steps of each diffusion model")
        return found


SCALES = (
    Scale(),
    Scale(1.0, 1, 10),
    Scale(0.3, 1, 10),
    Scale(0.1, 1, 5, 20_000, 250),
    Scale(0.03, 1, 3, 8000, 100),
    Scale(0.01, 1, 3, 3000, 50),
    Scale(0.003, 1, 2, 1000, 50),
    Scale(0.001, 1, 1, 400, 25),
)  # from all to least; the first one that fits is taken


@dataclass(frozen=True)
class Job:
    """One thing to do, and what must be done for it before; what several need is paid for once."""

    name: Hashable
    seconds: float
    needs: tuple[tuple[Hashable, float], ...] = ()


@dataclass(frozen=True)
class Choice:
    scale: Scale
    dropped: tuple[Hashable, ...]  # names of jobs that do not fit
    seconds: float  # that the rest is thought to take


def choose(by_scale: Mapping[Scale, Sequence[Job]], seconds: float) -> Choice:
    """The largest scale at which all fits; else the last one, without those that do not fit, in their order."""
    last = None
    for scale, jobs in by_scale.items():
        total = cost(jobs)
        if total <= seconds:
            return Choice(scale, (), total)
        last = scale, jobs
    assert last is not None
    scale, jobs = last
    paid: set[Hashable] = set()
    spent, dropped = 0.0, []
    for job in jobs:
        more = job.seconds + sum(each for name, each in job.needs if name not in paid)
        if job.seconds > 0 and spent + more > seconds:
            dropped.append(job.name)
            continue
        spent += more
        paid |= {name for name, _ in job.needs}
    return Choice(scale, tuple(dropped), spent)


def cost(jobs: Iterable[Job]) -> float:
    """Seconds of all of them."""
    paid: dict[Hashable, float] = {}
    own = 0.0
    for job in jobs:
        own += job.seconds
        paid |= {name: max(each, paid.get(name, 0.0)) for name, each in job.needs}
    return own + sum(paid.values())


@dataclass(frozen=True)
class Machine:
    flops: float = REFERENCE  # a second, in training a recurrent network

    @property
    def slower(self) -> float:
        """Than the reference."""
        return REFERENCE / self.flops

    def training(self, updates: int, parameters: int, stays: int, steps: int) -> float:
        """Seconds: three passes of two operations a parameter, for each step of each stay."""
        update = 6 * parameters * stays * steps / self.flops
        return START + updates * max(update, LEAST_STEP * steps)

    def sampling(self, calls: int, parameters: int, stays: int, steps: int) -> float:
        return calls * max(2 * parameters * stays * steps / self.flops, LEAST_STEP * steps)


def probe() -> Machine:
    """How fast this machine trains the paper's network: the fastest of some updates, which take about a second."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    batch, steps, width = 64, 25, 92
    network = torch.nn.LSTM(23, width, 2, bidirectional=True, batch_first=True).to(device)
    x = torch.zeros(batch, steps, 23, device=device)
    best = float("inf")
    for _ in range(6):
        begun = time.perf_counter()
        network(x)[0].sum().backward()
        if device == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - begun)
    parameters = sum(one.numel() for one in network.parameters())
    return Machine(6 * parameters * batch * steps / best)
