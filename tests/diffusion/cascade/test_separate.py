"""Values and classes by networks of their own: the same cascade, and neither trains the other's."""

from itertools import count

import pytest
import torch
from torch import Tensor, nn

from helpers.denoisers import Function, stays_of, training_noise
from timediff.data.batch import Batch, Layout
from timediff.diffusion.cascade.head import UNITS
from timediff.diffusion.cascade.process import Cascade
from timediff.diffusion.process import STAY_LEVELS
from timediff.diffusion.settings import CascadeSettings
from timediff.networks.brnn import BidirectionalRNN

LAYOUT = Layout.of(2, (2, 3), (True, False))  # two values, a static channel, and one of steps
SETTINGS = CascadeSettings(separate=True)


def brnn(inputs: int, outputs: int) -> nn.Module:
    return BidirectionalRNN(inputs, 8, outputs=outputs)


def trained() -> Cascade:
    torch.manual_seed(0)
    process = SETTINGS.build(LAYOUT, brnn)
    assert isinstance(process, Cascade)
    return process


def stays(number: int = 32) -> Batch:
    g = torch.Generator().manual_seed(0)
    static = torch.randint(2, (number, 1), generator=g).expand(number, 4)
    c = torch.stack([static, torch.randint(3, (number, 4), generator=g)], -1)
    return Batch.of(torch.randn(number, 4, 2, generator=g), c)


def test_every_parameter_belongs_to_one_stage() -> None:
    process, stages = trained(), SETTINGS.stages(LAYOUT)
    assert list(stages) == ["values", "classes"]
    mine = [id(p) for modules in stages.values() for name in modules for p in process.get_submodule(name).parameters()]
    assert sorted(mine) == sorted(id(p) for p in process.parameters())


@pytest.mark.parametrize(("stage", "other"), [("values", "classes"), ("classes", "values")])
def test_a_stage_trains_its_own_modules_alone(stage: str, other: str) -> None:
    process, stages = trained(), SETTINGS.stages(LAYOUT)
    process.stage_loss(stage, stays(), training_noise(32)).total.backward()
    grown = {name: [p.grad for p in process.get_submodule(name).parameters()] for name in sum(stages.values(), ())}
    assert all(g is not None and g.abs().sum() > 0 for name in stages[stage] for g in grown[name][-1:])
    assert all(g is None for name in stages[other] for g in grown[name])


def test_classes_are_trained_without_any_value() -> None:
    process, batch = trained(), stays()
    other = Batch.of(batch.continuous + 1, batch.discrete)
    losses = [process.stage_loss("classes", one, training_noise(32)).total for one in (batch, other)]
    assert torch.equal(*losses)


def test_the_loss_of_both_is_that_of_each() -> None:
    process = trained()
    whole = process.loss(stays(), training_noise(32))
    noise = training_noise(32)
    values, classes = (process.stage_loss(stage, stays(), noise) for stage in ("values", "classes"))
    assert torch.equal(whole.total, values.total + classes.total)
    assert torch.equal(whole.continuous, values.continuous)
    assert torch.equal(whole.discrete, classes.discrete)


def answer(x: Tensor, t: Tensor) -> Tensor:
    """What one network for both would say: columns of values, then where the head starts from."""
    values = torch.sin(3 * x[..., :2] + t[:, None, None] / 1000)
    return torch.cat([values, x.sum(-1, keepdim=True) * torch.linspace(-1, 1, UNITS)], dim=-1)


def test_two_networks_that_say_what_one_says_sample_the_same_stays() -> None:
    torch.manual_seed(0)
    one = Cascade(LAYOUT, lambda inputs, outputs: Function(answer))
    parts = [Function(lambda x, t: answer(x, t)[..., :2]), Function(lambda x, t: answer(x, t)[..., 2:])]
    number = count()
    two = Cascade(LAYOUT, lambda inputs, outputs: parts[next(number)], separate=True)
    two.load_state_dict(one.state_dict())
    with torch.inference_mode():
        a, b = (process.sample(*stays_of(50, 4), sampler="multistep", steps=12) for process in (one, two))
    assert torch.equal(a.continuous, b.continuous)
    assert torch.equal(a.discrete, b.discrete)


def test_losses_of_single_stays_are_those_of_training_at_each_level() -> None:
    process, batch = trained().eval(), stays(40)
    with torch.no_grad():
        found = process.stay_losses(batch, training_noise(40))
        again = process.stay_losses(batch, training_noise(40))
        many = [process.stage_loss("values", batch, training_noise(40, key)).continuous for key in range(200)]
    assert {name: tuple(losses.shape) for name, losses in found.items()} == {
        "values": (40, STAY_LEVELS), "classes": (40, STAY_LEVELS), "static": (40, 1),
    }  # fmt: skip
    assert all(torch.equal(found[name], again[name]) for name in found)
    assert float(found["values"].mean()) == pytest.approx(float(torch.stack(many).mean()), rel=0.1)


@pytest.mark.parametrize("layout", [Layout.of(2, ()), Layout.of(0, (2, 3)), Layout.of(2, (2,), (True,))])
def test_where_there_is_one_stage_there_is_one_network(layout: Layout) -> None:
    assert SETTINGS.stages(layout) == {}
    process = SETTINGS.build(layout, brnn)
    assert len(process.denoisers) == 1
