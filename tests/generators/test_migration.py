"""Run folders of 0.1.0: sampled from as before, and not continued."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file
from torch import Tensor

from conftest import same
from helpers.small_generators import SHORT
from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.generators.registry import GENERATORS, load
from timediff.generators.run import _sealed
from timediff.runtime.files import sha256
from timediff.settings import toml
from timediff.settings.resolve import resolve

# Of 0.2.0 and before: what the settings of today leave open.
BEFORE = {"training.ema_every": 1, "diffusion.class_input": "one-hot"}
NEW_SETTINGS = {
    "training": ["optimizer", "ema_every"], "adversarial": ["optimizer", "generator_rounds"],
    "model": ["predicts", "carry", "dequantisation", "feedback"], "diffusion": ["separate", "class_input"],
    "codec": ["recording"],
}  # fmt: skip
OLD_PARTS = {"denoiser": "rnn", "step_head": "cells", "static_head": "stay"}  # of the cascade


def written_by_0_1_0(run: Path) -> None:
    """Rewrites a run folder as that version would have written it."""
    provenance = json.loads((run / "provenance.json").read_text())
    settings = tomllib.loads((run / "settings.toml").read_text())
    files = [run / "weights.safetensors"]
    tensors = {file: load_file(file) for file in files}
    if provenance["generator"] == "timediff":
        cascade = settings["diffusion"]["process"] == "cascade"
        tensors = {file: _old_weights(content, cascade) for file, content in tensors.items()}
        _old_timediff(settings, cascade)
    elif "adversarial" in settings:
        settings["adversarial"]["smooth"] = settings["adversarial"].pop("gradient_penalty")
    for table, names in NEW_SETTINGS.items():
        for name in names:
            settings.get(table, {}).pop(name, None)
    called_timegan(provenance)
    (run / "settings.toml").write_text(toml.dumps(settings))
    for file, content in tensors.items():
        save_file(content, file)
    provenance |= {"format": 1, "version": "0.1.0", "weights_sha256": sha256(run / "weights.safetensors")}
    (run / "provenance.json").write_text(json.dumps(provenance))


def called_timegan(provenance: dict[str, Any]) -> None:
    """As up to format 3."""
    if provenance["generator"] == "latent-forcing":
        provenance["generator"] = "timegan"


def _old_timediff(settings: dict[str, Any], cascade: bool) -> None:
    """One table for both processes; the paper's width was not written down."""
    model, diffusion = settings["model"], settings["diffusion"]
    del model["network"]
    model["early"] = model.pop("noise_level_input")
    if cascade:
        cells = "joint" if diffusion.pop("joint") else "independent"
        diffusion |= {"process": "edm", "steps": 1000, "schedule": "cosine", "cells": cells}
    else:
        diffusion["cells"] = "joint"
        del model["hidden"]


def _old_weights(weights: dict[str, Tensor], cascade: bool) -> dict[str, Tensor]:
    if not cascade:
        return {name.removeprefix("denoiser."): value for name, value in weights.items()}
    renamed = {}
    for name, value in weights.items():
        part, _, rest = name.partition(".")
        renamed[f"{OLD_PARTS[part]}.{rest}"] = value
    return renamed


TIMEDIFF = {"training.steps": 6, "training.batch": 16}
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "paper": ("paper", {**TIMEDIFF, **BEFORE, "diffusion.steps": 20}),
    "cascade, joint": ("fast", {**SHORT, "sampling.steps": 9}),
    "cascade, independent": ("fast", {**SHORT, "sampling.steps": 9, "diffusion.joint": False}),
    "latent-forcing": ("latent-forcing", {**SHORT, "adversarial.gradient_penalty": 0.25}),
    "tforcing": ("tforcing", SHORT),
}


@pytest.mark.parametrize("kind", RUNS)
def test_a_run_of_0_1_0_gives_the_same_stays(kind: str, mixed: Cohort, tmp_path: Path) -> None:
    preset, changes = RUNS[kind]
    settings = resolve(preset, assignments=changes)
    name = preset if preset in GENERATORS else "timediff"
    fitted: Any = GENERATORS(name)(settings=settings).fit(mixed, seed=0, run=tmp_path / "run")
    written_by_0_1_0(tmp_path / "run")
    said: list[str] = []
    old: Any = load(tmp_path / "run", said.append)
    assert "cannot be checked" in said[0]
    assert [line.partition(" is of ")[2] for line in said[1:]] == (
        ["the generator that was called timegan: it is called latent-forcing now"] if name == "latent-forcing" else []
    )
    assert old.settings == fitted.settings
    assert old.identity == fitted.identity
    assert same(old.sample(30, seed=1), fitted.sample(30, seed=1))


def test_what_is_rewritten_is_what_0_1_0_wrote(mixed: Cohort, tmp_path: Path) -> None:
    """Its tables of a fit with the preset fast, and the first part of each of its tensors' names."""
    settings = resolve("fast", assignments=SHORT)
    GENERATORS("timediff")(settings=settings).fit(mixed, seed=0, run=tmp_path / "run")
    written_by_0_1_0(tmp_path / "run")
    table = tomllib.loads((tmp_path / "run" / "settings.toml").read_text())
    assert table["model"] == {"cell": "lstm", "hidden": 8, "layers": 2, "dropout": 0.1, "early": True}
    assert table["diffusion"] == {
        "process": "edm", "steps": 1000, "schedule": "cosine", "discrete": "absorbing", "cells": "joint", "lambda": 1.0,
    }  # fmt: skip
    assert {name.split(".")[0] for name in load_file(tmp_path / "run" / "weights.safetensors")} == {
        "rnn", "cells", "stay",
    }  # fmt: skip


def test_an_unfinished_run_of_0_1_0_is_sampled_from(mixed: Cohort, tmp_path: Path) -> None:
    """From the average in its newest checkpoint, whose names are old too."""
    run = tmp_path / "run"

    def stop(done: int, total: int, **values: float) -> None:
        if done == 4:
            raise KeyboardInterrupt

    settings = resolve("fast", assignments={**SHORT, "sampling.steps": 9})
    with pytest.raises(KeyboardInterrupt):
        GENERATORS("timediff")(settings=settings).fit(mixed, seed=0, run=run, progress=stop)
    expected = load(run).sample(20, seed=1)
    checkpoint = run / "checkpoints" / "step-000000003"
    save_file(_old_weights(load_file(checkpoint / "ema.safetensors"), cascade=True), checkpoint / "ema.safetensors")
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    manifest["sha256"]["ema"] = sha256(checkpoint / "ema.safetensors")
    (checkpoint / "manifest.json").write_text(json.dumps(manifest))
    table = tomllib.loads((run / "settings.toml").read_text())
    _old_timediff(table, cascade=True)
    (run / "settings.toml").write_text(toml.dumps(table))
    provenance = json.loads((run / "provenance.json").read_text())
    (run / "provenance.json").write_text(json.dumps({**provenance, "format": 1}))
    said: list[str] = []
    assert same(load(run, said.append).sample(20, seed=1), expected)
    assert "cannot be checked" in said[0]
    assert said[1:] == ["this run stopped at update 3 of 6"]


@pytest.mark.parametrize("kind", ["paper", "cascade, joint", "latent-forcing"])
def test_resuming_a_run_of_0_1_0_is_refused_in_one_sentence(kind: str, mixed: Cohort, tmp_path: Path) -> None:
    preset, changes = RUNS[kind]
    settings = resolve(preset, assignments={**changes, "training.steps": 1})
    model = GENERATORS(preset if preset in GENERATORS else "timediff")
    model(settings=settings).fit(mixed, seed=0, run=tmp_path / "run")
    written_by_0_1_0(tmp_path / "run")
    with pytest.raises(TimeDiffError, match=r"was begun by TimeDiff 0\.1\.0, .* fit again\.$") as caught:
        model(settings=settings).fit(mixed, seed=0, run=tmp_path / "run", resume=True)
    assert "\n" not in str(caught.value)


def test_a_run_without_settings_of_today_goes_on_as_it_was_begun(mixed: Cohort, tmp_path: Path) -> None:
    """Its average changed after every update, and its network saw one-hot classes."""
    run = tmp_path / "run"
    settings = resolve("paper", assignments={**SHORT, **BEFORE, "diffusion.steps": 20})
    whole = GENERATORS("timediff")(settings=settings).fit(mixed, seed=0)

    def stop(done: int, total: int, **values: float) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        GENERATORS("timediff")(settings=settings).fit(mixed, seed=0, run=run, progress=stop)
    lines = (run / "settings.toml").read_text().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(("ema_every", "class_input"))]
    assert len(kept) == len(lines) - 2
    (run / "settings.toml").write_text("".join(kept))
    provenance = json.loads((run / "provenance.json").read_text())
    provenance["files"]["settings.toml"] = sha256(run / "settings.toml")
    (run / "provenance.json").write_text(_sealed(provenance))
    assert load(run, lambda said: None).settings == whole.settings
    GENERATORS("timediff")(settings=settings).fit(mixed, seed=0, run=run, resume=True)
    assert same(load(run).sample(20, seed=1), whole.sample(20, seed=1))


def of_format_3(run: Path) -> None:
    """Rewrites a run of latent-forcing as it was written while that was called timegan."""
    provenance = json.loads((run / "provenance.json").read_text())
    called_timegan(provenance)
    (run / "provenance.json").write_text(_sealed({**provenance, "format": 3}))


def test_a_run_of_what_was_called_timegan_is_loaded_sampled_and_resumed(mixed: Cohort, tmp_path: Path) -> None:
    run, settings = tmp_path / "run", resolve("latent-forcing", assignments=SHORT)

    def stop(done: int, total: int, **values: float) -> None:
        if done == 4:
            raise KeyboardInterrupt

    whole = GENERATORS("latent-forcing")(settings=settings).fit(mixed, seed=0)
    with pytest.raises(KeyboardInterrupt):
        GENERATORS("latent-forcing")(settings=settings).fit(mixed, seed=0, run=run, progress=stop)
    of_format_3(run)
    said: list[str] = []
    assert load(run, said.append).name == "latent-forcing"
    assert "was called timegan: it is called latent-forcing now" in said[0]
    other = GENERATORS("timegan")(settings=resolve("timegan", assignments=SHORT))
    with pytest.raises(TimeDiffError, match="is a run of latent-forcing, not of timegan: resume it as what it is"):
        other.fit(mixed, seed=0, run=run, resume=True)
    resumed = GENERATORS("latent-forcing")(settings=settings).fit(mixed, seed=0, run=run, resume=True)
    assert resumed.identity == whole.identity
    assert same(load(run).sample(20, seed=1), whole.sample(20, seed=1))


def test_a_run_of_timegan_as_published_is_one(mixed: Cohort, tmp_path: Path) -> None:
    settings = resolve("timegan", assignments=SHORT)
    GENERATORS("timegan")(settings=settings).fit(mixed, seed=0, run=tmp_path / "run")
    assert load(tmp_path / "run", pytest.fail).name == "timegan"
