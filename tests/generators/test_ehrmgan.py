"""EHR-M-GAN: its losses by their formulas, its coupling, what each network is trained by, and its phases."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from helpers.small_baselines import Untrained, baseline, columns_of, noise_for, untrained
from timediff.data.codec import Codec
from timediff.data.cohort import Cohort
from timediff.data.schema import Schema
from timediff.generators.ehrmgan.bilateral import BilateralCell
from timediff.generators.ehrmgan.losses import contrastive, kl_divergence, moment_gap, smoothed_entropy
from timediff.generators.ehrmgan.objectives import classes_of
from timediff.generators.ehrmgan.sides import Sides

SIDES = ("continuous", "discrete")
SMALL = {"model__latent": 3, "vae__dropout": 0.0, "adversarial__dropout": 0.0, "adversarial__dropout_discrete": 0.0}


def small(cohort: Cohort, **changes: object) -> Untrained:
    return untrained(baseline("ehrmgan", **(SMALL | changes)), cohort)


def only(cohort: Cohort, *names: str) -> Cohort:
    """The cohort with these features alone."""
    schema = Schema(tuple(f for f in cohort.schema.features if f.name in names), cohort.schema.steps)
    series, static = ({n: v for n, v in of.items() if n in names} for of in (cohort.series, cohort.static))
    return replace(cohort, schema=schema, series=series, static=static)


# --- the losses, by their formulas ---


def test_the_kl_divergence_is_that_of_normal_distributions() -> None:
    torch.manual_seed(0)
    mean, log_std = torch.randn(5, 4, 3), torch.randn(5, 4, 3)
    ours, standard = torch.distributions.Normal(mean, log_std.exp()), torch.distributions.Normal(0.0, 1.0)
    expected = torch.distributions.kl_divergence(ours, standard).sum(dim=2)
    assert torch.allclose(kl_divergence(mean, log_std), expected, rtol=1e-5)


@pytest.mark.parametrize("cosine", [False, True])
def test_the_contrastive_loss_is_nt_xent(cosine: bool) -> None:
    """−log of what a stay's other series takes among all but itself, in both directions."""
    torch.manual_seed(0)
    one, other = torch.randn(4, 2, 3), torch.randn(4, 2, 3)
    a, b = ([x / (x.norm() if cosine else 1) for x in part.flatten(1)] for part in (one, other))
    total = 0.0
    for here, there in ((a, b), (b, a)):
        for i in range(4):
            wrong = [here[i] @ x for j, x in enumerate(here) if j != i] + [here[i] @ x for x in there]
            total -= float(here[i] @ there[i] - torch.stack(wrong).logsumexp(0)) / 4
    assert contrastive(one, other, cosine=cosine).item() == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("rooted", [False, True])
def test_feature_matching_compares_stds_and_means_of_a_batch(rooted: bool) -> None:
    rng = np.random.default_rng(0)
    made, real = rng.normal(1, 1, (6, 2, 3)), rng.normal(2, 3, (6, 2, 3))

    def mean(x: Any) -> Any:
        return np.sqrt(np.abs(x.mean(axis=0))) if rooted else x.mean(axis=0)

    expected = np.abs(made.std(axis=0) - real.std(axis=0)).mean() + np.abs(mean(made) - mean(real)).mean()
    found = moment_gap(torch.tensor(made), torch.tensor(real), rooted=rooted)
    assert found.item() == pytest.approx(expected, rel=1e-4)


def test_a_cross_entropy_with_soft_targets() -> None:
    logits, targets = torch.tensor([[0.3], [-2.0]]), torch.tensor([[0.8], [0.1]])
    p = logits.sigmoid()
    expected = -(targets * p.log() + (1 - targets) * (1 - p).log()).mean()
    assert smoothed_entropy(logits, targets).item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize("side", SIDES)
def test_a_vae_minimises_the_weighted_sum_of_five_losses(side: str, mixed: Cohort) -> None:
    weights = {"kl": 0.3, "kl_discrete": 0.7, "matching": 0.2, "contrastive": 0.4, "semantic": 0.6}
    made = small(mixed, **{f"vae__{name}": weight for name, weight in weights.items()})
    losses, vae = made.losses(f"{side}-vae"), made.network.vae
    noise = noise_for(len(mixed))
    with torch.no_grad():
        x, known = made.network.sides.split(made.columns.of(made.batch))
        encoded = {name: vae.encode(name, part, known, noise.normal(3)) for name, part in x.items()}
        own, other = encoded[side], encoded[next(name for name in SIDES if name != side)]
        logits = vae.shared.classifier(torch.cat([one.z for one in encoded.values()], dim=-1))
    label = torch.tensor(np.asarray(mixed.label)).long()
    expected = {
        "error": (own.decoded - x[side]).square().mean(),
        "kl": kl_divergence(own.mean, own.log_std).sum(dim=1).mean(),
        "matching": (own.z - other.z).square().mean(),
        "contrastive": contrastive(own.z, other.z, cosine=True),
        "semantic": -logits.log_softmax(dim=-1)[torch.arange(len(label)), label].mean(),
    }
    assert {name: losses[name].item() for name in expected} == pytest.approx(
        {name: value.item() for name, value in expected.items()}, rel=1e-4
    )
    weights["kl"] = weights["kl" if side == "continuous" else "kl_discrete"]
    total = expected["error"] + sum(weights[name] * expected[name] for name in list(expected)[1:])
    assert losses["total"].item() == pytest.approx(total.item(), rel=1e-4)
    for name in expected:  # and of none its gradient is left out
        assert made.gradient(f"{side}-vae", name).norm() > 0


@pytest.mark.parametrize("side", SIDES)
def test_a_generator_minimises_the_adversarial_loss_and_matches_features(side: str, mixed: Cohort) -> None:
    """Of the discriminator's states for continuous data, of the data themselves for discrete."""
    made = small(mixed, adversarial__feature_matching=3.0, adversarial__feature_matching_discrete=5.0)
    losses, network = made.losses(f"{side}-generator"), made.network
    with torch.no_grad():
        x, known = network.sides.split(made.columns.of(made.batch))
        fake = network.made(side, network.noise_of(noise_for(len(mixed)), 6), known)
        logits, seen = network.discriminators[side](fake)
        _, wanted = network.discriminators[side](x[side])
    pairs = (seen, wanted, True) if side == "continuous" else (fake, x[side], False)
    gap = moment_gap(pairs[0], pairs[1], rooted=pairs[2])
    fooling = -logits.sigmoid().log().mean()
    assert losses["matching"].item() == pytest.approx(gap.item(), rel=1e-4)
    assert losses["fooling"].item() == pytest.approx(fooling.item(), rel=1e-4)
    expected = fooling + (3.0 if side == "continuous" else 5.0) * gap
    assert losses["total"].item() == pytest.approx(expected.item(), rel=1e-4)
    assert made.gradient(f"{side}-generator", "fooling").norm() > 0  # it is not deaf to its discriminator
    assert made.gradient(f"{side}-generator", "matching").norm() > 0


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("side", SIDES)
def test_a_discriminator_tells_real_from_made(side: str, noisy: bool, mixed: Cohort) -> None:
    """With targets of 1 and 0, or sampled near them."""
    made = small(mixed, adversarial__noisy_labels=noisy, adversarial__gradient_penalty=0.0)
    losses, network, noise = made.losses(f"{side}-discriminator"), made.network, noise_for(len(mixed))
    with torch.no_grad():
        x, known = network.sides.split(made.columns.of(made.batch))
        fake = network.made(side, network.noise_of(noise, 6), known)
        real_logits, fake_logits = (network.discriminators[side](part)[0] for part in (x[side], fake))
        targets = torch.ones(len(mixed), 1), torch.zeros(len(mixed), 1)
        if noisy:
            first, second = noise.uniform(1), noise.uniform(1)
            near = {"continuous": (0.7 + 0.5 * first, 0.1 + 0.2 * second), "discrete": (0.8 + 0.1 * first, 0.1)}
            targets = near[side]  # type: ignore[assignment]
        expected = smoothed_entropy(real_logits, targets[0]) + smoothed_entropy(fake_logits, targets[1])
    assert losses["total"].item() == pytest.approx(expected.item(), rel=1e-4)


def test_a_gradient_penalty_has_its_weight(mixed: Cohort) -> None:
    losses = small(mixed, adversarial__gradient_penalty=7.0).losses("discrete-discriminator")
    assert losses["penalty"] > 0
    assert losses["total"].item() == pytest.approx((losses["entropy"] + 7 * losses["penalty"]).item(), rel=1e-5)


# --- the coupling of the generators ---


def test_a_cell_that_is_not_coupled_is_an_lstm_cell_and_a_coupled_one_adds_the_other_state() -> None:
    torch.manual_seed(0)
    alone, coupled = (BilateralCell(3, 4, coupled=both) for both in (False, True))
    plain = torch.nn.LSTMCell(3, 4, bias=False)
    x, h, c, other = torch.randn(2, 3), torch.randn(2, 4), torch.randn(2, 4), torch.randn(2, 4)
    with torch.no_grad():
        order = [0, 1, 3, 2]  # of input, forget, cell and output gate in PyTorch's
        weight = torch.cat([plain.weight_ih, plain.weight_hh], dim=1).view(4, 4, 7)[order].flatten(0, 1)
        alone.gates.weight.copy_(weight)
        coupled.gates.weight.copy_(torch.cat([weight, weight[:, 3:]], dim=1))  # V = U
        expected = plain(x, (h, c))
        for found, wanted in zip(alone(x, h, c, []), expected, strict=True):
            assert torch.allclose(found, wanted, atol=1e-6)
        for found, wanted in zip(coupled(x, h / 2, c, [h / 2]), expected, strict=True):
            assert torch.allclose(found, wanted, atol=1e-6)
        assert not torch.allclose(coupled(x, h, c, [other])[0], expected[0], atol=1e-3)


@pytest.mark.parametrize("side", SIDES)
def test_each_generator_reads_the_others_last_states(side: str, mixed: Cohort) -> None:
    """Not those of the same step: what both make of a step depends on the other's noise of earlier steps alone."""
    network = small(mixed).network
    numbers = network.noise
    z = network.noise_of(noise_for(4), 5).requires_grad_()
    known = torch.zeros(4, 5, network.sides.known)
    network.latents(z, known)[side][:, 3].sum().backward()
    own, other = (slice(0, numbers["continuous"]), slice(numbers["continuous"], None))[:: 1 if side == SIDES[0] else -1]
    reached = [z.grad[..., part].abs().amax(dim=(0, 2)) > 0 for part in (own, other)]  # type: ignore[index]
    assert reached[0].tolist() == [True] * 4 + [False]
    assert reached[1].tolist() == [True] * 3 + [False] * 2


def test_a_loss_of_one_side_depends_on_the_other_generator_but_does_not_train_it(mixed: Cohort) -> None:
    made = small(mixed)
    made.losses("discrete-generator")["total"].backward()
    other = [one.grad for one in made.network.generators["continuous"].cells.parameters()]
    assert all(grad is not None and grad.norm() > 0 for grad in other)
    trained = {id(one) for one in made.objectives["discrete-generator"].parameters(made.network)}
    assert trained == {id(one) for one in made.network.generators["discrete"].parameters()}


# --- who is trained when, and by what ---


def test_each_network_is_trained_by_its_objectives_alone(mixed: Cohort) -> None:
    made = small(mixed)
    modules = {name: one.modules for name, one in made.objectives.items()}
    for side in SIDES:
        assert modules[f"{side}-generator"] == (f"generators.{side}",)
        assert modules[f"{side}-discriminator"] == (f"discriminators.{side}",)
        assert modules[f"{side}-vae"] == modules[f"{side}-pretraining"] == (f"vae.sides.{side}", "vae.shared")
    trained = {id(p) for one in made.objectives.values() for p in one.parameters(made.network)}
    assert trained == {id(p) for p in made.network.parameters()}
    for name, objective in made.objectives.items():  # and every parameter of theirs gets a gradient
        made.network.zero_grad()
        made.losses(name)["total"].backward()
        assert all(p.grad is not None and p.grad.norm() > 0 for p in objective.parameters(made.network)), name


@given(updates=st.integers(1, 300), fraction=st.floats(0, 0.999))
def test_phases_begin_and_end(updates: int, fraction: float, mixed: Cohort) -> None:
    """First the VAEs alone; in the last update at least all networks, and the VAEs not twice."""
    model = baseline("ehrmgan", training__steps=updates, phases__pretraining=fraction)
    codec = Codec.fit(mixed, model.settings.codec)
    model.settings = model.settings.for_cohort(len(mixed), codec.layout)
    objectives = model.objectives(codec)
    joint = min(round(updates * fraction), updates - 1)
    for step in {0, joint - 1, joint, updates - 1} & set(range(updates)):
        kinds = {one.name.split("-")[1] for one in objectives if one.active(step)}
        assert kinds == ({"pretraining"} if step < joint else {"vae", "generator", "discriminator"})


def test_rounds_and_learning_rates_are_as_set(mixed: Cohort) -> None:
    made = small(mixed, adversarial__rounds=2, adversarial__generator_rounds=3, adversarial__lr=0.5,
                 phases__pretraining_lr=5.0, phases__vae_lr=0.25)  # fmt: skip
    found = {name: (one.repeats, one.lr) for name, one in made.objectives.items()}
    expected = {"pretraining": (1, 5.0), "discriminator": (2, 0.5), "generator": (3, 1.0), "vae": (1, 0.25)}
    assert found == {f"{side}-{name}": value for side in SIDES for name, value in expected.items()}


# --- the dual VAE ---


@pytest.mark.parametrize("side", SIDES)
def test_an_encoder_with_feedback_sees_the_decoders_last_error(side: str, mixed: Cohort) -> None:
    made = small(mixed, vae__feedback=True)
    network, seen = made.network, list[Tensor]()
    x, known = network.sides.split(made.columns.of(made.batch))
    network.vae.sides[side].encoder.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    with torch.no_grad():
        encoded = network.vae.encode(side, x[side], known, torch.zeros(len(mixed), 3))
    before = torch.cat([torch.zeros_like(x[side][:, :1]), encoded.decoded[:, :-1]], dim=1)
    expected = torch.cat([x[side], known, x[side] - before.sigmoid()], dim=-1)
    assert torch.allclose(torch.cat(seen, dim=1), expected, atol=1e-6)


@pytest.mark.parametrize("feedback", [False, True])
def test_a_latent_series_has_the_same_noise_at_every_step_and_is_what_is_decoded(feedback: bool, mixed: Cohort) -> None:
    made = small(mixed, vae__feedback=feedback)
    vae = made.network.vae
    x, known = made.network.sides.split(made.columns.of(made.batch))
    e = torch.randn(len(mixed), 3)
    with torch.no_grad():
        encoded = vae.encode("continuous", x["continuous"], known, e)
        decoded, _ = vae.decode("continuous", encoded.z, known)
    assert torch.allclose((encoded.z - encoded.mean) / encoded.log_std.exp(), e[:, None].expand(-1, 6, -1), atol=1e-4)
    assert torch.allclose(decoded, encoded.decoded, atol=1e-5)


def test_published_a_vae_drops_states_in_training_and_not_in_sampling(mixed: Cohort) -> None:
    made = untrained(baseline("ehrmgan", vae__dropout=0.9), mixed)
    z, known = torch.randn(4, 6, made.network.vae.latent), torch.zeros(4, 6, 1)
    decode = made.network.vae.decode
    with torch.no_grad():
        assert not torch.equal(decode("discrete", z, known)[0], decode("discrete", z, known)[0])
        made.network.eval()
        assert torch.equal(decode("discrete", z, known)[0], decode("discrete", z, known)[0])


# --- sides and the label ---


def test_columns_are_split_into_sides_and_joined_again(mixed: Cohort) -> None:
    columns, x = columns_of(mixed)
    for label in [None, *range(len(columns.classes))]:
        sides = Sides(columns, label)
        parts, known = sides.split(x)
        assert {name: part.shape[-1] for name, part in parts.items()} == sides.widths
        assert parts["continuous"].min() >= 0
        assert parts["continuous"].max() <= 1
        assert torch.allclose(sides.join(parts, known), x, atol=1e-6)
        if label is not None:
            assert torch.equal(classes_of(known), columns.split(x)[1][:, 0, label])


def test_both_sides_are_conditioned_on_the_label(mixed: Cohort) -> None:
    made = small(mixed)
    z, label = made.network.sample_noise(noise_for(5), 6)
    with torch.no_grad():
        zero, one = (made.network.generate(z, torch.full_like(label, of), length=6) for of in (0, 1))
        of_zero, of_one = (made.network.latents(z, torch.full((5, 6, 1), of)) for of in (0.0, 1.0))
    assert ((zero - one).abs().amax(dim=(0, 1)) > 1e-6).all()
    assert all(not torch.equal(of_zero[side], of_one[side]) for side in SIDES)  # and not the decoders alone
    _, known = made.network.sides.split(one)
    assert torch.equal(known, torch.ones_like(known))


def test_labels_are_sampled_at_their_rate(mixed: Cohort) -> None:
    made = baseline("ehrmgan", training__steps=1).fit(mixed, seed=0).sample(4000, seed=1)
    assert np.mean(made.label) == pytest.approx(np.mean(mixed.label), abs=0.03)


@pytest.mark.parametrize(
    ("names", "sides", "label"),
    [
        (("pulse",), {"continuous"}, False),
        (("pulse", "died"), {"continuous"} | {"discrete"}, True),  # its mask is discrete
        (("rhythm", "ventilated"), {"discrete"}, False),
        (("ventilated", "died"), {"discrete"}, True),
    ],
)
def test_one_side_is_enough(names: tuple[str, ...], sides: set[str], label: bool, mixed: Cohort) -> None:
    """Then there is nothing to match, to contrast or to couple with."""
    cohort = only(mixed, *names)
    if names == ("pulse",):
        cohort = replace(cohort, series={"pulse": np.nan_to_num(cohort.series["pulse"], nan=80.0)})
    made = small(cohort)
    assert set(made.network.sides.widths) == sides
    assert bool(made.network.sides.known) is label
    side = next(iter(sides))
    assert ("semantic" in made.losses(f"{side}-vae")) is label
    assert ("matching" in made.losses(f"{side}-vae")) is (len(sides) == 2)
    assert len(baseline("ehrmgan", training__steps=3, phases__pretraining=0.4).fit(cohort, seed=0).sample(5)) == 5


def test_a_label_alone_is_what_is_made_and_no_condition(mixed: Cohort) -> None:
    cohort = only(mixed, "ventilated", "died")
    cohort = replace(cohort, series={"ventilated": np.ones_like(cohort.series["ventilated"])})
    model = baseline("ehrmgan", codec__allow_constant=True, training__steps=2).fit(cohort, seed=0)
    sides = model.fitted.network.sides
    assert (sides.widths, sides.known) == ({"discrete": 1}, 0)
    assert len(model.sample(5)) == 5


def test_noise_is_uniform_and_half_as_wide_as_the_data(mixed: Cohort) -> None:
    network = small(mixed, model__held=0.0).network
    assert network.noise == {side: max(1, width // 2) for side, width in network.sides.widths.items()}
    z = network.noise_of(noise_for(2000), 3)
    assert 0 <= z.min() < 0.01 < 0.99 < z.max() < 1
    assert z.mean().item() == pytest.approx(0.5, abs=0.02)
    assert z.std().item() == pytest.approx(1 / math.sqrt(12), abs=0.02)
