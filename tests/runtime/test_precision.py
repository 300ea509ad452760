"""Precision of a GPU's products, for a while."""

from typing import Any

import pytest
import torch

from timediff.runtime.precision import arithmetic

NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="autocast to bfloat16 is of a GPU")


@pytest.mark.parametrize(
    ("precision", "tf32"),
    [("float32", False), ("tf32", True), ("float16", True), pytest.param("bfloat16", False, marks=NEEDS_GPU)],
)
def test_arithmetic_is_as_asked_for_and_as_before_afterwards(precision: Any, tf32: bool) -> None:
    def state() -> list[bool]:
        switches = [torch.backends.cudnn, torch.backends.cuda.matmul]
        return [*(switch.allow_tf32 for switch in switches), torch.is_autocast_enabled("cuda")]

    def fail() -> None:
        with arithmetic(precision):
            seen.extend(state())
            raise ZeroDivisionError

    seen: list[bool] = []
    before = state()
    with pytest.raises(ZeroDivisionError):
        fail()
    assert seen == [tf32, tf32, precision == "bfloat16"]
    assert state() == before
