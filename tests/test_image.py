"""The Dockerfile, read and tried as far as that can be done without an engine that builds images."""

import json
import re
import shutil
import subprocess
import tomllib
import zipfile
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hatchling.build import build_wheel

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SENT = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]


@dataclass
class Stage:
    """What stands after one FROM: its instructions, in their order."""

    image: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def all(self, word: str) -> list[str]:
        return [rest for name, rest in self.steps if name == word]

    @property
    def copied(self) -> list[str]:
        """Sources of COPY that are of the repository."""
        sources = [rest.split() for rest in self.all("COPY") if not rest.startswith("--from=")]
        return [path for words in sources for path in words[:-1]]


def stages() -> tuple[dict[str, str], list[Stage]]:
    """The arguments before the first FROM, and the stages."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", "")
    arguments: dict[str, str] = {}
    found: list[Stage] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            found.append(Stage(rest))
        elif found:
            found[-1].steps.append((word, rest.strip()))
        else:
            assert word == "ARG", line
            arguments |= dict([rest.split("=")])
    return arguments, found


ARGUMENTS, (BUILD, IMAGE) = stages()


def default(argument: str) -> str:
    return next(rest.split("=")[1] for rest in IMAGE.all("ARG") if rest.startswith(f"{argument}="))


def test_only_what_is_copied_is_sent() -> None:
    """A cohort that lies in the folder never reaches a layer."""
    assert (ROOT / ".dockerignore").read_text().splitlines()[1] == "*"
    assert set(SENT) == {*BUILD.copied, *IMAGE.copied}
    assert all((ROOT / path).exists() for path in SENT)


def test_what_is_copied_builds_the_wheel(tmp_path: Path) -> None:
    for path in BUILD.copied:
        if (ROOT / path).is_dir():
            shutil.copytree(ROOT / path, tmp_path / path, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(ROOT / path, tmp_path / path)
    with chdir(tmp_path):
        wheel = build_wheel(str(tmp_path))
    with zipfile.ZipFile(wheel := tmp_path / wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
    here = (ROOT / "src").rglob("*")
    assert names == {str(path.relative_to(ROOT / "src")) for path in here if path.is_file() and path.suffix != ".pyc"}


@pytest.mark.parametrize("stage", [BUILD, IMAGE], ids=["build", "image"])
def test_every_installation_is_constrained(stage: Stage) -> None:
    installs = [part for run in stage.all("RUN") for part in re.findall(r"pip install [^;&]*", run)]
    assert installs
    assert all("--constraint constraints.txt" in part for part in installs)
    assert "constraints.txt" in stage.copied


@pytest.mark.parametrize("stage", [BUILD, IMAGE], ids=["build", "image"])
def test_every_variable_is_an_argument_of_its_stage(stage: Stage) -> None:
    known: set[str] = set()
    for word, rest in stage.steps:
        assert set(re.findall(r"\$\{(\w+)\}", rest)) <= known, rest
        if word == "ARG":
            known.add(rest.partition("=")[0])
    assert set(re.findall(r"\$\{(\w+)\}", stage.image)) <= set(ARGUMENTS)


@pytest.fixture
def install_torch(tmp_path: Path):
    """Runs the step that depends on the device, with programs that only say how they were called."""
    for name in ("pip", "apt-get", "rm"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $*"\n')
        (tmp_path / name).chmod(0o755)
    script = next(run for run in IMAGE.all("RUN") if "DEVICE" in run)

    def run(device: str, index: str = default("TORCH_INDEX")) -> subprocess.CompletedProcess[str]:
        variables = {"PATH": str(tmp_path), "DEVICE": device, "TORCH_INDEX": index}
        return subprocess.run(["/bin/sh", "-c", script], env=variables, capture_output=True, text=True, check=False)

    return run


def test_for_cpus_pytorch_comes_without_cuda(install_torch) -> None:
    done = install_torch("cpu")
    assert done.returncode == 0
    (call,) = done.stdout.splitlines()
    assert call.startswith("pip install")
    assert call.endswith("--index-url https://download.pytorch.org/whl/cpu torch")


def test_pytorch_may_come_from_a_mirror(install_torch) -> None:
    done = install_torch("cpu", "https://mirror.example.org/torch")
    assert done.returncode == 0
    assert "--index-url https://mirror.example.org/torch torch" in done.stdout


@pytest.mark.parametrize("stage", [BUILD, IMAGE], ids=["build", "image"])
def test_all_else_may_come_from_a_mirror(stage: Stage) -> None:
    """pip reads this variable by itself; without a value it is not set, so a pip.conf of the base image holds."""
    words = [word for word, _ in stage.steps]
    assert stage.steps.index(("ARG", "PIP_INDEX_URL")) < words.index("RUN")


def test_for_gpus_there_is_a_compiler_for_the_kernels(install_torch) -> None:
    done = install_torch("cuda")
    assert done.returncode == 0
    assert [call.split()[0] for call in done.stdout.splitlines()] == ["apt-get", "apt-get", "rm", "pip"]
    assert " gcc " in done.stdout
    assert "/whl/cpu" not in done.stdout


def test_another_device_is_refused(install_torch) -> None:
    done = install_torch("tpu")
    assert done.returncode == 2
    assert done.stderr == "DEVICE is cpu or cuda, not 'tpu'\n"


def test_its_arguments_are_what_there_is() -> None:
    assert default("DEVICE") == "cpu"
    assert set(default("EXTRAS").split(",")) <= set(PROJECT["optional-dependencies"])
    assert f"Programming Language :: Python :: {ARGUMENTS['PYTHON']}" in PROJECT["classifiers"]


def test_it_runs_timediff_and_not_as_root() -> None:
    assert json.loads(IMAGE.all("ENTRYPOINT")[-1]) == ["timediff"]
    assert "timediff" in PROJECT["scripts"]
    assert int(IMAGE.all("USER")[-1]) > 0
    assert IMAGE.steps.index(("USER", IMAGE.all("USER")[-1])) > max(
        place for place, (word, _) in enumerate(IMAGE.steps) if word == "RUN"
    )


def test_to_stop_it_is_ctrl_c() -> None:
    """Of the first process the kernel drops a SIGTERM without a handler; SIGINT has Python's."""
    assert IMAGE.all("STOPSIGNAL") == ["SIGINT"]
