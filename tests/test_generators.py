"""Every generator there is: trained, saved, reloaded, sampled, on a cohort with every kind of feature."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from conftest import same
from timediff.codec import Codec
from timediff.cohort import Cohort, read_cohort
from timediff.config import CodecSettings, SamplingSettings, resolve
from timediff.errors import TimeDiffError
from timediff.generators.base import Generator
from timediff.generators.learnt import compute_batch
from timediff.generators.registry import GENERATORS, generator, load
from timediff.generators.streaming import sample_to
from timediff.randomness import BLOCK

SMALL = resolve(
    "paper",
    assignments={
        "model.hidden": 8,
        "training.steps": 6,
        "training.batch": 16,
        "training.checkpoint_every": 3,
        "diffusion.steps": 20,
    },
)


SHORT = {"model.hidden": 8, "training.steps": 6, "training.batch": 16, "training.checkpoint_every": 3}
RIVALS = {name: resolve(entry.preset, assignments=SHORT) for name, entry in GENERATORS.items() if name != "timediff"}
FAST = resolve("fast", assignments={"model.hidden": 8, "training.steps": 6, "training.batch": 16, "sampling.steps": 20})
SAMPLERS = {"ddpm": ("ancestral", "ddim"), "edm": ("multistep", "euler")}


@pytest.fixture(
    scope="module", params=[("timediff", SMALL), ("timediff", FAST), *RIVALS.items()], ids=["paper", "fast", *RIVALS]
)
def model(request: pytest.FixtureRequest, mixed: Cohort) -> Generator:
    name, settings = request.param
    fitted: Generator = generator(name)(settings=settings).fit(mixed, seed=0)
    return fitted


def test_saved_and_loaded_it_gives_the_same_stays(model: Generator, tmp_path: Path) -> None:
    model.save(tmp_path / "run")
    assert same(load(tmp_path / "run").sample(30, seed=1), model.sample(30, seed=1))


def test_what_it_gives_is_a_valid_cohort(model: Generator, mixed: Cohort, tmp_path: Path) -> None:
    made = model.sample(30, seed=1)
    made.write(tmp_path / "made")
    assert same(read_cohort(tmp_path / "made"), made)
    assert made.schema == mixed.schema.generated()
    assert len(made) == 30


def test_any_length_of_series(model: Generator) -> None:
    made = model.sample(5, seed=1, length=11)
    assert made.schema.steps == 11
    assert made.series["pulse"].shape == (5, 11)


def test_streamed_to_disk_it_is_the_same(model: Generator, tmp_path: Path) -> None:
    sample_to(model, tmp_path / "made", 1100, seed=1)
    assert same(read_cohort(tmp_path / "made"), model.sample(1100, seed=1))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["made"]


def test_a_stopped_sampling_is_resumed(model: Generator, tmp_path: Path) -> None:
    whole = model.sample(1600, seed=1, batch=500)
    parts = tmp_path / ".made.parts"
    calls: list[int] = []

    def interrupt(done: int, total: int, **values: float) -> None:
        if done > total / 2:  # in the third of four blocks of 500
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample_to(model, tmp_path / "made", 1600, seed=1, batch=500, progress=interrupt)
    assert not (tmp_path / "made").exists()
    with pytest.raises(TimeDiffError, match="add --resume"):
        sample_to(model, tmp_path / "made", 1600, seed=1)
    with pytest.raises(TimeDiffError, match="belongs to another sampling"):
        sample_to(model, tmp_path / "made", 1600, seed=2, batch=500, resume=True)

    def count(done: int, total: int, **values: float) -> None:
        calls.append(total)

    assert len(list(parts.glob("*.parquet"))) == 4
    (parts / "static-000000000500.parquet").write_bytes(b"")  # a power cut: the second part is damaged
    sample_to(model, tmp_path / "made", 1600, seed=1, batch=500, resume=True, progress=count)
    assert calls == [len(calls)] * len(calls)
    assert len(calls) == (60 if model.name == "timediff" else 3)
    assert same(read_cohort(tmp_path / "made"), whole)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["made"]


def test_a_compute_batch_is_any_number_of_blocks(model: Generator) -> None:
    assert alike(*(model.sample(1500, seed=1, batch=batch) for batch in (500, 1500)))


@given(st.integers(1, 10**6), st.integers(1, 2000), st.sampled_from(["tf32", "float16"]), st.integers(8, 150))
def test_a_gpu_draws_as_many_whole_blocks_as_it_has_room_for(
    n: int, length: int, precision: Any, gigabytes: int
) -> None:
    gpu = SimpleNamespace(multi_processor_count=132, total_memory=gigabytes * 10**9)
    with patch("torch.cuda.get_device_properties", return_value=gpu):
        batch = compute_batch(n, length, SamplingSettings(precision=precision), torch.device("cuda"))
    most = min(64 * 132, gpu.total_memory // (24_000 * length)) if precision == "float16" else 500_000 // length
    assert batch % BLOCK == 0
    assert BLOCK <= batch <= max(BLOCK, most)
    batches = -(-n // batch)
    assert batches == 1 or batches <= -(-n // (max(BLOCK, most) // BLOCK * BLOCK))  # and no more of them than needed


def alike(a: Cohort, b: Cohort) -> bool:
    """Equal to rounding, but for one stay in a thousand, in which a class lay on the very edge of its probability."""
    different = np.zeros(len(a), dtype=bool)
    for name, values in a.series.items():
        different |= ~np.isclose(values, b.series[name], rtol=1e-4, equal_nan=True).all(axis=1)
    return bool(np.array_equal(a.stay_id, b.stay_id) and different.mean() <= 0.001)


def test_samplers_are_options(model: Generator) -> None:
    if model.name != "timediff":
        pytest.skip("it has one way to draw")
    digests = set()
    for sampler in SAMPLERS[model.settings.diffusion.process]:
        for steps in (9, 12, 20):
            calls: list[int] = []

            def count(done: int, total: int, calls: list[int] = calls, **values: float) -> None:
                calls.append(total)

            digests.add(model.sample(7, seed=0, sampler=sampler, steps=steps, progress=count).digest())
            assert calls == [steps] * steps
    assert len(digests) == 6


def test_no_stays_are_no_parts(model: Generator) -> None:
    assert list(model.stream(0, seed=0)) == []


def test_parts_begin_with_a_block(model: Generator) -> None:
    whole, rest = model.sample(700, seed=0), list(model.stream(700, seed=0, skip=500))
    assert alike(rest[0], whole.take(np.arange(500, 700)))
    with pytest.raises(ValueError, match="multiple"):
        model.stream(700, skip=250)


def test_what_is_loaded_samples_as_what_was_fitted_in_any_precision(mixed: Cohort, tmp_path: Path) -> None:
    settings = replace(SMALL, training=replace(SMALL.training, precision="bfloat16"))
    fitted = generator("timediff")(settings=settings).fit(mixed, seed=0, run=tmp_path / "run")
    assert load(tmp_path / "run").identity == fitted.identity
    assert same(load(tmp_path / "run").sample(20, seed=1), fitted.sample(20, seed=1))


MISTAKES: dict[str, list[tuple[dict, str]]] = {
    "ddpm": [
        ({"sampler": "dpm"}, "one of ancestral, ddim"),
        ({"sampler": "euler"}, "'ddpm' has ancestral and ddim"),
        ({"steps": 21}, "at most diffusion.steps"),
        ({"speed": 9}, "timediff is not sampled with speed: what can be chosen is sampler, steps"),
    ],
    "none": [
        ({"steps": 5}, "is not sampled with steps: what can be chosen is precision, batch"),
        ({"batch": 0}, "expected at least 1"),
    ],
    "edm": [({"sampler": "ddim"}, "'edm' has multistep and euler"), ({"steps": 0}, "expected at least 1")],
}


def test_mistaken_options_are_named(model: Generator) -> None:
    process = model.settings.diffusion.process if model.name == "timediff" else "none"
    for options, said in MISTAKES[process]:
        with pytest.raises(TimeDiffError, match=said):
            model.sample(5, seed=0, **options)


def test_before_fitting_there_is_nothing_to_sample() -> None:
    with pytest.raises(TimeDiffError, match="call fit first"):
        generator("timediff")(settings=SMALL).sample(5)


def test_an_unknown_generator_lists_the_known() -> None:
    with pytest.raises(TimeDiffError, match="timediff"):
        generator("timegan2")


def test_a_run_folder_holds_no_training_stay(mixed: Cohort, tmp_path: Path) -> None:
    """Tensors are those of network and optimiser and no others, and no stay is found in any file, in any form."""
    run = tmp_path / "run"
    model = generator("timediff")(settings=SMALL).fit(mixed, seed=0, run=run)
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
    encoded = Codec.fit(mixed).encode(mixed).continuous
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


def test_bounds_that_are_missing_are_asked_for(mixed: Cohort) -> None:
    with pytest.raises(TimeDiffError, match="'lactate' has none") as caught:
        Codec.fit(mixed, CodecSettings(scale="bounds"))
    assert "'pulse'" not in str(caught.value)


@pytest.fixture
def run(model: Generator, tmp_path: Path) -> Path:
    model.save(tmp_path / "run")
    return tmp_path / "run"


def test_seconds_are_those_of_all_parts_of_a_run_that_was_stopped(
    mixed: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that goes on ten seconds with every update."""
    now = [0.0]
    monkeypatch.setattr("timediff.generators.learnt.time.monotonic", lambda: now[0])

    def seconds() -> float:
        return float(json.loads((tmp_path / "run" / "provenance.json").read_text())["seconds"])

    def fit(until: int, **options: bool) -> None:
        def watch(done: int, total: int, **values: float) -> None:
            now[0] += 10
            if done == until:
                raise KeyboardInterrupt

        generator("timediff")(settings=SMALL).fit(mixed, seed=0, run=tmp_path / "run", progress=watch, **options)

    with pytest.raises(KeyboardInterrupt):
        fit(until=4)
    assert seconds() == 40
    fit(until=99, resume=True)
    assert seconds() == 70  # three updates again, from the checkpoint after the third


def _provenance(run: Path, **changes: object) -> None:
    table = json.loads((run / "provenance.json").read_text())
    (run / "provenance.json").write_text(json.dumps({**table, **changes}))


def _bit(run: Path) -> None:
    content = bytearray((run / "weights.safetensors").read_bytes())
    content[-9] ^= 4
    (run / "weights.safetensors").write_bytes(bytes(content))


DAMAGES = {
    "newer": (lambda run: _provenance(run, format=2, version="9.0"), "TimeDiff 9.0 in run format 2.*install a newer"),
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


def test_an_unfinished_run_is_sampled_from_its_newest_checkpoint(mixed: Cohort, tmp_path: Path) -> None:
    def stop(done: int, total: int, **values: float) -> None:
        if done == 4:
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        generator("timediff")(settings=SMALL).fit(mixed, seed=0, run=tmp_path / "run", progress=stop)
    said: list[str] = []
    assert len(load(tmp_path / "run", say=said.append).sample(5)) == 5
    assert said == ["this run stopped at update 3 of 6"]
