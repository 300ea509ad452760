"""`make matrix`: every interpreter that is found is tried, and none is passed over in silence."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def matrix(tmp_path: Path):
    """Runs the target; each run of the tests is a script that says how it was called, and fails by Python 3.99."""

    def run(*pythons: str) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "tests.sh"
        script.write_text('echo "$@"\ncase "$*" in *VENV=.venv-3.99) exit 1 ;; esac\n')
        variables = [f"PYTHONS={' '.join(pythons)}", f"MAKE=/bin/sh {script}"]
        call = ["make", "--no-print-directory", "matrix", *variables]
        return subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)

    return run


def test_each_interpreter_has_an_environment_of_its_own(matrix) -> None:
    done = matrix(sys.executable)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        f"test PYTHON={sys.executable} VENV=.venv-{HERE}",
        f"passed: {HERE}; failed: none",
    ]


def test_an_interpreter_that_is_not_here_is_left_out_aloud(matrix) -> None:
    done = matrix("python9.9", sys.executable)
    assert done.returncode == 0
    assert "python9.9 is not here: left out" in done.stdout
    assert f"passed: {HERE}" in done.stdout


def test_one_that_fails_is_named_and_does_not_stop_the_others(matrix, tmp_path: Path) -> None:
    failing = tmp_path / "python3.99"
    failing.write_text("#!/bin/sh\necho 3.99\n")
    failing.chmod(0o755)
    done = matrix(str(failing), sys.executable)
    assert done.returncode != 0
    assert f"passed: {HERE}; failed: 3.99" in done.stdout


def test_no_interpreter_at_all_is_a_failure(matrix) -> None:
    assert matrix("python9.9").returncode != 0
