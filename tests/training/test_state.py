"""The state of training: which weights are returned, and what a checkpoint brings back."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from helpers.one_number import ALONE, OneNumber, data, one_number_settings
from helpers.small_runs import equal, small_settings, weights
from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.generators.timediff.generator import TimeDiff
from timediff.settings.training import TrainingSettings
from timediff.training.checkpoints import Checkpoints
from timediff.training.loop import train
from timediff.training.state import TrainingState, make_optimizer
from timediff.training.validation import Validation


def state(validation: Validation | None = None) -> TrainingState:
    """One whose network, average and best weights are three different things."""
    found = TrainingState.initial(OneNumber(), ALONE, one_number_settings(), [validation] if validation else [])
    found.network.w.data.fill_(3.0)  # type: ignore[operator, union-attr]
    found.ema.weights["w"].fill_(2.0)
    return found


def test_the_averaged_weights_are_returned() -> None:
    assert float(state().best_weights(pytest.fail)["w"]) == 2.0


def test_of_validated_weights_the_best_are_returned() -> None:
    validation = Validation(OneNumber(), ALONE[0], data(torch.ones(5)), seed=0)
    said: list[str] = []
    assert float(state(validation).best_weights(pytest.fail)["w"]) == 2.0  # nothing was validated yet
    validation.look({"w": torch.tensor([1.0])}, 4)
    validation.look({"w": torch.tensor([9.0])}, 8)
    assert float(state(validation).best_weights(said.append)["w"]) == 1.0
    assert said == ["held-out loss was lowest after update 4: those weights are kept"]


@pytest.mark.parametrize("validated", [False, True])
def test_training_returns_an_average_of_what_the_network_was(validated: bool) -> None:
    """The last one, or with held-out stays the best of those looked at: for nines, the highest."""
    network = OneNumber()
    settings = one_number_settings(steps=60, lr=0.05, ema=0.99, validate_every=5)
    held_out = data(torch.full((5,), 9.0)) if validated else None
    path: list[float] = []

    def watch(done: int, total: int, **values: float) -> None:
        path.append(float(network.w.detach()))

    returned = train(network, ALONE, data(torch.ones(20)), settings, seed=0, held_out=held_out, progress=watch)
    averages = [0.0]
    for update, w in enumerate(path):
        averages.append(averages[-1] + max(0.01, 9 / (10 + update)) * (w - averages[-1]))
    expected, of_network = (max(averages[5::5]), max(path[4::5])) if validated else (averages[-1], path[-1])
    assert float(returned["w"]) == pytest.approx(expected, abs=1e-5)
    assert abs(float(returned["w"]) - of_network) > 0.01


def test_a_generator_samples_from_the_averaged_weights(icu: Cohort, whole: Path) -> None:
    """Also when it is loaded, and from the run that `fit` leaves."""
    checkpoint = whole / "checkpoints" / "step-000000012"
    average, last = (load_file(checkpoint / f"{part}.safetensors") for part in ("ema", "model"))
    assert not equal(average, last)
    assert equal(weights(whole), average)
    assert equal(TimeDiff.load(whole).fitted.network.state_dict(), average)
    fitted = TimeDiff(settings=small_settings()).fit(icu, seed=5)
    assert equal(fitted.fitted.network.state_dict(), average)


def test_an_optimizer_is_adam_with_the_betas_that_are_set() -> None:
    optimizer = make_optimizer(list(OneNumber().parameters()), TrainingSettings(betas=(0.5, 0.75)))
    assert isinstance(optimizer, torch.optim.Adam)
    (group,) = optimizer.param_groups
    assert group["betas"] == (0.5, 0.75)
    assert group["weight_decay"] == 0
    assert isinstance(group["lr"], torch.Tensor)  # which a CUDA graph reads anew


def test_an_optimizer_is_plain_sgd_where_that_is_set() -> None:
    for settings, kind in ((TrainingSettings(optimizer="sgd"), None), (TrainingSettings(), "sgd")):
        optimizer = make_optimizer(list(OneNumber().parameters()), settings, kind)
        assert isinstance(optimizer, torch.optim.SGD)
        (group,) = optimizer.param_groups
        assert (group["momentum"], group["weight_decay"], group["fused"]) == (0, 0, True)
        assert isinstance(group["lr"], torch.Tensor)


def test_a_checkpoint_brings_back_network_average_optimizers_and_validation(tmp_path: Path) -> None:
    validation = Validation(OneNumber(), ALONE[0], data(torch.ones(5)), seed=0)
    before = state(validation)
    validation.look({"w": torch.tensor([1.0])}, 4)
    (optimizer,) = before.optimizers.values()
    before.network.w.grad = torch.ones(1)  # type: ignore[union-attr]
    optimizer.step()
    checkpoints = Checkpoints(tmp_path)
    checkpoints.write(7, before.parts())
    after = TrainingState.initial(
        OneNumber(), ALONE, one_number_settings(), [Validation(OneNumber(), ALONE[0], data(torch.ones(5)), seed=0)]
    )
    said: list[str] = []
    assert after.restore(checkpoints, said.append) == 7
    assert said == ["going on from update 7"]
    for part, tensors in before.parts().items():
        assert equal(after.parts()[part], tensors)
    assert len(before.parts()["optimizer"]) == 3
    assert after.restore(None, pytest.fail) == 0


def test_a_loss_or_a_weight_that_is_no_number_is_refused() -> None:
    found = state()
    found.require_finite(1.0, 5, 0.1, 0)
    with pytest.raises(TimeDiffError, match=r"before update 5.*lower training.lr than 0.1.*update 3 is sound"):
        found.require_finite(float("nan"), 5, 0.1, 3)
    found.network.w.data.fill_(float("inf"))  # type: ignore[operator, union-attr]
    with pytest.raises(TimeDiffError, match="no longer a number"):
        found.require_finite(1.0, 5, 0.1, 0)


def _another(**changes: dict[str, torch.Tensor] | None) -> dict[str, dict[str, torch.Tensor]]:
    """The parts of a checkpoint of a network of one number, but for these."""
    before = state()
    (optimizer,) = before.optimizers.values()
    before.network.w.grad = torch.ones(1)  # type: ignore[union-attr]
    optimizer.step()
    return {part: tensors for part, tensors in {**before.parts(), **changes}.items() if tensors is not None}


ANOTHER: dict[str, tuple[dict[str, dict[str, torch.Tensor] | None], str]] = {
    "another network": ({"model": {"v": torch.ones(1)}}, "model has no w"),
    "a larger one": ({"model": {"w": torch.ones(2)}}, "w of model has another shape"),
    "no average": ({"ema": None}, "ema is missing"),
    "a scalar average": ({"ema": {"w": torch.ones(())}}, "w of ema has another shape"),
    "NaN": ({"model": {"w": torch.full((1,), float("nan"))}}, "w of model is not finite"),
    "no optimizer": ({"optimizer": None}, "optimizer is missing"),
    "moments of another": ({"optimizer": {"0.exp_avg": torch.ones(2)}}, "optimizer has no 0.exp_avg_sq"),
    "moments of no parameter": ({"optimizer": {"7.step": torch.ones(())}}, "unknown 7.step"),
    "no moments": ({"optimizer": {"x": torch.ones(())}}, "unknown x"),
    "best of another": ({"best": {"v": torch.ones(1)}}, "best has no w"),
    "validation without best": ({"validation": {"state": torch.zeros(4)}}, "best is missing"),
    "validation of another": (
        {"best": {"w": torch.ones(1)}, "validation": {"state": torch.zeros(3)}}, "state of validation has another",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ANOTHER)
def test_a_checkpoint_of_another_run_is_refused_in_a_sentence(kind: str, tmp_path: Path) -> None:
    changes, said = ANOTHER[kind]
    checkpoints = Checkpoints(tmp_path)
    checkpoints.write(7, _another(**changes))
    validation = Validation(OneNumber(), ALONE[0], data(torch.ones(5)), seed=0)
    after = TrainingState.initial(OneNumber(), ALONE, one_number_settings(), [validation])
    with pytest.raises(TimeDiffError, match=rf"update 7 does not fit this run \(.*{said}.*fit again\.$") as caught:
        after.restore(checkpoints, pytest.fail)
    assert "\n" not in str(caught.value)


def test_an_optimizer_that_has_not_begun_is_restored(tmp_path: Path) -> None:
    """As those of TimeGAN's later phases are."""
    checkpoints = Checkpoints(tmp_path)
    checkpoints.write(7, _another(optimizer={}))
    after = TrainingState.initial(OneNumber(), ALONE, one_number_settings())
    assert after.restore(checkpoints, lambda line: None) == 7
