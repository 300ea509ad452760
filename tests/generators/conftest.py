"""Every generator, fitted once for all tests."""

import pytest
import torch

from helpers.small_generators import EVERY
from timediff.data.cohort import Cohort
from timediff.generators.base import Generator
from timediff.generators.registry import GENERATORS


@pytest.fixture(scope="module", autouse=True)
def _one_thread(one_thread: None) -> None:
    """Every network here is small."""


@pytest.fixture(scope="session", params=EVERY)
def model(request: pytest.FixtureRequest, mixed: Cohort) -> Generator:
    """Fitted to stays with every kind of feature, by one thread; only read by tests."""
    name, settings = EVERY[request.param]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # this fixture comes before those of a module
    fitted = GENERATORS(name)(settings=settings).fit(mixed, seed=0)
    torch.set_num_threads(threads)
    return fitted
