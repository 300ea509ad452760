"""What is packed: the sdist is what git tracks, the wheel is the package, and install lines name what there is."""

import re
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import chdir, suppress
from email import message_from_bytes
from importlib.metadata import PackageNotFoundError, requires
from itertools import chain
from pathlib import Path

import pytest
from hatchling.build import build_sdist, build_wheel
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
STRAY = ("cohort/series.parquet", "notes.md", "dist/old.whl", ".venv-3.12/lib/it.py", "src/timediff/__pycache__/it.pyc")


@pytest.fixture(scope="module")
def tracked() -> set[str]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("what git tracks is known only in a clone")
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True).split("\0")
    return {path for path in listed if path and (ROOT / path).exists()}


@pytest.fixture(scope="module")
def clone(tracked: set[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What git tracks, and beside it what lies about in a folder one works in."""
    folder = tmp_path_factory.mktemp("clone")
    for path in (*tracked, *STRAY):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
    for path in tracked:
        shutil.copyfile(ROOT / path, folder / path)
    for path in STRAY:
        (folder / path).write_text("of a patient")
    return folder


@pytest.fixture(scope="module")
def sdist(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sdist")
    with chdir(clone):
        return out / build_sdist(str(out))


@pytest.fixture(scope="module")
def wheel(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    with chdir(clone):
        return out / build_wheel(str(out))


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def test_the_sdist_is_what_git_tracks(sdist: Path, tracked: set[str]) -> None:
    with tarfile.open(sdist) as packed:
        names = {member.name.partition("/")[2] for member in packed if member.isfile()}
    assert names - {"PKG-INFO"} == tracked


def test_the_wheel_is_the_package(wheel: Path, tracked: set[str]) -> None:
    names = {name for name in contents(wheel) if ".dist-info/" not in name}
    assert names == {path.removeprefix("src/") for path in tracked if path.startswith("src/")}


def test_the_sdist_builds_the_same_wheel(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as packed:
        packed.extractall(tmp_path, filter="data")
    with chdir(tmp_path / sdist.name.removesuffix(".tar.gz")):
        again = build_wheel(str(tmp_path))
    assert contents(tmp_path / again) == contents(wheel)


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    """Another project is called timediff on PyPI, so the distribution has a name of its own; the command has not."""
    packed = contents(wheel)
    about = message_from_bytes(next(text for name, text in packed.items() if name.endswith(".dist-info/METADATA")))
    scripts = next(text for name, text in packed.items() if name.endswith("entry_points.txt")).decode()
    assert about["Name"] == "timediff-icu"
    assert about["Requires-Python"] == ">=3.11"
    assert about["License-Expression"] == "Apache-2.0"
    assert set(about.get_all("Provides-Extra") or ()) == set(EXTRAS)
    assert scripts.split() == ["[console_scripts]", "timediff", "=", "timediff.cli:main"]
    assert any(name.endswith("licenses/LICENSE") for name in packed)


def install_lines() -> Iterator[tuple[str, str, str]]:
    """Where, the distribution, and the extras of everything like name[extra] that is of TimeDiff."""
    pages = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md"))
    others = (ROOT / name for name in ("pyproject.toml", "Makefile", "Dockerfile"))
    for path in (*pages, *others, *(ROOT / "src").rglob("*.py")):
        for found in re.finditer(r"(?<![\w.-])(timediff[\w.-]*)\[([a-z, -]+)\]", path.read_text(encoding="utf-8")):
            yield str(path.relative_to(ROOT)), found[1], found[2]


def test_install_lines_name_the_distribution_and_extras_that_it_has() -> None:
    """`pip install 'timediff[extract]'` would install somebody else's code."""
    found = list(install_lines())
    wheel = re.compile(r"timediff_icu-[\d.]+-py3-none-any\.whl")
    assert len(found) > 10
    assert not [line for line in found if line[1] != PROJECT["name"] and not wheel.fullmatch(line[1])]
    assert not [line for line in found if set(re.split(r", ?", line[2])) - set(EXTRAS)]


def test_the_pages_name_the_wheel_that_is_built(wheel: Path) -> None:
    pages = (ROOT / "README.md", ROOT / "docs" / "install.md")
    named = re.findall(r"timediff_icu-\S+?\.whl", "".join(page.read_text() for page in pages))
    assert set(named) == {wheel.name}


def constraints() -> dict[str, str]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    pins = {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}
    assert len(pins) == len(lines)
    return pins


def test_every_requirement_has_one_exact_version() -> None:
    pins = constraints()
    free = {"triton", "xgboost", PROJECT["name"]}  # of PyTorch's choice; in place of xgboost-cpu where there is none
    for one in map(Requirement, chain(PROJECT["dependencies"], *EXTRAS.values())):
        if (name := canonicalize_name(one.name)) not in free:
            assert name in pins, f"constraints.txt lacks {name}"
            assert one.specifier.contains(pins[name]), f"{one}, but constraints.txt has {pins[name]}"


def test_what_the_requirements_bring_has_one_exact_version_too() -> None:
    """Followed through what is installed here; what PyTorch for CUDA brings is of its choice."""
    pins = constraints()
    free = re.compile(r"(xgboost|triton|nvidia-.*|cuda-.*)$|" + PROJECT["name"])
    waiting = list(map(Requirement, chain(PROJECT["dependencies"], *EXTRAS.values())))
    seen: set[tuple[str, str]] = set()
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        for extra in ("", *one.extras):
            if free.match(name) or (name, extra) in seen or (one.marker and not one.marker.evaluate({"extra": ""})):
                continue
            seen.add((name, extra))
            with suppress(PackageNotFoundError):
                for needed in map(Requirement, requires(name) or ()):
                    marker, needed.marker = needed.marker, None
                    if marker is None or marker.evaluate({"extra": extra}):
                        waiting.append(needed)
    assert {name for name, _ in seen} <= set(pins)
