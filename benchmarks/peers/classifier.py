"""One row of the comparison: how a synthetic table scores against real stays that no tool has seen.

    python benchmarks/peers/classifier.py DATA SYNTHETIC.parquet [--no-trees]
    python benchmarks/peers/classifier.py DATA train.parquet           # the real-against-real row

DATA is the folder that data.py wrote. A synthetic table has RecordID, hour and the six vital signs, null = missing, 48
rows a stay. A GRU of 32 units is trained for 1,000 iterations of 128 stays on 80 % of both kinds and tested on the
rest, three seeds. It sees values filled forward, backward, then with the training mean, standardised by the training
stays; then again with the masks as six more channels. `auc_of_trees` is that of the evaluation's own gradient-boosted
trees on statistics of a stay, three repetitions.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import roc_auc_score

from timediff import Cohort, Feature, Schema
from timediff.evaluation.case import Case, Measurement
from timediff.evaluation.classifiers.panel import TREES, Panel
from timediff.evaluation.metrics.discriminative import CLASSIFIERS
from timediff.evaluation.score import Score
from timediff.evaluation.settings import EvaluationSettings

VITALS = {"HR": None, "SBP": None, "MAP": None, "Temp": None, "Urine": None, "GCS": 1.0}  # and their resolutions
HOURS = 48
SEEDS = 3
UNITS, ITERATIONS, BATCH, TRAINING = 32, 1000, 128, 0.8


def load(path: Path) -> pd.DataFrame:
    table = pd.read_parquet(path).sort_values(["RecordID", "hour"])
    if not (table.groupby("RecordID").size() == HOURS).all():
        raise SystemExit(f"{path}: {len(table)} rows of {table.RecordID.nunique()} stays; expected {HOURS} hours each.")
    return table


def filled(table: pd.DataFrame, means: pd.Series) -> np.ndarray:
    """(N, hours, vital signs), filled forward, backward, then with these means."""
    vitals = table.set_index("RecordID")[list(VITALS)]
    within = vitals.groupby(level=0).ffill().groupby(level=0).bfill()
    return within.fillna(means).to_numpy(np.float64).reshape(-1, HOURS, len(VITALS))


def missing(table: pd.DataFrame) -> np.ndarray:
    return table[list(VITALS)].isna().to_numpy().reshape(-1, HOURS, len(VITALS))


def gru(real: np.ndarray, other: np.ndarray, seed: int) -> tuple[float, float]:
    """|accuracy − 0.5| and AUC."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    stays = min(len(real), len(other))
    real, other = real[rng.permutation(len(real))[:stays]], other[rng.permutation(len(other))[:stays]]
    cut = int(TRAINING * stays)
    x = torch.tensor(np.concatenate([real[:cut], other[:cut]]), dtype=torch.float32)
    y = torch.cat([torch.ones(cut), torch.zeros(cut)])
    held_out = torch.tensor(np.concatenate([real[cut:], other[cut:]]), dtype=torch.float32)
    is_real = np.repeat([True, False], stays - cut)
    rnn, head = torch.nn.GRU(x.shape[2], UNITS, batch_first=True), torch.nn.Linear(UNITS, 1)
    optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()], 1e-3)
    for _ in range(ITERATIONS):
        batch = torch.randint(len(x), (BATCH,))
        logits = head(rnn(x[batch])[1][-1])[:, 0]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        logits = head(rnn(held_out)[1][-1])[:, 0].numpy()
    return abs(((logits > 0) == is_real).mean() - 0.5), roc_auc_score(is_real, logits)


def cohort(table: pd.DataFrame) -> Cohort:
    """The vital signs alone, as the package sees them: tools give back different static columns."""
    features = tuple(Feature(name, "continuous", "temporal", resolution=step) for name, step in VITALS.items())
    series = {name: table[name].to_numpy(np.float64).reshape(-1, HOURS) for name in VITALS}
    return Cohort(Schema(features, HOURS), np.arange(len(table) // HOURS), series, {})


def trees(train: pd.DataFrame, test: pd.DataFrame, other: pd.DataFrame, *, floor: bool) -> dict[str, Any]:
    """The panel's trees alone, under the strict protocol."""
    case = Case(cohort(train), cohort(test), EvaluationSettings(protocol="strict", repetitions=SEEDS))
    given = Measurement(case, cohort(other), floor=floor)
    panel = Panel(given, given.test, given.cohort, CLASSIFIERS)
    panel.add_trees(np.concatenate([case.test_table, case.statistics.table(given.cohort, training=floor)]))
    panel.train(given.progress)
    auc = {one.classifier: one for one in panel.scores() if isinstance(one, Score) and one.what == "auc"}[TREES]
    return {"auc_of_trees": round(auc.value, 3), "interval_of_trees": [auc.low, auc.high]}


def lag1(values: np.ndarray) -> float:
    """Autocorrelation of heart rate."""
    return float(np.corrcoef(values[:, :-1, 0].ravel(), values[:, 1:, 0].ravel())[0, 1])


def row(data: Path, path: Path, *, with_trees: bool = True) -> dict[str, Any]:
    tables = [load(one) for one in (data / "train.parquet", data / "test.parquet", path)]
    within = tables[0].set_index("RecordID")[list(VITALS)]
    means = within.groupby(level=0).ffill().groupby(level=0).bfill().mean()
    train, real, other = (filled(table, means) for table in tables)
    mean, std = train.mean((0, 1)), train.std((0, 1))
    scaled, masks = [(one - mean) / std for one in (real, other)], [missing(table) for table in tables[1:]]
    both = [np.concatenate(one, axis=-1) for one in zip(scaled, masks, strict=True)]
    plain, masked = (np.mean([gru(*one, seed) for seed in range(SEEDS)], axis=0) for one in (scaled, both))
    spread = real.std((0, 1))
    found = {
        "stays": len(other),
        "score": plain[0],
        "auc": plain[1],
        "score_with_masks": masked[0],
        "auc_with_masks": masked[1],
        "mean_error_sd": np.mean(abs(other.mean((0, 1)) - real.mean((0, 1))) / spread),
        "spread_error": np.mean(abs(other.std((0, 1)) / spread - 1)),
        "heart_rate_lag1": lag1(other),
        "heart_rate_lag1_real": lag1(real),
        "missing_rate_error": np.mean(abs(masks[1].mean((0, 1)) - masks[0].mean((0, 1)))),
    }
    found = {name: round(float(value), 3) for name, value in found.items()} | {"stays": len(other)}
    is_train = path.name == "train.parquet"
    return found | (trees(*tables, floor=is_train) if with_trees else {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("synthetic", type=Path)
    parser.add_argument("--no-trees", action="store_true")
    arguments = parser.parse_args()
    path = arguments.synthetic
    path = path if path.exists() else arguments.data / path
    print(json.dumps(row(arguments.data, path, with_trees=not arguments.no_trees), indent=2))


if __name__ == "__main__":
    main()
