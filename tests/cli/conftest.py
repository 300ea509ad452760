"""The command line in this process, and a folder for it to work on."""

import sys
from pathlib import Path

import pytest

from helpers.command_line import SMALL, Run
from timediff import cli
from timediff.data.cohort import Cohort


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs `timediff …` in this process: (exit code, standard output, standard error)."""

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["timediff", *map(str, arguments)])
        code: object = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
        out, err = capfd.readouterr()
        assert isinstance(code, int)
        return code, out, err

    return call


@pytest.fixture(scope="module")
def home(icu: Cohort, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cohort and a run of it, only read by tests."""
    from timediff.generators.timediff.generator import TimeDiff
    from timediff.settings.resolve import resolve

    folder = tmp_path_factory.mktemp("home")
    icu.write(folder / "icu")
    settings = resolve("paper", assignments=dict(cli_settings()))
    TimeDiff(settings=settings).fit(icu, seed=0, run=folder / "run")
    return folder


def cli_settings() -> list[tuple[str, object]]:
    from timediff.settings.resolve import parse_assignment

    return [parse_assignment(text) for text in SMALL[3::2]]
