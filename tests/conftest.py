"""Cohorts that several tests share."""

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import hypothesis
import numpy as np
import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # kernels are interpreted, step by step; said before Triton is imported

from timediff.data.cohort import Cohort
from timediff.data.schema import Feature, Schema
from timediff.sources.simulated import simulate

if TYPE_CHECKING:
    from helpers.released import Released

hypothesis.settings.register_profile("timediff", deadline=None)  # other work on the machine is no fault of the code
hypothesis.settings.load_profile("timediff")


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> "Released":
    """What a dossier is of; only read by tests."""
    from helpers.released import released

    return released(tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="session")
def icu() -> Cohort:
    """A small simulated ICU."""
    return simulate(200, steps=12, seed=0)


@pytest.fixture(scope="session")
def mixed() -> Cohort:
    """Every kind of feature at once: K = 2, 3 and 5, temporal and static, missing values, several stays a patient."""
    rng = np.random.default_rng(7)
    stays, steps = 120, 6
    schema = Schema(
        (
            Feature("pulse", "continuous", bounds=(20, 250), resolution=1, unit="bpm"),
            Feature("rhythm", "categorical", classes=("sinus", "af", "paced")),
            Feature("lactate", "continuous"),
            Feature("ventilated", "binary"),
            Feature("unit", "categorical", "static", classes=(1, 2, 3, 4, 5)),
            Feature("height", "continuous", "static", resolution=0.5),
            Feature("sex", "binary", "static", classes=("F", "M")),
            Feature("patient", "categorical", "static", role="patient"),
            Feature("died", "binary", "static", role="label"),
        ),
        steps,
    )

    def holes(values: np.ndarray, rate: float) -> np.ndarray:
        return np.where(rng.random(values.shape) < rate, np.nan, values)

    series = {
        "pulse": holes(np.round(rng.normal(85, 15, (stays, steps))), 0.2),
        "rhythm": holes(rng.integers(0, 3, (stays, steps)).astype(float), 0.1),
        "lactate": holes(rng.lognormal(0.5, 0.5, (stays, steps)), 0.7),
        "ventilated": rng.integers(0, 2, (stays, steps)).astype(float),
    }
    static = {
        "unit": rng.integers(0, 5, stays).astype(float),
        "height": holes(np.round(rng.normal(170, 10, stays) * 2) / 2, 0.3),
        "sex": rng.integers(0, 2, stays).astype(float),
        "patient": rng.integers(0, 70, stays),
        "died": (rng.random(stays) < 0.3).astype(float),
    }
    return Cohort(schema, np.arange(100, 100 + stays), series, static)


@pytest.fixture(scope="session")
def ragged(mixed: Cohort) -> Cohort:
    """The same with stays of two to six steps."""
    length = 2 + np.arange(len(mixed)) % 5
    inside = np.arange(mixed.schema.steps) < length[:, None]
    return replace(mixed, series={k: np.where(inside, v, np.nan) for k, v in mixed.series.items()}, length=length)


def same(a: Cohort, b: Cohort) -> bool:
    """Equal in schema, stays and every value."""
    return (
        a.schema == b.schema
        and np.array_equal(a.stay_id, b.stay_id)
        and np.array_equal(a.lengths, b.lengths)
        and all(np.array_equal(a.series[k], b.series[k], equal_nan=True) for k in a.series)
        and all(np.array_equal(a.static[k], b.static[k], equal_nan=a.static[k].dtype.kind == "f") for k in a.static)
    )


@pytest.fixture(scope="module")
def one_thread():
    """Networks this small gain nothing from a second one, and lose much where cores are shared."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
