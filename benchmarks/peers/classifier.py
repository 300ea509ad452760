"""One row of the comparison: how a synthetic table scores against real stays that no tool has seen.

    python benchmarks/peers/classifier.py DATA SYNTHETIC.parquet [--no-panel] [--out RESULT.json --name TOOL]
    python benchmarks/peers/classifier.py DATA train.parquet           # the real-against-real row

DATA is the folder that data.py wrote. A synthetic table has RecordID, hour and the vital signs, null = missing, as many
rows a stay. A GRU of 32 units is trained for 1,000 iterations of 128 stays on 80 % of both kinds and tested on the
rest, three seeds. It sees values filled forward, backward, then with the training mean, standardised by the training
stays; then again with the masks as more channels. `panel` has the AUC of each classifier of the evaluation's own panel,
under its strict protocol, and of the worst of them, three repetitions; `trees_rounded_alike` that of its trees when
values of both sides are rounded alike, temperature to 0.1 and all others to 1.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from common import Stays
from sklearn.metrics import roc_auc_score

from timediff import Cohort, Feature, Schema
from timediff.evaluation.case import Case, Measurement
from timediff.evaluation.classifiers.panel import TREES, Panel
from timediff.evaluation.metrics.discriminative import CLASSIFIERS
from timediff.evaluation.registry import METRICS
from timediff.evaluation.score import Score
from timediff.evaluation.settings import EvaluationSettings

RESOLUTIONS = {"GCS": 1.0}
ROUNDED = {"Temp": 1}  # decimals, where both sides are rounded alike; 0 for others
SEEDS = 3
UNITS, ITERATIONS, BATCH, TRAINING = 32, 1000, 128, 0.8


def load(path: Path, hours: int | None = None) -> Stays:
    stays = Stays(pd.read_parquet(path).sort_values(["RecordID", "hour"], ignore_index=True))
    expected = hours or stays.hours
    if not (stays.table.groupby("RecordID").size() == expected).all():
        raise SystemExit(f"{path}: {len(stays.table)} rows of {len(stays)} stays; expected {expected} hours each.")
    return stays


def filled(stays: Stays, vitals: list[str], means: pd.Series) -> np.ndarray:
    """(N, hours, vital signs), filled forward, backward, then with these means."""
    return carried(stays, vitals).fillna(means).to_numpy(np.float64).reshape(-1, stays.hours, len(vitals))


def carried(stays: Stays, vitals: list[str]) -> pd.DataFrame:
    within = stays.table.set_index("RecordID")[vitals]
    return within.groupby(level=0).ffill().groupby(level=0).bfill()


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


def cohort(stays: Stays, vitals: list[str], *, rounded: bool = False) -> Cohort:
    """The vital signs alone, as the package sees them: tools give back different static columns."""
    features = tuple(Feature(name, "continuous", "temporal", resolution=RESOLUTIONS.get(name)) for name in vitals)
    series = {name: stays.table[name].to_numpy(np.float64).reshape(-1, stays.hours) for name in vitals}
    if rounded:
        series = {name: values.round(ROUNDED.get(name, 0)) for name, values in series.items()}
    return Cohort(Schema(features, stays.hours), np.arange(len(stays)), series, {})


def panel(train: Cohort, test: Cohort, other: Cohort, *, floor: bool, only_trees: bool = False) -> dict[str, Any]:
    """AUCs of the evaluation's panel, or of its trees alone, under the strict protocol."""
    case = Case(train, test, EvaluationSettings(protocol="strict", repetitions=SEEDS, device="cpu"))
    given = Measurement(case, other, floor=floor)
    if only_trees:
        trees = Panel(given, given.test, given.cohort, CLASSIFIERS)
        trees.add_trees(np.concatenate([case.test_table, case.statistics.table(given.cohort, training=floor)]))
        trees.train(given.progress)
        scores = trees.scores()
    else:
        scores = METRICS("discriminative").measure(given)
    found = {str(s.classifier): s for s in scores if isinstance(s, Score) and s.what == "auc"}
    return {
        name: {"auc": round(auc.value, 3), "interval": [round(auc.low, 3), round(auc.high, 3)]}
        for name, auc in found.items()
    }


def lag1(values: np.ndarray) -> float:
    """Autocorrelation of heart rate, the first vital sign."""
    return float(np.corrcoef(values[:, :-1, 0].ravel(), values[:, 1:, 0].ravel())[0, 1])


def row(data: Path, path: Path, *, with_panel: bool = True) -> dict[str, Any]:
    train, test = load(data / "train.parquet"), load(data / "test.parquet")
    vitals, given = train.vitals, load(path, train.hours)
    means = carried(train, vitals).mean()
    known, real, other = (filled(stays, vitals, means) for stays in (train, test, given))
    mean, std = known.mean((0, 1)), known.std((0, 1))
    scaled = [(one - mean) / std for one in (real, other)]
    masks = [np.isnan(stays.table[vitals].to_numpy(np.float64)).reshape(real.shape) for stays in (test, given)]
    both = [np.concatenate(one, axis=-1) for one in zip(scaled, masks, strict=True)]
    plain, masked = (np.mean([gru(*one, seed) for seed in range(SEEDS)], axis=0) for one in (scaled, both))
    spread = real.std((0, 1))
    found = {
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
    result: dict[str, Any] = {"stays": len(given)} | {name: round(float(value), 3) for name, value in found.items()}
    if with_panel:
        floor = path.name == "train.parquet"
        cohorts = [cohort(stays, vitals) for stays in (train, test, given)]
        result["panel"] = panel(*cohorts, floor=floor)
        alike = [cohort(stays, vitals, rounded=True) for stays in (train, test, given)]
        result["trees_rounded_alike"] = panel(*alike, floor=floor, only_trees=True)[TREES]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("synthetic", type=Path)
    parser.add_argument("--no-panel", action="store_true")
    parser.add_argument("--out", type=Path, help="a JSON file of rows, to which this one is added")
    parser.add_argument("--name", help="of the row; the file's unless given")
    parser.add_argument("--run", type=Path, help="what the tool's script printed, to stand beside it")
    arguments = parser.parse_args()
    path = arguments.synthetic
    path = path if path.exists() else arguments.data / path
    found = row(arguments.data, path, with_panel=not arguments.no_panel)
    if arguments.run:
        found = json.loads(arguments.run.read_text()) | found
    print(json.dumps(found, indent=2))
    if arguments.out:
        rows = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
        rows[arguments.name or path.stem] = found
        arguments.out.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
