"""Which of a teacher's stays a student is trained on: those of each kind about as often as they are among real stays.

Discriminator rejection sampling (Azadi et al. 2019): the odds that a discriminator gives estimate the ratio of two
densities, real over generated. It sees statistics of whole stays, in which what a teacher gets a little wrong at every
step adds up. No stay is weighed by a network that was trained on it.
"""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from timediff.data.arrays import Array, Floats, Units
from timediff.data.cohort import Cohort
from timediff.data.stay_statistics import StayStatistics
from timediff.data.units import resampling_units
from timediff.runtime import devices
from timediff.runtime.randomness import seed_torch
from timediff.runtime.seeding import stream

POOL = 2  # generated stays for each one that is chosen
FEWEST = 200  # real stays; of fewer a discriminator would learn single ones
FOLDS = 3
HIDDEN, DROPPED, DROPPED_INPUTS = 128, 0.3, 0.1
EPOCHS, PATIENCE, BATCH = 20, 4, 256
RATE, DECAY = 1e-3, 1e-2  # of AdamW
VALIDATION = 8  # one of so many stays says when to stop
LARGEST = 0.998  # quantile of the weights above which none counts more
FEWEST_VALUES = 20  # of a statistic
DISCRIMINATOR, CHOICE = 61, 62  # parts of their streams


def chosen(real: Cohort, pool: Cohort, n: int, seed: int) -> Cohort:
    """`n` stays of the pool, some of them several times; with too few real ones, its first."""
    if len(real) < FEWEST:
        return pool.take(np.arange(n) % len(pool))
    weights = density_ratio(realness(real, pool, seed))
    picked = pool.take(systematic(weights, n, stream("training", seed, CHOICE).random()))
    return replace(picked, stay_id=np.arange(n))


def density_ratio(log_odds: Floats) -> Floats:
    """Real over generated, of each generated stay; its mean is 1 but for the cut."""
    ratio = np.exp(log_odds - log_odds.max())
    ratio = np.minimum(ratio, np.quantile(ratio, LARGEST))
    return np.asarray(ratio / ratio.mean())


def systematic(weights: Floats, n: int, start: float) -> Array:
    """`n` positions: each as often as its part of the weights, rounded up or down (systematic resampling)."""
    ends = np.cumsum(weights) / np.sum(weights)
    return np.minimum(np.searchsorted(ends, (np.arange(n) + start) / n, side="right"), len(weights) - 1)


def realness(real: Cohort, pool: Cohort, seed: int) -> Floats:
    """Of each stay of the pool the log-odds to be real, by a discriminator that was not trained on it."""
    statistics = StayStatistics(real, seed)
    tables = statistics.table(real, training=True), statistics.table(pool)
    inputs = torch.from_numpy(normal_scores(*tables)).to(devices.device())
    is_real = torch.arange(len(inputs), device=inputs.device) < len(real)
    fold = torch.from_numpy(np.concatenate([_folds(resampling_units(real), seed), np.arange(len(pool)) % FOLDS]))
    found = torch.zeros(len(inputs))
    for number in range(FOLDS):
        inside = (fold != number).to(inputs.device)
        with torch.random.fork_rng():
            torch.manual_seed(seed_torch("weights", seed, DISCRIMINATOR, number))
            network = trained(inputs[inside], is_real[inside].float())
        with torch.inference_mode():
            found[fold == number] = network(inputs[~inside])[:, 0].cpu()
    return np.asarray(found[len(real) :].double().numpy())


def _folds(units: Units, seed: int) -> Array:
    return stream("training", seed, DISCRIMINATOR).permutation(units.max(initial=-1) + 1)[units] % FOLDS


def normal_scores(real: Floats, made: Floats) -> np.ndarray:
    """Both tables, one below the other, each column by its ranks; a value that is not there is 0, and is marked."""
    table, likewise = np.concatenate([real, made]), np.concatenate([real, made[: len(real)]])
    columns = []
    for column, known in zip(table.T, likewise.T, strict=True):
        ranked = np.sort(known[~np.isnan(known)])
        if len(ranked) < FEWEST_VALUES:
            continue
        below, upto = (np.searchsorted(ranked, column, side) for side in ("left", "right"))
        place = torch.from_numpy((below + upto) / (2 * len(ranked))).clamp(0.5 / len(ranked), 1 - 0.5 / len(ranked))
        missing = np.isnan(column)
        columns.append(np.where(missing, 0.0, torch.special.ndtri(place).numpy()))
        if missing.any():
            columns.append(missing)
    return np.stack(columns, axis=1).astype(np.float32) if columns else np.zeros((len(table), 1), np.float32)


def trained(inputs: Tensor, is_real: Tensor) -> nn.Module:
    """A discriminator; both kinds count alike, however many there are of each."""
    network = nn.Sequential(
        nn.Dropout(DROPPED_INPUTS), nn.Linear(inputs.shape[1], HIDDEN), nn.SiLU(),
        nn.Dropout(DROPPED), nn.Linear(HIDDEN, HIDDEN), nn.SiLU(),
        nn.Dropout(DROPPED), nn.Linear(HIDDEN, 1),
    ).to(inputs.device)  # fmt: skip
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=DECAY)
    alike = (len(is_real) - is_real.sum()) / is_real.sum()

    def loss_of(rows: Tensor) -> Tensor:
        return binary_cross_entropy_with_logits(network(inputs[rows])[:, 0], is_real[rows], pos_weight=alike)

    order = torch.randperm(len(inputs)).to(inputs.device)
    validation, training = order[: len(order) // VALIDATION], order[len(order) // VALIDATION :]
    best, lowest, stale = network.state_dict(), float("inf"), 0
    for _ in range(EPOCHS):
        network.train()
        shuffled = training[torch.randperm(len(training)).to(inputs.device)]
        for start in range(0, len(shuffled), BATCH):
            optimizer.zero_grad()
            torch.autograd.backward(loss_of(shuffled[start : start + BATCH]))
            optimizer.step()
        network.eval()
        with torch.inference_mode():
            loss = float(loss_of(validation))
        stale = 0 if loss < lowest else stale + 1
        if not stale:
            best, lowest = {name: value.clone() for name, value in network.state_dict().items()}, loss
        if stale >= PATIENCE:
            break
    network.load_state_dict(best)
    return network.eval()
