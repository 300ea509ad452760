"""The run folder: no training stay is in it, and damage is named."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from helpers.small_generators import PAPER
from helpers.small_runs import equal
from timediff.data.codec import Codec
from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.generators.registry import load
from timediff.generators.run import FORMAT, Run, _sealed
from timediff.generators.timediff.generator import TimeDiff
from timediff.runtime.files import sha256
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


def _provenance(run: Path, **changes: object) -> None:
    """Rewrites provenance.json with a hash that fits."""
    table = json.loads((run / "provenance.json").read_text())
    (run / "provenance.json").write_text(_sealed({**table, **changes}))


def _as_it_is(run: Path) -> None:
    """Makes the hashes fit what lies there now."""
    table = json.loads((run / "provenance.json").read_text())
    files = {name: sha256(run / name) for name in table["files"] if (run / name).exists()}
    _provenance(run, files=files, weights_sha256=sha256(run / "weights.safetensors"))


def _bit(run: Path) -> None:
    content = bytearray((run / "weights.safetensors").read_bytes())
    content[-9] ^= 4
    (run / "weights.safetensors").write_bytes(bytes(content))


def _codec(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes what codec.json says of the pulse, or of the whole."""
    table = json.loads((run / "codec.json").read_text())
    change(table)
    (run / "codec.json").write_text(json.dumps(table))


def _pulse(**changes: object) -> Callable[[Path], None]:
    return lambda run: _codec(run, lambda table: table["statistics"]["pulse"].update(changes))


def _settings(text: str) -> Callable[[Path], object]:
    return lambda run: (run / "settings.toml").write_text(text)


def _weights(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def rewrite(run: Path) -> None:
        weights = load_file(run / "weights.safetensors")
        change(weights)
        save_file(weights, run / "weights.safetensors")

    return rewrite


def _header(lie: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """Weights whose header says other things of them than are true."""

    def rewrite(run: Path) -> None:
        content = (run / "weights.safetensors").read_bytes()
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])
        lie(header)
        text = json.dumps(header).encode()
        (run / "weights.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + content[8 + size :])

    return rewrite


def _first(header: dict[str, Any]) -> dict[str, Any]:
    return next(entry for name, entry in header.items() if name != "__metadata__")  # type: ignore[no-any-return]


SAID: dict[str, tuple[Callable[[Path], Any], str]] = {
    "newer": (
        lambda run: _provenance(run, format=FORMAT + 1, version="9.0"),
        f"TimeDiff 9.0 in run format {FORMAT + 1}.*install a newer",
    ),
    "no provenance": (lambda run: (run / "provenance.json").unlink(), "not a run folder"),
    "broken provenance": (lambda run: (run / "provenance.json").write_text("{"), "damaged"),
    "a list": (lambda run: (run / "provenance.json").write_text("[]"), "damaged"),
    "deep": (lambda run: (run / "provenance.json").write_text("[" * 100_000), "nested more than"),
    "digits": (lambda run: (run / "provenance.json").write_text('{"format": ' + "9" * 5000 + "}"), "damaged"),
    "seed as text": (lambda run: _provenance(run, seed="0"), "damaged.*seed is not a whole number"),
    "negative stays": (lambda run: _provenance(run, stays=-1), "damaged.*cannot be"),
    "unknown generator": (
        lambda run: _provenance(run, generator="other"),
        "no generator 'other' here. Install the package",
    ),
}


@pytest.mark.parametrize("damage", SAID)
@pytest.mark.parametrize("allow_edited", [False, True])
def test_what_is_no_run_says_so(damage: str, allow_edited: bool, small_run: Path) -> None:
    change, said = SAID[damage]
    change(small_run)
    with pytest.raises(TimeDiffError, match=said) as caught:
        load(small_run, allow_edited=allow_edited)
    assert "\n" not in str(caught.value)


# What is edited, which files are named, and what is said of the edit itself; None = it can be gone on with.
EDITS: dict[str, tuple[Callable[[Path], Any], str, str | None]] = {
    "one bit": (_bit, "changed: 'weights.safetensors'", None),
    "no weights": (lambda run: (run / "weights.safetensors").unlink(), "missing: 'weights.safetensors'", "damaged"),
    "NaN weights": (_weights(lambda w: next(iter(w.values())).fill_(float("nan"))), "weights", "not finite"),
    "infinite weights": (_weights(lambda w: next(iter(w.values())).fill_(float("inf"))), "weights", "not finite"),
    "fewer weights": (_weights(lambda w: w.pop(next(iter(w)))), "weights", "do not fit"),
    "header, size": (_header(lambda h: _first(h).update(data_offsets=[0, 2**62])), "weights", "damaged"),
    "header, shape": (_header(lambda h: _first(h).update(shape=[2**40, 2**40])), "weights", "damaged"),
    "header, type": (_header(lambda h: _first(h).update(dtype="F128")), "weights", "damaged"),
    "header, length": (
        lambda run: (run / "weights.safetensors").write_bytes(b"\xff" * 7 + b"\x7f{}"), "weights", "damaged",
    ),
    "no codec": (lambda run: (run / "codec.json").unlink(), "missing: 'codec.json'", "damaged"),
    "empty codec": (lambda run: (run / "codec.json").write_text("{}"), "codec.json", "damaged.*statistics is missing"),
    "higher": (_pulse(high=1e6), "changed: 'codec.json'", None),
    "low is NaN": (_pulse(low=float("nan")), "codec.json", "it holds NaN"),
    "low is null": (_pulse(low=None), "codec.json", "are numbers, or all null"),
    "low is high": (_pulse(low=1e6), "codec.json", "low is not below high"),
    "low is text": (_pulse(low="20"), "codec.json", "low is '20'; expected a number"),
    "low is a list": (_pulse(low=[20]), "codec.json", r"low is \[20\]; expected a number"),
    "unknown key": (_pulse(lowest=3), "codec.json", "there is no setting statistics.pulse.lowest"),
    "unknown feature": (lambda run: _codec(run, lambda t: t["statistics"].update(x={})), "codec.json", "damaged"),
    "deep codec": (lambda run: (run / "codec.json").write_text("[" * 100_000), "codec.json", "nested more than"),
    "digits": (lambda run: (run / "codec.json").write_text("9" * 5000), "codec.json", "damaged"),
    "sparse": (lambda run: _codec(run, lambda t: t.update(sparse=["sex"])), "codec.json", "not a continuous temporal"),
    "unknown setting": (_settings("[training]\nspeed = 3"), "changed: 'settings.toml'", "damaged.*speed"),
    "empty settings": (_settings(""), "changed: 'settings.toml'", "do not fit"),
    "other size": (_settings("[model]\nhidden = 9"), "settings.toml", "do not fit"),
    "giant": (_settings(f"[model]\nhidden = {2**60}"), "settings.toml", "hidden is .*expected at most 65,536"),
    "beyond": (_settings(f"[model]\nhidden = {2**64}"), "settings.toml", "more than 64 bits"),
    "no schema": (lambda run: (run / "schema.toml").write_text("format = 1"), "changed: 'schema.toml'", "damaged"),
    "two files": (
        lambda run: [(run / name).unlink() for name in ("codec.json", "schema.toml")],
        "missing: 'codec.json', 'schema.toml'", "damaged",
    ),
}  # fmt: skip


@pytest.fixture(scope="session")
def finished_run(mixed: Cohort, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    TimeDiff(settings=PAPER).fit(mixed, seed=0, run=folder)
    return folder


@pytest.fixture
def small_run(finished_run: Path, tmp_path: Path) -> Path:
    """One to be damaged."""
    shutil.copytree(finished_run, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_run_is_refused_in_a_sentence_that_names_the_files(edit: str, small_run: Path) -> None:
    change, named, _ = EDITS[edit]
    change(small_run)
    with pytest.raises(TimeDiffError, match=f"edited or damaged.*{named}.*--allow-edited") as caught:
        load(small_run)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_run_is_used_where_that_is_allowed_and_possible(edit: str, small_run: Path) -> None:
    change, named, wrong = EDITS[edit]
    change(small_run)
    said: list[str] = []
    if wrong:
        with pytest.raises(TimeDiffError, match=wrong):
            load(small_run, said.append, allow_edited=True)
    else:
        assert len(load(small_run, say=said.append, allow_edited=True).sample(3)) == 3
    assert "not as it was written" in said[0]
    assert named in said[0]


@pytest.mark.parametrize("edit", [edit for edit, (_, _, wrong) in EDITS.items() if wrong])
def test_what_cannot_be_used_is_refused_whatever_the_hashes_say(edit: str, small_run: Path) -> None:
    change, _, wrong = EDITS[edit]
    assert wrong
    change(small_run)
    if (small_run / "weights.safetensors").exists():
        _as_it_is(small_run)
    with pytest.raises(TimeDiffError, match=wrong) as caught:
        load(small_run, allow_edited=not (small_run / "weights.safetensors").exists())
    assert "\n" not in str(caught.value)


def test_every_fact_of_a_run_is_covered(small_run: Path) -> None:
    table = json.loads((small_run / "provenance.json").read_text())
    for key in table:
        (small_run / "provenance.json").write_text(json.dumps({k: v for k, v in table.items() if k != key}))
        with pytest.raises(TimeDiffError):
            Run.open(small_run)
    (small_run / "provenance.json").write_text(json.dumps({**table, "stays": table["stays"] + 1}))
    with pytest.raises(TimeDiffError, match=r"changed: 'provenance\.json'"):
        Run.open(small_run)
    (small_run / "provenance.json").write_text(
        json.dumps(dict(reversed(table.items())))
    )  # another order, the same facts
    assert not Run.open(small_run).differences


def test_a_run_of_format_2_is_read_and_it_is_said_that_it_cannot_be_checked(small_run: Path) -> None:
    table = json.loads((small_run / "provenance.json").read_text())
    old = {key: value for key, value in table.items() if key not in ("files", "sha256")}
    (small_run / "provenance.json").write_text(json.dumps({**old, "format": 2}))
    said: list[str] = []
    assert len(load(small_run, said.append).sample(3)) == 3
    assert len(said) == 1
    assert "written before files of a run were hashed (format 2): it cannot be checked" in said[0]
    _bit(small_run)  # its weights were hashed before
    with pytest.raises(TimeDiffError, match="weights"):
        load(small_run)


def test_weights_written_and_not_yet_noted_leave_a_run_that_opens(
    small_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill between the two renames, with other weights than those before."""
    run = Run.open(small_run)
    other = {name: value + 1 for name, value in run.weights(pytest.fail).items()}
    with monkeypatch.context() as patch:
        patch.setattr(Run, "note", _killed_the_second_time())
        with pytest.raises(KeyboardInterrupt):
            run.finish(other)
    said: list[str] = []
    Run.open(small_run).weights(said.append)
    assert said == ["this run stopped at update 6 of 6"]
    Run.open(small_run).finish(other)
    assert equal(Run.open(small_run).weights(pytest.fail), other)


def _killed_the_second_time() -> Callable[..., None]:
    calls: list[int] = []
    note = Run.note

    def noted(self: Run, **facts: Any) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        note(self, **facts)

    return noted


def test_a_resumed_run_remembers_that_it_was_edited(mixed: Cohort, small_run: Path) -> None:
    _pulse(fill=84.0)(small_run)
    with pytest.raises(TimeDiffError, match="--allow-edited"):
        TimeDiff(settings=PAPER).fit(mixed, seed=0, run=small_run, resume=True)
    said: list[str] = []
    TimeDiff(settings=PAPER).fit(mixed, seed=0, run=small_run, resume=True, allow_edited=True, say=said.append)
    assert "codec.json" in said[0]
    assert json.loads((small_run / "provenance.json").read_text())["edited"] == ["codec.json"]
    with pytest.raises(TimeDiffError, match=r"changed: 'codec\.json'"):
        load(small_run)


def test_an_unfinished_run_is_sampled_from_the_average_of_its_newest_checkpoint(mixed: Cohort, tmp_path: Path) -> None:
    def stop(done: int, total: int, **values: float) -> None:
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        TimeDiff(settings=PAPER).fit(mixed, seed=0, run=tmp_path / "run", progress=stop)
    said: list[str] = []
    model: Any = load(tmp_path / "run", say=said.append)
    assert len(model.sample(5)) == 5
    assert said == ["this run stopped at update 3 of 6"]
    average = load_file(tmp_path / "run" / "checkpoints" / "step-000000003" / "ema.safetensors")
    assert equal(model.fitted.network.state_dict(), average)
