"""The run folder: no training stay is in it, and damage is named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file

from helpers.small_generators import PAPER
from helpers.small_runs import equal
from timediff.data.codec import Codec
from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.generators.base import Generator
from timediff.generators.registry import load
from timediff.generators.run import FORMAT
from timediff.generators.timediff.generator import TimeDiff
from timediff.settings.training import CodecSettings


def test_a_run_folder_holds_no_training_stay(mixed: Cohort, tmp_path: Path) -> None:
    """Tensors are those of network and optimizer and no others, and no stay is found in any file, in any form."""
    run = tmp_path / "run"
    model = TimeDiff(settings=PAPER).fit(mixed, seed=0, run=run)
    network = {name: value.shape for name, value in model.fitted.network.state_dict().items()}
    moments = {
        f"{number}.{key}": shape if key != "step" else ()
        for number, shape in enumerate(network.values())
        for key in ("exp_avg", "exp_avg_sq", "step")
    }
    files = list(run.rglob("*.safetensors"))
    assert len(files) == 1 + 2 * 3
    for file in files:
        shapes = {name: tuple(value.shape) for name, value in load_file(file).items()}
        assert shapes == (moments if file.stem == "optimizer" else {k: tuple(v) for k, v in network.items()})
    encoded = Codec.fit(mixed).encode(mixed).continuous.numpy()
    values = mixed.series["lactate"]
    kept = {np.nanmin(values), np.nanmax(values)}
    content = b"".join(path.read_bytes() for path in run.rglob("*") if path.is_file())
    for stay in encoded:
        assert stay[0].tobytes() not in content
    for value in values[~np.isnan(values)]:
        if value not in kept:
            assert np.float64(value).tobytes() not in content
            assert repr(float(value)).encode() not in content
    assert sorted(p.name for p in run.iterdir()) == [
        "checkpoints", "codec.json", "log.jsonl", "provenance.json", "schema.toml", "settings.toml", "tensorboard",
        "weights.safetensors",
    ]  # fmt: skip
    assert "patient" not in (run / "schema.toml").read_text()


def test_with_bounds_the_codec_keeps_no_extreme(icu: Cohort) -> None:
    codec = Codec.fit(icu, CodecSettings(scale="bounds"))
    for feature in codec.schema.features:
        if not feature.discrete:
            assert (codec.statistics[feature.name].low, codec.statistics[feature.name].high) == feature.bounds


@pytest.fixture
def run(model: Generator, tmp_path: Path) -> Path:
    model.save(tmp_path / "run")
    return tmp_path / "run"


def _provenance(run: Path, **changes: object) -> None:
    table = json.loads((run / "provenance.json").read_text())
    (run / "provenance.json").write_text(json.dumps({**table, **changes}))


def _bit(run: Path) -> None:
    content = bytearray((run / "weights.safetensors").read_bytes())
    content[-9] ^= 4
    (run / "weights.safetensors").write_bytes(bytes(content))


DAMAGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "newer": (
        lambda run: _provenance(run, format=FORMAT + 1, version="9.0"),
        f"TimeDiff 9.0 in run format {FORMAT + 1}.*install a newer",
    ),
    "no provenance": (lambda run: (run / "provenance.json").unlink(), "not a run folder"),
    "broken provenance": (lambda run: (run / "provenance.json").write_text("{"), "damaged"),
    "one bit": (_bit, "damaged.*not what was written"),
    "no weights": (lambda run: (run / "weights.safetensors").unlink(), "damaged"),
    "no codec": (lambda run: (run / "codec.json").unlink(), "damaged"),
    "broken codec": (lambda run: (run / "codec.json").write_text("{}"), "damaged"),
    "broken settings": (lambda run: (run / "settings.toml").write_text("[training]\nspeed = 3"), "damaged.*speed"),
    "broken schema": (lambda run: (run / "schema.toml").write_text("format = 1"), "damaged"),
    "other size": (lambda run: (run / "settings.toml").write_text("[model]\nhidden = 9"), "do not fit"),
    "unknown generator": (lambda run: _provenance(run, generator="other"), "no generator 'other'"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_newer_run_says_so(damage: str, run: Path) -> None:
    change, said = DAMAGES[damage]
    change(run)
    with pytest.raises(TimeDiffError, match=said):
        load(run)


def test_an_unfinished_run_is_sampled_from_the_average_of_its_newest_checkpoint(mixed: Cohort, tmp_path: Path) -> None:
    def stop(done: int, total: int, **values: float) -> None:
        if done == 4:
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        TimeDiff(settings=PAPER).fit(mixed, seed=0, run=tmp_path / "run", progress=stop)
    said: list[str] = []
    model: Any = load(tmp_path / "run", say=said.append)
    assert len(model.sample(5)) == 5
    assert said == ["this run stopped at update 3 of 6"]
    average = load_file(tmp_path / "run" / "checkpoints" / "step-000000003" / "ema.safetensors")
    assert equal(model.fitted.network.state_dict(), average)
