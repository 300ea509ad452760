"""Networks and generators of one's own, without a package: in this process, and in the next one."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import timediff as td
from helpers.small_runs import small_settings
from timediff.data.batch import Batch
from timediff.generators.registry import GENERATORS, from_module
from timediff.networks.settings import BRNNSettings, CDESettings, NetworkSettings, chosen_network
from timediff.runtime.registry import PLUGINS

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorials" / "extending.md"


@dataclass(frozen=True)
class StraightSettings(NetworkSettings):
    network: str = "straight"
    units: int = 4

    def build(self, inputs: int, outputs: int) -> nn.Module:
        return Straight(inputs, outputs, self.units)


class Straight(nn.Module):
    def __init__(self, inputs: int, outputs: int, units: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, units), nn.SiLU(), nn.Linear(units, outputs))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        output: Tensor = self.layers(x)
        return output


SHORT = {"training.steps": 2, "sampling.steps": 4}


@pytest.mark.parametrize("preset", [None, "paper"])
def test_a_network_of_ones_own_is_trained_saved_and_loaded(preset: str | None, icu: td.Cohort, tmp_path: Path) -> None:
    model = td.TimeDiff(preset, network=StraightSettings(units=5), assignments=SHORT)
    model.fit(icu, seed=0, run=tmp_path / "run")
    assert model.fitted.network.state_dict().keys()
    assert any(isinstance(module, Straight) for module in model.fitted.network.modules())
    again = td.load(tmp_path / "run")
    assert again.settings.model == StraightSettings(units=5)  # type: ignore[attr-defined]
    assert again.sample(20, seed=1).digest() == model.sample(20, seed=1).digest()


def test_a_network_is_a_name_settings_or_their_class() -> None:
    assert chosen_network("cde") == CDESettings()
    assert chosen_network(BRNNSettings(hidden=3)).hidden == 3
    assert chosen_network(StraightSettings) == StraightSettings()


@pytest.mark.parametrize("given", [nn.Linear(2, 2), nn.Linear, 3, NetworkSettings()])
def test_what_is_no_network_is_refused_with_what_is_expected(given: object) -> None:
    with pytest.raises(td.TimeDiffError, match=r"expected the name of one, or a NetworkSettings with a name"):
        chosen_network(given)  # type: ignore[arg-type]


def test_a_run_with_a_network_that_is_not_here_is_not_called_damaged(icu: td.Cohort, tmp_path: Path) -> None:
    td.TimeDiff(network=StraightSettings, assignments=SHORT).fit(icu, seed=0, run=tmp_path / "run")
    code = f"import timediff as td; td.load({str(tmp_path / 'run')!r})"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "cannot be loaded: there is no network 'straight'" in ended.stderr
    assert f"name its module in {PLUGINS}" in ended.stderr
    assert "damaged" not in ended.stderr


def test_a_class_whose_run_does_not_load_is_told_what_to_do(icu: td.Cohort, tmp_path: Path) -> None:
    class Wider(td.TimeDiff):
        def build(self, codec: object) -> object:
            process = super().build(codec)  # type: ignore[arg-type]
            process.more = nn.Linear(2, 2)
            return process

    model = Wider(settings=small_settings(2)).fit(icu, seed=0, run=tmp_path / "run")
    with pytest.raises(td.TimeDiffError, match=r"give the class a name of its own and register it, or call its load"):
        td.load(tmp_path / "run")
    assert Wider.load(tmp_path / "run").identity == model.identity


@pytest.fixture
def boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the tutorial's generator in a file."""
    text = TUTORIAL.read_text().partition("cat > boot.py <<'END'\n")[2].partition("\nEND\n")[0]
    (tmp_path / "own_boot.py").write_text(text.replace('name = "boot"', 'name = "own-boot"'))
    (tmp_path / "broken.py").write_text("1 / 0")
    td.simulate(60, steps=4, seed=0).write(tmp_path / "icu")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_generator_is_fitted_by_its_place_and_sampled_by_the_plugins(boot: Path) -> None:
    def timediff(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        started = [sys.executable, "-P", "-m", "timediff", *arguments]
        environment = {**os.environ, **variables}
        return subprocess.run(started, env=environment, capture_output=True, text=True, check=False)

    fitted = timediff("fit", "icu", "run", "--generator", "own_boot:Boot")
    assert fitted.returncode == 0, fitted.stderr
    with pytest.raises(td.TimeDiffError, match="there is no generator 'own-boot' here"):
        td.load("run")
    sampled = timediff("sample", "run", "made", "-n", "20", TIMEDIFF_PLUGINS="own_boot:Boot")
    assert sampled.returncode == 0, sampled.stderr
    assert td.read_cohort(boot / "made").provenance.generator == "own-boot"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("nowhere_at_all:Boot", "'nowhere_at_all:Boot' names the module 'nowhere_at_all', which cannot be imported"),
        ("broken:Boot", "which cannot be imported: ZeroDivisionError"),
        ("own_boot:Nobody", "has no 'Nobody'"),
        ("own_boot:np", "is no generator: expected module:Class"),
        (":Boot", "cannot be imported"),
        ("own_boot:", "is no generator"),
    ],
)
@pytest.mark.usefixtures("boot")
def test_a_place_that_has_no_generator_is_named(place: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLUGINS, "")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "own_boot", raising=False)
    with pytest.raises(td.TimeDiffError, match=said):
        from_module(place)


def test_a_name_of_ours_is_not_taken(boot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (boot / "taken.py").write_text("from timediff import TimeDiff\nclass Mine(TimeDiff):\n    pass\n")
    monkeypatch.setenv(PLUGINS, "")
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(td.TimeDiffError, match="there is a generator 'timediff' already"):
        from_module("taken:Mine")
    assert GENERATORS("timediff") is td.TimeDiff


def test_a_name_in_a_run_folder_is_never_imported(boot: Path, icu: td.Cohort) -> None:
    """Whoever wrote the folder chose it."""
    td.TimeDiff(settings=small_settings(2)).fit(icu, seed=0, run=boot / "run")
    provenance = boot / "run" / "provenance.json"
    provenance.write_text(provenance.read_text().replace('"timediff"', '"own_boot:Boot"'))
    sys.modules.pop("own_boot", None)
    with pytest.raises(td.TimeDiffError):
        td.load(boot / "run", allow_edited=True)
    assert "own_boot" not in sys.modules


def test_the_codec_of_a_model_encodes_other_stays(icu: td.Cohort) -> None:
    model = td.TimeDiff(settings=small_settings(2)).fit(icu, seed=0)
    (batch,) = td.batches(icu, len(icu), seed=None, codec=model.codec)
    assert isinstance(batch, Batch)
    assert torch.equal(batch.continuous, model.codec.encode(icu).continuous)
