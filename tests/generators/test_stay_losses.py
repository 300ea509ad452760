"""Losses of single stays of baselines: their mean is what was minimised, and training on a stay lowers its own."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from helpers.small_baselines import Untrained, baseline, untrained
from timediff.data.arrays import Array
from timediff.data.cohort import Cohort
from timediff.evaluation.attacks.case import log_losses
from timediff.runtime.randomness import Noise
from timediff.sources.simulated import simulate


class Silent(Noise):
    """Noise that adds nothing."""

    def normal(self, *shape: int) -> Tensor:
        return torch.zeros(self.total, *shape)


def silent(made: Untrained) -> Noise:
    stays = len(made.batch)
    return Silent("training", [(0, 0, 0)], [stays], stays, torch.device("cpu"))


def minimised(made: Untrained, objective: str, loss: str) -> float:
    """A training loss of the whole batch, without noise."""
    with torch.no_grad():
        return float(made.objectives[objective].loss(made.network, made.batch, silent(made))[loss])


def of_all_columns(made: Untrained, losses: dict[str, Tensor], prefix: str = "") -> float:
    """The mean over stays, levels and columns."""
    values, classes = (float(losses[f"{prefix}{kind}"].mean()) for kind in ("values", "classes"))
    share = made.columns.continuous / made.columns.width
    return share * values + (1 - share) * classes


def untrained_and_losses(name: str, cohort: Cohort, **changes: object) -> tuple[Untrained, dict[str, Tensor]]:
    model = baseline(name, **changes)
    made = untrained(model, cohort)
    made.network.eval()  # without dropout
    codec = model._sized_for(cohort)
    with torch.no_grad():
        return made, model.losses_of(made.network, made.batch, codec, silent(made))


@pytest.fixture
def whole(mixed: Cohort) -> Cohort:
    """Where nothing is missing."""

    def filled(of: Mapping[str, Array]) -> dict[str, Array]:
        return {name: np.nan_to_num(v, nan=1.0) if v.dtype.kind == "f" else v for name, v in of.items()}

    return replace(mixed, series=filled(mixed.series), static=filled(mixed.static))


@pytest.mark.parametrize(
    ("name", "objective", "loss", "prefix"),
    [
        ("tforcing", "", "total", "nll of "),
        ("tforcing-published", "", "total", ""),
        ("pforcing", "generator", "forced", "nll of "),
        ("pforcing-published", "generator", "forced", ""),
        ("rnn", "", "total", ""),
        ("rnn-published", "", "total", ""),
        ("latent-forcing", "embedding", "error", ""),
        ("timegan", "embedding", "error", ""),
        ("gtgan", "recovery", "error", ""),
        ("gtgan-published", "recovery", "error", ""),
    ],
)
def test_the_mean_of_losses_of_columns_is_the_training_loss(
    name: str, objective: str, loss: str, prefix: str, whole: Cohort
) -> None:
    made, losses = untrained_and_losses(name, whole)
    expected = minimised(made, objective, loss)
    assert of_all_columns(made, losses, prefix) == pytest.approx(expected, rel=1e-4, abs=1e-6)


EHRMGAN = {f"{side} {what}": (f"{side}-vae", what) for side in ("continuous", "discrete") for what in ("error", "kl")}


@pytest.mark.parametrize(
    ("name", "found", "objective", "loss", "steps"),
    [  # the training loss is a mean over so many steps where that of stays is one over 1
        ("latent-forcing", "nll of latents", "supervised", "total", 6 / 5),
        ("timegan", "supervised", "supervised", "total", 1),
        ("gtgan", "nll of latents", "flow", "nll", 1),
        ("gtgan-published", "nll of latents", "flow", "nll", 1),
        *(("ehrmgan", name, *one, 6 if name.endswith("kl") else 1) for name, one in EHRMGAN.items()),
        ("ehrmgan", "label", "discrete-vae", "semantic", 1),
    ],
)
def test_the_mean_of_each_other_loss_is_the_training_loss(
    name: str, found: str, objective: str, loss: str, steps: float, mixed: Cohort
) -> None:
    made, losses = untrained_and_losses(name, mixed)
    mean = float(losses[found].mean())
    assert steps * mean == pytest.approx(minimised(made, objective, loss), rel=1e-4)


@pytest.mark.parametrize("name", ["tforcing", "tforcing-published", "rnn", "pforcing"])
def test_the_loss_of_a_step_depends_on_it_and_those_before_alone(name: str, whole: Cohort) -> None:
    """A level a part of the stay, in time: a change of the fourth step shows from there on."""
    model = baseline(name)
    made = untrained(model, whole)
    made.batch.continuous[:, 3] += 0.3
    network, x = made.network, made.columns.of(made.batch)
    before = x.clone()
    before[:, 3, : made.columns.continuous] -= 0.3
    with torch.no_grad():
        one, other = network.stay_losses(x), network.stay_losses(before)
    for kind in one:
        assert torch.equal(one[kind][:, :2], other[kind][:, :2])
    values = next(kind for kind in one if kind.endswith("values"))
    assert (one[values][:, 2] != other[values][:, 2]).all()


def test_first_steps_that_are_kept_give_their_stays_away(mixed: Cohort) -> None:
    """Fitted ones say nothing of a single stay."""
    few, others = mixed.take(np.arange(40)), mixed.take(np.arange(40, 120))
    model = baseline("tforcing-published", training__steps=1).fit(few, seed=0)
    assert model.stay_losses(few)["first step"].max() < 1e-12
    assert np.mean(model.stay_losses(others)["first step"] > 1e-4) > 0.9  # some have the same by chance
    assert "first step" not in baseline("tforcing", training__steps=1).fit(few, seed=0).stay_losses(few)


LONG = {  # updates, at which learning rate, until few stays are memorised
    "tforcing": (300, 0.005), "tforcing-published": (300, 0.005), "pforcing": (300, 0.005), "rnn": (300, 0.005),
    "latent-forcing": (300, 0.005), "timegan": (500, 0.01), "ehrmgan": (400, 0.005), "gtgan": (200, 0.005),
    "dspd-gp": (900, 0.01), "dspd-ou": (600, 0.01), "cspd-gp": (900, 0.01), "cspd-ou": (600, 0.01),
}  # fmt: skip
CHANGES: dict[str, dict[str, object]] = {
    "tforcing-published": {"model__first": "fitted"},  # real ones would give away who was trained on after one update
    "timegan": {"model__layers": 1, "phases__embedding": 0.7, "phases__supervised": 0.28},  # what sees real stays
    "ehrmgan": {"phases__pretraining": 0.98, "vae__dropout": 0.0},
}


@pytest.mark.parametrize("name", LONG)
def test_who_was_trained_on_to_the_end_has_lower_losses_than_others(name: str) -> None:
    stays = simulate(100, steps=6, seed=3)
    few, others = stays.take(np.arange(12)), stays.take(np.arange(12, 100))
    updates, lr = LONG[name]
    model = baseline(
        name, model__hidden=32, training__batch=12, training__steps=updates, training__lr=lr, training__ema=0.0,
        **CHANGES.get(name, {}),
    ).fit(few, seed=0)  # fmt: skip
    inside, outside = (log_losses(model, cohort, seed=1) for cohort in (few, others))
    score = [-((x - outside.mean(axis=0)) / (outside.std(axis=0) + 1e-9)).mean(axis=1) for x in (inside, outside)]
    assert (score[0][:, None] > score[1]).mean() > 0.85
