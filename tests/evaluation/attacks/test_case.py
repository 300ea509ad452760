"""What an attacker reads off a model: logarithms of losses, or what is one already, never now one and now the other."""

import numpy as np
import pytest

from helpers.leaky import Leaky
from timediff.data.arrays import Floats
from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.evaluation.attacks.case import log_losses

LOSSES = {"error": np.array([[0.0, 1e3], [1e-3, 1.0]]), "nll": np.array([[2.0], [3.0]])}


class Stated(Leaky):
    """With these losses, whatever the stays."""

    losses: dict[str, Floats] = LOSSES
    signed_losses = ("nll",)

    def stay_losses(self, *_: object, **__: object) -> dict[str, Floats]:  # type: ignore[override]
        return self.losses


@pytest.mark.parametrize("shift", [0.0, -2.5, -100.0])
def test_a_likelihood_is_taken_as_it_is_whether_it_is_negative_or_not(shift: float, icu: Cohort) -> None:
    """So that of two models that differ by a constant the losses do too."""
    model = Stated()
    model.losses = LOSSES | {"nll": LOSSES["nll"] + shift}
    found = log_losses(model, icu, seed=0)
    assert np.allclose(found[:, :2], np.log(LOSSES["error"] + 1e-6))
    assert np.allclose(found[:, 2:], LOSSES["nll"] + shift)


def test_a_loss_that_is_rounded_to_below_0_is_0(icu: Cohort) -> None:
    model = Stated()
    model.losses = {"error": np.array([[-1e-5, 0.0]])}
    assert np.allclose(log_losses(model, icu, seed=0), np.log(1e-6))


def test_a_negative_loss_that_nobody_spoke_of_is_refused(icu: Cohort) -> None:
    model = Stated()
    model.losses = {"error": np.array([[-0.5]])}
    with pytest.raises(TimeDiffError, match=r"the loss 'error' that leaky has of a stay is negative .*signed_losses"):
        log_losses(model, icu, seed=0)
