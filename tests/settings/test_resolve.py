"""Settings: what is written is what is read, and a mistake names what was meant."""

import pickle
import tomllib

import pytest

from timediff.data.batch import Layout
from timediff.errors import Problems, TimeDiffError
from timediff.generators.timediff.settings import TimeDiffSettings
from timediff.settings.resolve import parse_assignment, presets, resolve
from timediff.settings.training import TrainingSettings


def test_paper_is_the_default_of_every_setting() -> None:
    assert resolve("paper") == TimeDiffSettings()


def test_paper_is_as_published() -> None:
    settings = resolve("paper")
    assert (settings.diffusion.steps, settings.diffusion.schedule, settings.diffusion.lambda_) == (1000, "cosine", 0.01)
    assert (settings.model.cell, settings.model.layers, settings.model.hidden) == ("lstm", 2, None)
    training = settings.training
    assert (training.lr, training.betas, training.batch, training.accumulate) == (8e-5, (0.9, 0.99), 32, 2)
    assert (training.clip, training.ema, training.seed) == (1, 0.995, 2023)
    assert (settings.sampling.sampler, settings.sampling.steps) == ("ancestral", None)


def test_paper_is_as_the_authors_ran_it_where_the_paper_does_not_say() -> None:
    settings = resolve("paper")
    assert (settings.training.steps, settings.training.ema_every) == (700_000, 10)
    assert settings.diffusion.class_input == "log one-hot"


def test_what_is_the_papers_alone_is_no_default_of_other_generators() -> None:
    assert (TrainingSettings().steps, TrainingSettings().ema_every) == (200_000, 1)
    assert {name for name in presets() if resolve(name).training.ema_every != 1} == {
        "paper", "paper-eicu", "paper-timegan",
    }  # fmt: skip


def test_wide_presets() -> None:
    for name in ("paper-eicu", "paper-timegan"):
        assert resolve(name).differences(resolve("paper")) == {"model.hidden": (256, None)}


@pytest.mark.parametrize("name", presets())
def test_text_round_trip(name: str) -> None:
    settings = resolve(name)
    assert type(settings)().updated(tomllib.loads(settings.to_toml())) == settings
    assert ("lambda =" in settings.to_toml()) == isinstance(settings, TimeDiffSettings)


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
        ("training.steps", 10**12 + 1, "training.steps is 1000000000001; expected at most 1,000,000,000,000"),
        pytest.param(
            "training.steps",
            10**5000,
            "training.steps is a whole number of too many digits; expected at most",
            id="digits",
        ),
        ("training.seed", -1, "training.seed is -1; expected 0 to 9,223,372,036,854,775,807"),
        ("training.seed", 2**63, "training.seed is 9223372036854775808; expected 0 to"),
        ("training.warmup", -1, "training.warmup is -1; expected 0 to"),
        ("model.hidden", 2**16 + 1, "model.hidden is 65537; expected at most 65,536"),
        ("model.layers", 65, "model.layers is 65; expected at most 64"),
        ("diffusion.steps", 10**6 + 1, "diffusion.steps is 1000001; expected at most 1,000,000"),
        ("sampling.steps", 10**30, "sampling.steps is 10+; expected at most 1,000,000"),
        pytest.param("training.lr", "x" * 100_000, "training.lr is 'xxx.{,100}…; expected a number", id="long text"),
        pytest.param("x" * 100_000, 1, "there is no setting xxx.{,100}…; the settings are", id="long name"),
        ("training.ema", 1.0, "training.ema is 1.0"),
        ("sampling.steps", 2000, "at most diffusion.steps"),
        ("diffusion.lambda", -1, "cannot be negative"),
        ("model.network", "brn", "there is no network 'brn'; did you mean brnn"),
        ("diffusion.process", "dppm", "there is no diffusion process 'dppm'; did you mean ddpm"),
        ("sampling.sampler", "heun", "sampling.sampler is 'heun'; diffusion.process = 'ddpm' has ancestral, ddim"),
        ("codec.scale", "quantile", "goes with training or bounds"),
        ("diffusion.joint", True, "no setting diffusion.joint"),
        ("model.early", True, "model.early is model.noise_level_input now"),
        ("diffusion.cells", "joint", "diffusion.cells is diffusion.joint now"),
    ],
)
def test_mistakes_name_what_was_meant(path: str, value: object, said: str) -> None:
    with pytest.raises(TimeDiffError, match=said):
        resolve("paper", assignments={path: value})


@pytest.mark.parametrize("value", [str(2**63), "9" * 5000])
def test_a_number_beyond_all_limits_is_no_word(value: str) -> None:
    with pytest.raises(TimeDiffError, match=r"--set training\.seed .*(64 bits|digits)"):
        parse_assignment(f"training.seed={value}")


@pytest.mark.parametrize("name", ["timegan", "rcgan", "tforcing", "latent-forcing", "ehrmgan", "gtgan", "cspd-ou"])
def test_sizes_of_baselines_are_limited_too(name: str) -> None:
    with pytest.raises(Problems) as found:
        resolve(name, assignments={"model.hidden": 2**17, "model.layers": 10**9})
    assert {problem.partition(" ")[0] for problem in found.value.problems} == {"model.hidden", "model.layers"}


def test_unset_is_none() -> None:
    assert resolve("paper-eicu", assignments={"model.hidden": "unset"}).model.hidden is None


def test_an_unknown_preset_lists_the_known() -> None:
    with pytest.raises(TimeDiffError, match="paper-eicu"):
        resolve("papr")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "could not be read"),
        ("[training", "not valid TOML"),
        ("a = " + "[" * 100_000, "nested more than"),
        ("a = " + "9" * 5000, "not valid TOML"),
        (f"[training]\nseed = {2**64}", "more than 64 bits"),
    ],
)
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


def test_a_process_has_its_own_settings_and_begins_with_its_own_defaults() -> None:
    settings = resolve("fast")
    assert (settings.diffusion.process, settings.diffusion.joint) == ("cascade", True)
    changes = {"diffusion.process": "ddpm", "sampling.sampler": "ddim"}
    changes |= {"codec.scale": "training", "codec.recording": False}
    other = resolve("fast", assignments=changes)
    assert other.diffusion == TimeDiffSettings().diffusion
    with pytest.raises(TimeDiffError, match=r"no setting diffusion\.schedule"):
        resolve("fast", assignments={"diffusion.schedule": "linear"})


def test_the_cascade_is_found_by_its_earlier_name_too() -> None:
    assert resolve("fast", assignments={"diffusion.process": "edm"}) == resolve("fast")


def test_all_that_does_not_go_together_is_said_at_once() -> None:
    with pytest.raises(Problems) as found:
        resolve("paper", assignments={"diffusion.process": "cascade"})
    assert {problem.partition(" ")[0] for problem in found.value.problems} == {"sampling.sampler", "codec.scale"}


@pytest.mark.parametrize("name", presets())
def test_settings_that_a_cohort_decides_are_numbers_afterwards(name: str) -> None:
    settings = resolve(name).for_cohort(400, Layout.of(3, (2, 4)))
    text = settings.to_toml()
    assert settings.training.batch
    assert settings.training.lr
    assert settings.model.hidden
    assert 'hidden = "unset"' not in text
    assert settings.for_cohort(9, Layout.of(1, ())) == settings
