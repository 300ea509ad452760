"""Settings: what is written is what is read, and a mistake names what was meant."""

import pickle
import tomllib

import pytest

from timediff.config import Settings, parse_assignment, presets, resolve
from timediff.errors import Problems, TimeDiffError


def test_paper_is_the_default_of_every_setting() -> None:
    assert resolve("paper") == Settings()


def test_paper_is_as_published() -> None:
    settings = resolve("paper")
    assert (settings.diffusion.steps, settings.diffusion.schedule, settings.diffusion.lambda_) == (1000, "cosine", 0.01)
    assert (settings.model.cell, settings.model.layers, settings.model.hidden) == ("lstm", 2, None)
    training = settings.training
    assert (training.lr, training.betas, training.batch, training.accumulate) == (8e-5, (0.9, 0.99), 32, 2)
    assert (training.clip, training.ema, training.seed, training.steps) == (1, 0.995, 2023, 200_000)
    assert (settings.sampling.sampler, settings.sampling.steps) == ("ancestral", None)


def test_wide_presets() -> None:
    for name in ("paper-eicu", "paper-timegan"):
        assert resolve(name).differences(resolve("paper")) == {"model.hidden": (256, None)}


@pytest.mark.parametrize("name", presets())
def test_text_round_trip(name: str) -> None:
    settings = resolve(name)
    assert type(settings)().updated(tomllib.loads(settings.to_toml())) == settings
    assert ("lambda =" in settings.to_toml()) == isinstance(settings, Settings)


def test_each_goes_before_the_last(tmp_path) -> None:
    (tmp_path / "mine.toml").write_text("[training]\nlr = 1e-4\nbatch = 64\n")
    settings = resolve("fast", tmp_path / "mine.toml", {"training.batch": 16, "diffusion.lambda": 1})
    assert (settings.training.lr, settings.training.batch, settings.diffusion.lambda_) == (1e-4, 16, 1.0)
    assert settings.sampling == resolve("fast").sampling


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("training.steps=5000", ("training.steps", 5000)),
        ("training.lr = 1e-3", ("training.lr", 1e-3)),
        ("model.cell=gru", ("model.cell", "gru")),
        ('model.cell="gru"', ("model.cell", "gru")),
        ("codec.allow_constant=true", ("codec.allow_constant", True)),
        ("model.hidden=unset", ("model.hidden", "unset")),
    ],
)
def test_assignments_are_toml_or_bare_words(text: str, expected: tuple) -> None:
    assert parse_assignment(text) == expected


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("training.stpes", 5, "no setting training.stpes; did you mean training.steps"),
        ("lr", 5, "did you mean training.lr"),
        ("model.width", 5, "no setting model.width"),
        ("training.steps", "many", "training.steps is 'many'; expected a whole number"),
        ("training.steps", 1.5, "expected a whole number"),
        ("training.steps", True, "expected a whole number"),
        ("training.lr", "fast", "expected a number"),
        ("training.betas", [0.9], "expected a list of 2 numbers"),
        ("model.cell", "rnn", "expected one of lstm, gru"),
        ("codec.allow_constant", 1, "expected true or false"),
        ("training", 3, "table of settings"),
        ("training.batch", 0, "expected at least 1"),
        ("training.ema", 1.0, "training.ema is 1.0"),
        ("sampling.steps", 2000, "at most diffusion.steps"),
        ("diffusion.lambda", -1, "cannot be negative"),
    ],
)
def test_mistakes_name_what_was_meant(path: str, value: object, said: str) -> None:
    with pytest.raises(TimeDiffError, match=said):
        resolve("paper", assignments={path: value})


def test_unset_is_none() -> None:
    assert resolve("paper-eicu", assignments={"model.hidden": "unset"}).model.hidden is None


def test_an_unknown_preset_lists_the_known() -> None:
    with pytest.raises(TimeDiffError, match="paper-eicu"):
        resolve("papr")


@pytest.mark.parametrize(("content", "said"), [(None, "could not be read"), ("[training", "not valid TOML")])
def test_files_that_cannot_be_read(content: str | None, said: str, tmp_path) -> None:
    if content is not None:
        (tmp_path / "mine.toml").write_text(content)
    with pytest.raises(TimeDiffError, match=said):
        resolve("paper", tmp_path / "mine.toml")


@pytest.mark.parametrize("mistakes", [["training.steps=-1"], ["training.steps=-1", "training.lr=-1"]])
def test_mistakes_come_whole_from_another_process(mistakes: list[str]) -> None:
    with pytest.raises(Problems) as found:
        resolve("fast", assignments=dict(map(parse_assignment, mistakes)))
    sent = pickle.loads(pickle.dumps(found.value))
    assert (str(sent), sent.problems) == (str(found.value), found.value.problems)
