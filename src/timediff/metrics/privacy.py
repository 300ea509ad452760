"""Privacy: whether synthetic stays lie nearer to the training stays than to stays that nobody trained on.

Rows are stays (`View.flat`). Only these scores read the training stays.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from timediff.metrics.neighbours import nearest, nearest_both
from timediff.metrics.record import Score, interval, repeated, unavailable, with_floors
from timediff.seeding import stream
from timediff.tables import Array, Floats

FEWEST = 20  # stays in each set
RESAMPLES = 1000
DRAW, CUT, BOOTSTRAP = 31, 32, 33  # parts of the judging stream

Distances = npt.NDArray[np.float32]
Sets = Mapping[str, Array]
Flags = Mapping[str, Floats]  # what each stay adds to a share, by the set and what its neighbours are compared with

NNAA = ("aa_train", "aa_test", "nnaa", "nearer_training")
MIR = ("f1", "tpr", "fpr", "auc", "no_leak_f1")


def nnaa(
    train: Array, test: Array, synthetic: Array, *, seed: int = 0, repetitions: int = 5, device: str = "cpu"
) -> list[Score]:
    """Nearest-neighbour adversarial accuracy (Yale et al. 2020; the paper's appendix), on sets of equal size.

    Each repetition draws other subsets of the sets that are larger than the smallest; the interval covers them too.
    The floor is that of real stays: half of the test set in place of the synthetic stays.
    """
    if why := _too_few(train, test, synthetic):
        return [unavailable("nnaa", what, why) for what in NNAA]
    sets = {"train": train, "test": test, "synthetic": synthetic}
    size = min(map(len, sets.values()))
    whole = {name for name, rows in sets.items() if len(rows) == size}
    scores = _nnaa(_draws(sets, seed, repetitions), whole, seed, device)
    if len(test) < 2 * FEWEST:
        return [replace(score, note=_no_floor(test)) for score in scores]
    cuts = (_halved(train, test, seed, repetition) for repetition in range(repetitions))
    return with_floors(scores, _nnaa(cuts, (), seed, device))


def mir(
    train: Array, test: Array, synthetic: Array, *, threshold: float = 0.08, seed: int = 0, device: str = "cpu"
) -> list[Score]:
    """Membership inference risk (Liu et al. 2019; the paper's appendix), on rows scaled to [0, 1] by the caller.

    The attack calls a stay a member if its squared distance to the nearest synthetic stay, scaled to [0, 1] within
    its set, is at most `threshold`. That scaling uses who is a member; "auc" does without it: no threshold, raw
    distances. "no_leak_f1" is the F1 of an attack with as many alarms, as many among members as among others.
    """
    if why := _too_few(train, test, synthetic):
        return [unavailable("mir", what, why) for what in MIR]
    size = min(len(train), len(test))
    rng = stream("judging", seed, DRAW)
    scores = _mir(_sample(train, size, rng), _sample(test, size, rng), synthetic, threshold, seed, device)
    if len(test) < 2 * FEWEST:
        return [replace(score, note=_no_floor(test)) for score in scores]
    half = _halved(train, test, seed, 0)
    return with_floors(scores, _mir(half["train"], half["test"], half["synthetic"], threshold, seed, device))


def copied(train: Array, test: Array, synthetic: Array, *, seed: int = 0) -> list[Score]:
    """The share of synthetic stays that equal a training stay; the floor is the share of held-out stays that do."""
    if why := _too_few(train, test, synthetic):
        return [unavailable("copies", "share", why)]
    return with_floors([_share(train, synthetic, seed)], [_share(train, test, seed)])


def copies(train: Array, rows: Array) -> float:
    """The share of `rows` at distance 0 from a training row."""
    return float(_equal(train, rows).mean())


def _nnaa(draws: Iterable[Sets], whole: Collection[str], seed: int, device: str) -> list[Score]:
    measure = _Flags(whole, device)
    flags = [measure.of(sets) for sets in draws]
    values = [_accuracies(flag) for flag in flags]
    size = len(flags[0]["test"])

    def resampled(rng: np.random.Generator, i: int) -> dict[str, float]:
        index = {name: rng.integers(size, size=size) for name in ("train", "test", "synthetic")}
        return _accuracies({key: flag[index[key.split()[0]]] for key, flag in flags[i % len(flags)].items()})

    bounds = _bootstrap(resampled, seed)
    low, high = bounds["nnaa"]
    bounds["nnaa"] = max(0.0, low, -high), max(abs(low), abs(high))  # resampled with its sign, so that 0 can be in it
    scores = []
    for what in NNAA:
        mean, spreads = repeated([abs(value[what]) for value in values])
        low, high = bounds[what]
        scores.append(Score("nnaa", what, mean, n=size, spreads=spreads, low=low, high=high))
    return scores


def _accuracies(flags: Flags) -> dict[str, float]:
    """AA_train, AA_test, AA_test − AA_train with its sign, and the share of synthetic stays nearer to training ones."""
    share = {key: float(flag.mean()) for key, flag in flags.items()}
    aa_train = (share["train"] + share["synthetic train"]) / 2
    aa_test = (share["test"] + share["synthetic test"]) / 2
    return {
        "aa_train": aa_train,
        "aa_test": aa_test,
        "nnaa": aa_test - aa_train,
        "nearer_training": share["synthetic nearer"],
    }


class _Flags:
    """The indicators of the appendix's sums. Distances between sets that are `whole` in every draw are taken once."""

    def __init__(self, whole: Collection[str], device: str) -> None:
        self.whole, self.device = whole, device
        self.known: dict[tuple[str, str], tuple[Distances, Distances]] = {}

    def of(self, sets: Sets) -> Flags:
        tt, ee, ss = (self._distances(sets, name, name)[0] for name in ("train", "test", "synthetic"))
        ts, st = self._distances(sets, "train", "synthetic")
        es, se = self._distances(sets, "test", "synthetic")
        return {
            "train": (ts > tt).astype(np.float64),
            "test": (es > ee).astype(np.float64),
            "synthetic train": (st > ss).astype(np.float64),
            "synthetic test": (se > ss).astype(np.float64),
            "synthetic nearer": (st < se) + 0.5 * (st == se),
        }

    def _distances(self, sets: Sets, a: str, b: str) -> tuple[Distances, Distances]:
        if (a, b) in self.known:
            return self.known[a, b]
        if a == b:
            own = _rounded(nearest(sets[a], sets[a], exclude_self=True, device=self.device))
            pair = own, own
        else:
            forth, back = nearest_both(sets[a], sets[b], device=self.device)
            pair = _rounded(forth), _rounded(back)
        if a in self.whole and b in self.whole:
            self.known[a, b] = pair
        return pair


def _mir(train: Array, test: Array, synthetic: Array, threshold: float, seed: int, device: str) -> list[Score]:
    near = [_rounded(nearest(rows, synthetic, device=device)) for rows in (train, test)]
    called = tuple(_scaled(distances) <= threshold for distances in near)
    _, ranks = np.unique(np.concatenate(near), return_inverse=True)
    parts = ranks[: len(train)], ranks[len(train) :]

    def resampled(rng: np.random.Generator, _: int) -> dict[str, float]:
        i, j = (rng.integers(len(rows), size=len(rows)) for rows in near)
        return _attack(called[0][i], called[1][j], parts[0][i], parts[1][j])

    values, bounds = _attack(called[0], called[1], *parts), _bootstrap(resampled, seed)
    return [Score("mir", w, values[w], n=len(train), low=bounds[w][0], high=bounds[w][1]) for w in MIR]


def _attack(members: Array, others: Array, member_ranks: Array, other_ranks: Array) -> dict[str, float]:
    """How well the attack told members from others, of whom there are as many."""
    tpr, fpr = float(members.mean()), float(others.mean())
    alarms = (tpr + fpr) / 2
    return {
        "f1": 2 * tpr / (tpr + fpr + 1),
        "tpr": tpr,
        "fpr": fpr,
        "auc": _auc(member_ranks, other_ranks),
        "no_leak_f1": alarms / (alarms + 0.5),
    }


def _auc(lower: Array, upper: Array) -> float:
    """How often a rank of `lower` is below one of `upper`; ties count half."""
    top = int(max(lower.max(), upper.max())) + 1
    ours, theirs = (np.bincount(ranks, minlength=top).astype(np.float64) for ranks in (lower, upper))
    above = theirs.sum() - np.cumsum(theirs)
    return float(ours @ (above + theirs / 2) / (len(lower) * len(upper)))


def _scaled(distances: Distances) -> Floats:
    """Squared distances, to [0, 1] within their set; all 0 where they are all the same."""
    squares = distances.astype(np.float64) ** 2
    scaled: Floats = (squares - squares.min()) / (np.ptp(squares) or 1.0)
    return scaled


def _share(train: Array, rows: Array, seed: int) -> Score:
    equal = _equal(train, rows)
    shares = stream("judging", seed, BOOTSTRAP).binomial(len(rows), equal.mean(), RESAMPLES) / len(rows)
    low, high = interval(shares)
    return Score("copies", "share", float(equal.mean()), n=len(rows), low=low, high=high)


def _equal(train: Array, rows: Array) -> npt.NDArray[np.bool_]:
    def prints(array: Array) -> list[bytes]:
        plain = np.ascontiguousarray(array, np.result_type(train, rows)) + 0.0  # −0 is 0
        return [hashlib.blake2b(row, digest_size=16).digest() for row in plain]

    known = set(prints(train))
    return np.array([row in known for row in prints(rows)], dtype=bool)


def _rounded(distances: Floats) -> Distances:
    """To float32: distances that differ in how they were summed up alone are ties."""
    return distances.astype(np.float32)


def _bootstrap(
    resampled: Callable[[np.random.Generator, int], dict[str, float]], seed: int
) -> dict[str, tuple[float, float]]:
    rng = stream("judging", seed, BOOTSTRAP)
    drawn = [resampled(rng, i) for i in range(RESAMPLES)]
    return {what: interval(np.array([values[what] for values in drawn])) for what in drawn[0]}


def _draws(sets: Sets, seed: int, repetitions: int) -> Iterator[Sets]:
    """Subsets of equal size; one draw is all there is where the sets are of equal size already."""
    size = min(map(len, sets.values()))
    alike = all(len(rows) == size for rows in sets.values())
    for repetition in range(1 if alike else repetitions):
        # Sets of one size at the same positions: a cohort that is the training cohort is met stay by stay.
        yield {name: _sample(rows, size, stream("judging", seed, DRAW, repetition)) for name, rows in sets.items()}


def _halved(train: Array, test: Array, seed: int, repetition: int) -> Sets:
    """Half of the test stays as if synthetic, the other half as test stays, and as many training stays."""
    rng = stream("judging", seed, CUT, repetition)
    order, size = rng.permutation(len(test)), min(len(test) // 2, len(train))
    first, second = order[:size], order[size : 2 * size]
    return {"train": _sample(train, size, rng), "test": test[first], "synthetic": test[second]}


def _sample(rows: Array, size: int, rng: np.random.Generator) -> Array:
    return rows if len(rows) == size else rows[rng.choice(len(rows), size, replace=False)]


def _too_few(train: Array, test: Array, synthetic: Array) -> str:
    for name, rows in (("training", train), ("held-out", test), ("synthetic", synthetic)):
        if len(rows) < FEWEST:
            return f"needs at least {FEWEST} {name} stays, and there are {len(rows)}."
    return ""


def _no_floor(test: Array) -> str:
    return f"no floor: it needs at least {2 * FEWEST} held-out stays, and there are {len(test)}."
