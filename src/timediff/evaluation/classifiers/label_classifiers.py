"""Classifiers that predict the label of a stay: the paper's five, as their libraries have them, and two recurrent.

A trained classifier is a function from rows to the probability of each class, (N, K).
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.evaluation.inputs.summaries import Inputs, Kind, unlabelled
from timediff.evaluation.inputs.view import Single, View
from timediff.runtime.seeding import stream

Model = Callable[[Single], Floats]

CLASSICAL = ("XGBoost", "random forest", "AdaBoost", "logistic L1", "logistic L2")
RECURRENT = ("GRU", "LSTM")
ALL = CLASSICAL + RECURRENT
SEEDED = ("random forest", *RECURRENT)  # another seed changes the others in ties or the last digits alone
JOBS = 2
WIDTH, EPOCHS, BATCH, RATE = 64, 10, 128, 1e-3  # of the recurrent ones
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
        of = unlabelled(self.view).series if kind is None else Inputs.fit(self.train, kind, view=self.view).of
        return {name: of(cohort) for name, cohort in cohorts.items()}

    def models(
        self, name: str, kind: Kind | None, x: Single, y: Array, repetitions: int, real: Trained | None = None
    ) -> list[Model]:
        """The classifier trained with as many seeds; one that does not depend on its seed, once.

        `real` says that these are real stays in the order of this seed, and remembers what is trained on them.
        """
        if real is not None and real.train is not self.train:
            raise ValueError("these classifiers were trained on another cohort")
        label = self.view.schema.label
        assert label is not None
        known = {} if real is None else real.models
        out = []
        for repetition in range(repetitions if name in SEEDED else 1):
            key = (name, kind or "series", self.view.protocol, len(x), self.seed, repetition)
            if key not in known:
                seed = int(stream("evaluation", self.seed, KEY, 0, repetition).integers(2**31))
                known[key] = train(name, x, y, len(label.classes), seed=seed, device=self.device)
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


def train(name: str, x: Single, y: Array, classes: int, *, seed: int, device: str = "cpu") -> Model:
    """The classifier `name`, trained on rows (N, D), or (N, L, C) for a recurrent one, of classes y."""
    present, index = np.unique(y, return_inverse=True)
    fit = _recurrent if name in RECURRENT else _classical
    model = fit(name, x, index, seed, device)

    def predict(rows: Single) -> Floats:
        out = np.zeros((len(rows), classes))  # what was never seen is never expected
        out[:, present] = model(rows)
        return out

    return predict


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


def _recurrent(name: str, x: Single, y: Array, seed: int, device: str) -> Model:
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
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE)
    rows, targets = torch.from_numpy(x).to(device), torch.from_numpy(y).long().to(device)
    rng = np.random.default_rng(seed)
    for _ in range(EPOCHS):
        order = torch.from_numpy(rng.permutation(len(x))).to(device)
        for start in range(0, len(x), BATCH):
            batch = order[start : start + BATCH]
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
