"""Settings: a mistaken one is named, and one that has another name by now is answered with it."""

import pytest

from helpers.small_baselines import PUBLISHED
from timediff.errors import TimeDiffError
from timediff.settings.resolve import generator_of, resolve
from timediff.settings.typed import flat


@pytest.mark.parametrize(
    ("name", "path", "value", "said"),
    [
        ("timegan", "phases.embedding", 0.9, "leave some for joint"),
        ("latent-forcing", "phases.embedding", 0.9, "leave some for joint"),
        ("latent-forcing", "phases.together", 0, "above 0"),
        ("timegan", "phases.together", 1, "no setting phases.together"),
        ("timegan", "diffusion.steps", 5, "no setting diffusion;"),
        ("rcgan", "adversarial.rounds", 0, "adversarial.rounds is 0"),
        ("timegan", "adversarial.generator_rounds", 0, "adversarial.generator_rounds is 0"),
        ("rcgan", "adversarial.optimizer", "lbfgs", "one of adam, sgd"),
        ("crnngan", "phases.pretraining", 1.5, r"phases\.pretraining is 1\.5; expected 0 to 1"),
        ("tforcing", "model.dequantisation", -1, "a standard deviation of 0 or more"),
        ("pforcing", "model.predicts", "modes", "one of distribution, mean"),
        ("rcgan", "model.noise", 0, "model.noise is 0"),
        ("rcgan", "model.held", 1.5, r"model\.held is 1\.5; expected 0 to 1"),
        ("timegan", "model.held", 0.5, "no setting model.held"),
        ("timegan", "adversarial.gradient_penalty", -1, "a weight of 0 or more"),
        ("crnngan", "training.validation", 0.1, "expected 0"),
        ("tforcing", "model.first", "training", "one of fitted, real"),
        ("rcgan", "codec.scale", "quantile", "lie in a range"),
        ("pforcing", "adversarial.lr", -1, "above 0"),
        ("pforcing", "adversarial.enough", 1.5, r"adversarial\.enough is 1\.5; expected 0 to 1"),
        ("pforcing", "model.noise", 3, "no setting model.noise"),
        ("rcgan", "adversarial.gradient_penalty", -1, "a weight of 0 or more"),
        ("rnn", "model.first", "training", "one of fitted, real"),
        ("ehrmgan", "phases.pretraining", 1.0, "leaves some for the rest"),
        ("ehrmgan", "phases.vae_lr", 0, "above 0"),
        ("ehrmgan", "vae.layers", 1, "at least 2, of which one is shared"),
        ("ehrmgan", "vae.kl", -1, r"vae\.kl is -1\S*; expected a weight of 0 or more"),
        ("ehrmgan", "vae.dropout", 1.5, r"vae\.dropout is 1\.5; expected 0 to 1"),
        ("ehrmgan", "vae.similarity", "angle", "one of dot, cosine"),
        ("ehrmgan", "model.held", -0.5, "expected 0 to 1"),
        ("ehrmgan", "model.latent", 0, "model.latent is 0"),
        ("ehrmgan", "adversarial.layers", 0, "adversarial.layers is 0"),
        ("ehrmgan", "adversarial.generator_rounds", 0, "adversarial.generator_rounds is 0"),
        ("ehrmgan", "adversarial.feature_matching", -1, "a weight of 0 or more"),
        ("ehrmgan", "codec.scale", "quantile", "lie in a range"),
        ("gtgan", "phases.embedding", 0.9, "leave some for joint"),
        ("gtgan", "solvers.flow_step", 0, r"solvers\.flow_step is 0\.0; expected 0\.001 to 1"),
        ("gtgan", "solvers.flow", "dopri5", "one of euler, midpoint, rk4"),
        ("gtgan", "model.cell", "lstm", "one of gru"),
        ("gtgan", "model.flow", [8, 0], r"model\.flow\[1\] is 0"),
        ("gtgan", "model.latent", 0, "model.latent is 0"),
        ("gtgan", "likelihood.every", 0, "likelihood.every is 0"),
        ("gtgan", "likelihood.noise", -1, "likelihood.noise is -1.0; expected 0 or more"),
        ("gtgan", "adversarial.moments", -1, "adversarial.moments is -1.0; expected 0 or more"),
        ("crnngan", "adversarial.freeze", 1.5, r"adversarial\.freeze is 1\.5; expected 0 to 1"),
    ],
)
def test_mistaken_settings_are_named(name: str, path: str, value: object, said: str) -> None:
    with pytest.raises(TimeDiffError, match=said):
        resolve(name, assignments={path: value})


@pytest.mark.parametrize("name", ["latent-forcing", "rcgan", "crnngan", "pforcing", "ehrmgan"])
def test_a_renamed_setting_is_answered_with_its_new_name(name: str) -> None:
    with pytest.raises(TimeDiffError, match=r"adversarial\.smooth is adversarial\.gradient_penalty now"):
        resolve(name, assignments={"adversarial.smooth": 0.1})


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_preset_has_no_additions(name: str) -> None:
    settings = resolve(name)
    assert settings.training.ema == 0
    assert settings.training.decay == "none"
    fill = "carry" if "gtgan" in name else "mean"  # which needs a value only where a feature was never measured
    assert settings.codec == type(settings.codec)(fill=fill)
    if hasattr(settings.model, "noise"):
        assert settings.model.noise in (None, 10)
    if hasattr(settings, "adversarial"):
        assert settings.adversarial.gradient_penalty == 0


@pytest.mark.parametrize("name", PUBLISHED)
def test_from_the_published_preset_single_settings_lead_to_the_improved_one(name: str) -> None:
    published, improved = resolve(name), resolve(generator_of(name))
    changes = {path: value for path, value in flat(improved).items() if flat(published)[path] != value}
    assert resolve(name, assignments=changes) == improved
