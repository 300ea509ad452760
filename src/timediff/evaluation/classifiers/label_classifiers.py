"""Classifiers that predict the label of a stay: the paper's five, as their libraries have them, and two recurrent.

A trained classifier is a function from rows to the probability of each class, (N, K).
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.evaluation.inputs.summaries import Inputs, Kind
from timediff.evaluation.inputs.view import Single, View
from timediff.evaluation.statistics.subsets import Index, stratified
from timediff.runtime.seeding import stream

Model = Callable[[Single], Floats]

CLASSICAL = ("XGBoost", "random forest", "AdaBoost", "logistic L1", "logistic L2")
RECURRENT = ("GRU", "LSTM")
ALL = CLASSICAL + RECURRENT
SEEDED = ("random forest", *RECURRENT)  # another seed changes the others in ties or the last digits alone
JOBS = 2
WIDTH, EPOCHS, BATCH, RATE = 64, 10, 128, 1e-3  # of the recurrent ones
UPDATES = 5000  # of them in the paper's protocol, by AdamW
KEY = 700  # of the streams of random numbers that usefulness is measured with


@dataclass(frozen=True)
class Trained:
    """Classifiers trained on real stays, so that the next synthetic cohort of that size need not train them again.

    Pass one and the same to all calls with the same training stays. It lives in memory: a random forest of 20,000
    stays takes some 40 MB.
    """

    train: Cohort
    models: dict[tuple[str | int, ...], Model] = field(default_factory=dict)


@dataclass(frozen=True)
class Bench:
    """Where classifiers are trained: what they see, and their seeds."""

    view: View
    train: Cohort  # fits the scalers
    seed: int
    device: str

    def rows(self, kind: Kind | None, cohorts: Mapping[str, Cohort]) -> dict[str, Single]:
        """What a classifier sees of each cohort; None = the series, for a recurrent one."""
        view = self.view.unlabelled
        series = view.unscaled.series if self.paper else view.series
        of = series if kind is None else Inputs.fit(self.train, kind, view=self.view).of
        return {name: of(cohort) for name, cohort in cohorts.items()}

    @property
    def paper(self) -> bool:
        return self.view.protocol == "paper"

    def subsets(self, classes: Array, size: int, repetitions: int) -> list[Index] | None:
        """Stays to train on in each repetition, where the protocol draws them: of equal sets the same."""
        if not self.paper:
            return None
        keys = (stream("evaluation", self.seed, KEY, 3, repetition) for repetition in range(repetitions))
        return [stratified(classes, size, rng) for rng in keys]

    def models(
        self,
        name: str,
        kind: Kind | None,
        x: Single,
        y: Array,
        repetitions: int,
        real: Trained | None = None,
        *,
        subsets: Sequence[Index] | None = None,
        part: tuple[int, int] = (0, 0),
    ) -> list[Model]:
        """The classifier trained with as many seeds; one that does not depend on its seed, once.

        With `subsets`, each repetition trains on its own. `real` says that these are real stays in the order of this
        seed, and remembers what is trained on them; `part` which part of how many stays they are.
        """
        if real is not None and real.train is not self.train:
            raise ValueError("these classifiers were trained on another cohort")
        label = self.view.schema.label
        assert label is not None
        known = {} if real is None else real.models
        out = []
        for repetition in range(repetitions if name in SEEDED or subsets is not None else 1):
            own = np.arange(len(x)) if subsets is None else subsets[repetition]
            key = (name, kind or "series", self.view.protocol, len(x), len(own), *part, self.seed, repetition)
            if key not in known:
                seed = int(stream("evaluation", self.seed, KEY, 0, repetition).integers(2**31))
                fit = train_as_the_authors if self.paper else train
                rows, classes = (x, y) if subsets is None else (x[own], y[own])
                known[key] = fit(name, rows, classes, len(label.classes), seed=seed, device=self.device)
            out.append(known[key])
        return out


def missing(name: str) -> str | None:
    """Why the classifier cannot be had here; None where it can."""
    if name == "XGBoost":
        try:
            import xgboost  # noqa: F401
        except ImportError:
            return "XGBoost is not installed: pip install 'timediff-icu[evaluate]'"
    return None


def train(
    name: str, x: Single, y: Array, classes: int, *, seed: int, device: str = "cpu", updates: int | None = None
) -> Model:
    """The classifier `name`, trained on rows (N, D), or (N, L, C) for a recurrent one, of classes y.

    A recurrent one has so many updates by AdamW, or without a number EPOCHS by Adam.
    """
    present, index = np.unique(y, return_inverse=True)
    model = (
        _recurrent(name, x, index, seed, device, updates)
        if name in RECURRENT
        else _classical(name, x, index, seed, device)
    )

    def predict(rows: Single) -> Floats:
        out = np.zeros((len(rows), classes))  # what was never seen is never expected
        out[:, present] = model(rows)
        return out

    return predict


def train_as_the_authors(name: str, x: Single, y: Array, classes: int, *, seed: int, device: str = "cpu") -> Model:
    """The same on rows that are standardised by this training set, as those to predict then are too."""
    columns = tuple(range(x.ndim - 1))
    mean, scale = x.mean(axis=columns, dtype=np.float64), x.std(axis=columns, dtype=np.float64)
    scale = np.where(scale > 1e-6 * np.maximum(1.0, np.abs(mean)), scale, 1.0)

    def scaled(rows: Single) -> Single:
        return np.asarray((rows - mean) / scale, np.float32)

    model = train(name, scaled(x), y, classes, seed=seed, device=device, updates=UPDATES)
    return lambda rows: model(scaled(rows))


def _classical(name: str, x: Single, y: Array, seed: int, device: str) -> Model:
    from sklearn.exceptions import ConvergenceWarning

    model = _estimator(name, seed, classes=int(y.max()) + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(x, y)
    if name == "random forest":
        model.n_jobs = 1  # threads would add the trees' votes up in any order, and rounding would differ

    def predict(rows: Single) -> Floats:
        return np.asarray(model.predict_proba(rows), np.float64)

    return predict


def _estimator(name: str, seed: int, classes: int) -> Any:
    from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    if name == "XGBoost":
        from xgboost import XGBClassifier

        return XGBClassifier(random_state=seed, n_jobs=JOBS)
    if name == "random forest":
        return RandomForestClassifier(random_state=seed, n_jobs=JOBS)
    if name == "AdaBoost":
        return AdaBoostClassifier(random_state=seed)
    if name not in CLASSICAL:
        raise ValueError(f"{name!r} is not one of {', '.join(ALL)}")
    first = name == "logistic L1"
    # From scikit-learn 1.8 on, the fraction of the first norm says which penalty it is.
    named = LogisticRegression().penalty != "deprecated"
    penalty = {"penalty": "l1" if first else "l2"} if named else {"l1_ratio": float(first)}
    logistic = LogisticRegression(solver="liblinear", random_state=seed, **penalty)
    return logistic if classes == 2 else OneVsRestClassifier(logistic)


def _recurrent(name: str, x: Single, y: Array, seed: int, device: str, updates: int | None) -> Model:
    """A bidirectional GRU or LSTM; the last state of either direction goes into a linear layer."""
    import torch
    from torch import Tensor, nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = {"GRU": nn.GRU, "LSTM": nn.LSTM}[name]
            self.body = layer(x.shape[2], WIDTH, batch_first=True, bidirectional=True)
            self.head = nn.Linear(2 * WIDTH, int(y.max()) + 1)

        def forward(self, series: Tensor) -> Tensor:
            _, state = self.body(series)
            state = state[0] if name == "LSTM" else state  # (2, B, WIDTH)
            logits: Tensor = self.head(torch.cat([state[0], state[1]], dim=1))
            return logits

    with torch.random.fork_rng(devices=[]):  # weights come from the global generator, which is put back
        torch.manual_seed(seed)
        network = Network().to(device)
    kind = torch.optim.Adam if updates is None else torch.optim.AdamW
    optimiser = kind(network.parameters(), lr=RATE)
    rows, targets = torch.from_numpy(x).to(device), torch.from_numpy(y).long().to(device)
    wanted = EPOCHS * -(-len(x) // BATCH) if updates is None else updates
    for own in islice(_batches(len(x), np.random.default_rng(seed)), wanted):
        batch = torch.from_numpy(own).to(device)
        loss = nn.functional.cross_entropy(network(rows[batch]), targets[batch])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    network.eval()

    def predict(series: Single) -> Floats:
        out = np.empty((len(series), int(y.max()) + 1))
        with torch.no_grad():
            for start in range(0, len(series), 1024):
                part = torch.from_numpy(series[start : start + 1024]).to(device)
                out[start : start + 1024] = network(part).double().softmax(dim=1).cpu().numpy()
        return out

    return predict


def _batches(stays: int, rng: np.random.Generator) -> Iterator[Index]:
    """Epoch after epoch, each in another order."""
    while True:
        order = rng.permutation(stays)
        yield from (order[start : start + BATCH] for start in range(0, stays, BATCH))
