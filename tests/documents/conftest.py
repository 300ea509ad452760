"""One release for all tests of documents; only read by them."""

import pytest

from helpers.released import Released, released


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Released:
    return released(tmp_path_factory.mktemp("release"))
