"""The autoregressive process: what is sampled follows the likelihood that is trained, step by step."""

from itertools import product

import pytest
import torch
from torch import Tensor

from timediff.data.batch import Batch, Channel, Layout
from timediff.diffusion import categorical
from timediff.diffusion.autoregressive import gaussians
from timediff.diffusion.autoregressive.head import StepHead
from timediff.diffusion.autoregressive.meanings import terms_of
from timediff.diffusion.autoregressive.memory import Memory, last
from timediff.diffusion.autoregressive.process import Autoregressive
from timediff.networks.causal import CausalRNN
from timediff.runtime.randomness import Noise

STAYS, STEPS = 40, 9
# Two recorded features, of which one may be derived; one with a mask; a category; static ones.
LAYOUT = Layout(
    (
        Channel("mean", "value"),
        Channel("pulse", "value"),
        Channel("lactate", "value"),
        Channel("age", "value", static=True),
    ),
    (
        Channel("mean", "recording", 4, meanings=("any", "repeat", "derived", "missing")),
        Channel("pulse", "recording", 3, meanings=("any", "missing", "fixed"), scores=(0.0, 0.0, 0.8)),
        Channel("lactate", "mask", 2, meanings=("any", "missing")),
        Channel("rhythm", "value", 3),
        Channel("died", "value", 2, static=True),
    ),
)


def process(layout: Layout = LAYOUT, *, scale: float = 1.0) -> Autoregressive:
    torch.manual_seed(0)
    made = Autoregressive(
        layout, lambda inputs, outputs: CausalRNN(inputs, outputs, 12, 2, "lstm", 0.0), units=6, mixture=3
    )
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(scale * 0.4 * torch.randn(parameter.shape))
    return made.eval()


def noise(stays: int = STAYS, seed: int = 0) -> Noise:
    return Noise("sampling", [(seed, 0)], [stays], stays, torch.device("cpu"))


def sampled(made: Autoregressive) -> Batch:
    return made.sample(noise(), torch.full((STAYS,), STEPS), sampler="ancestral")


def test_what_may_be_derived_from_others_comes_after_them():
    terms = terms_of(LAYOUT.discrete[:4], LAYOUT.continuous[:3])
    assert [(term.kind, term.number) for term in terms] == [
        ("class", 1), ("value", 1), ("class", 2), ("value", 2), ("class", 3), ("class", 0), ("value", 0)
    ]  # fmt: skip


def test_a_term_sees_those_before_it_and_no_others():
    torch.manual_seed(0)
    head = StepHead(LAYOUT.discrete[:4], LAYOUT.continuous[:3], 5, 2)
    columns = torch.randn(head.columns, requires_grad=True)
    c, intervals = torch.zeros(4, dtype=torch.long), torch.zeros(3, 2)
    place = {term: number for number, term in enumerate(head.terms)}
    owner = [("class", int(i)) for i in head.one_hot.owner] + [("value", i) for i in range(3)]
    for number, term in enumerate(head.terms):
        if term.kind == "value" and not head.meanings(c).any[term.number]:
            continue
        found = head(torch.randn(head.width), columns, c, intervals, torch.zeros(3))[number]
        (gradient,) = torch.autograd.grad(found, columns, allow_unused=True)
        sees = {one for one, value in zip(owner, gradient, strict=True) if value != 0}
        assert sees == {tuple(one) for one in place if place[one] < number}


def test_it_is_sampled_by_the_probabilities_that_are_trained(monkeypatch):
    """Each class and each value has, as it is drawn, the probability that the pass over whole stays gives it."""
    made = process()
    used: list[Tensor] = []
    draw_class, draw_value = categorical.sample, gaussians.sample

    def recorded_class(log_p: Tensor, uniform: Tensor) -> Tensor:
        c = draw_class(log_p, uniform)
        used.append(-log_p.gather(-1, c[:, None])[:, 0])
        return c

    def recorded_value(output: Tensor, component: Tensor, place: Tensor) -> Tensor:
        z = draw_value(output, component, place)
        used.append(-gaussians.log_probability(output, z, z))
        return z

    monkeypatch.setattr(categorical, "sample", recorded_class)
    monkeypatch.setattr(gaussians, "sample", recorded_value)
    with torch.no_grad():
        batch = sampled(made)
        head = made.step_head
        # The static terms are recorded first, then the steps' in their order.
        of_steps = used[len(made.static_head.terms) :]
        stated = torch.stack(of_steps, dim=1).reshape(STAYS, STEPS, len(head.terms))
        c, x = batch.discrete[..., made.temporal_at], batch.continuous[..., made.temporal_values]
        static = made.static_head.column(
            batch.discrete[:, 0, made.static_at], batch.continuous[:, 0, made.static_values], torch.ones(STAYS, 1)
        )
        found = made._of_steps(c, x, x[..., None].expand(*x.shape, 2), static)
    drawn = head.meanings(c).any & (x.abs() < 3.99)  # what lies further out was brought back
    counts = {"class": 0, "value": 0}
    for number, (kind, i) in enumerate(head.terms):
        where = drawn[..., i] if kind == "value" else torch.ones(STAYS, STEPS, dtype=torch.bool)
        assert torch.allclose(found[..., number][where], stated[..., number][where], atol=2e-3)
        counts[kind] += int(where.sum())
    assert min(counts.values()) > 150


def test_repeats_fixed_and_missing_values_are_what_their_class_says():
    batch = sampled(process(scale=0.3))
    mean, pulse = batch.continuous[..., 0], batch.continuous[..., 1]
    of_mean, of_pulse = batch.discrete[..., 0], batch.discrete[..., 1]
    assert torch.allclose(pulse[of_pulse == 2], torch.tensor(0.8))
    assert (of_pulse == 2).any()
    values = last(mean[..., None], of_mean[..., None] <= 1)[0][..., 0]
    before = torch.cat([torch.zeros(STAYS, 1), values[:, :-1]], dim=1)
    assert torch.equal(mean[of_mean == 1], before[of_mean == 1])
    assert (batch.continuous[..., 3] == batch.continuous[:, :1, 3]).all()  # static ones are repeated
    assert (batch.discrete[..., 4] == batch.discrete[:, :1, 4]).all()


def test_what_is_remembered_step_by_step_is_what_is_remembered_of_all():
    torch.manual_seed(1)
    head = StepHead(LAYOUT.discrete[:4], LAYOUT.continuous[:3], 5, 2)
    memory = Memory(head)
    c = torch.stack([torch.randint(k, (STAYS, STEPS)) for k in head.one_hot.classes], dim=-1)
    x, known = torch.randn(STAYS, STEPS, 3), head.meanings(c).known
    expected = torch.randn(STAYS, STEPS, 3)
    together, state = memory(c, x, known, expected), memory.start(torch.zeros(STAYS, 1))
    for step in range(STEPS):
        state = memory.after(state, c[:, step], x[:, step], known[:, step], expected[:, step])
        assert torch.allclose(memory.shown(state), together[:, step], atol=1e-5)


def test_a_step_depends_on_those_before_it_alone():
    made = process()
    batch = sampled(made)
    x = batch.continuous[..., made.temporal_values].clone().requires_grad_()
    c, static = batch.discrete[..., made.temporal_at], torch.zeros(STAYS, made.static_head.columns)
    terms = made._of_steps(c, x, x.detach()[..., None].expand(*x.shape, 2), static)
    (gradient,) = torch.autograd.grad(terms[:, 4].sum(), x)
    assert (gradient[:, 5:] == 0).all()
    assert (gradient[:, :4] != 0).any()


def test_an_interval_counts_as_a_whole_and_any_place_in_it_stands_for_it():
    made = process()
    x = torch.zeros(STAYS, STEPS, 4)
    c = torch.zeros(STAYS, STEPS, 5, dtype=torch.long)
    wide = Batch.of(x, c, torch.tensor([-1000.0, 1000.0]).expand(STAYS, STEPS, 4, 2))
    with torch.no_grad():
        values = made.stay_losses(wide, noise(seed=1))["nll of values"]
    assert torch.allclose(values, torch.zeros_like(values), atol=1e-3)  # it is certain to lie there


@pytest.mark.parametrize(("values", "classes", "static"), list(product([0, 1], repeat=3))[1:])
def test_any_kind_of_channel_may_be_absent(values, classes, static):
    layout = Layout(
        tuple(Channel(f"x{i}", "value") for i in range(values))
        + tuple([Channel("age", "value", static=True)] * static),
        tuple(Channel(f"c{i}", "value", 3) for i in range(classes)),
    )
    made = process(layout)
    batch = made.sample(noise(5), torch.full((5,), 4), sampler="ancestral")
    assert batch.continuous.shape == (5, 4, values + static)
    loss = made.loss(batch, noise(5))
    assert loss.total.isfinite()
    loss.total.backward()


def test_what_stands_where_a_value_is_repeated_or_missing_counts_nothing():
    """A repeat is where the value stands that it repeats, wherever in its interval that was put."""
    made = process()
    batch = sampled(made)
    c, x = batch.discrete[..., made.temporal_at], batch.continuous[..., made.temporal_values]
    said = made.step_head.meanings(c)
    other = torch.where(said.repeat | ~said.known, torch.randn_like(x), x)
    static, intervals = torch.zeros(STAYS, made.static_head.columns), x[..., None].expand(*x.shape, 2)
    with torch.no_grad():
        terms, same = (made._of_steps(c, one, intervals, static) for one in (x, other))
    assert said.repeat.any()
    assert torch.allclose(terms, same, atol=1e-4)
