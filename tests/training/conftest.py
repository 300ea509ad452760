"""A run that several tests of training compare with."""

from pathlib import Path

import pytest

from helpers.small_runs import small_settings
from timediff.data.cohort import Cohort
from timediff.generators.timediff.generator import TimeDiff


@pytest.fixture(scope="session")
def whole(icu: Cohort, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never stopped; only read by tests."""
    run = tmp_path_factory.mktemp("training") / "whole"
    TimeDiff(settings=small_settings()).fit(icu, seed=5, run=run)
    return run
