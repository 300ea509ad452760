"""In which precision a GPU computes products."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Protocol

import torch

Precision = Literal["float32", "tf32", "float16", "bfloat16"]


class AllowsTF32(Protocol):
    allow_tf32: bool


@contextmanager
def arithmetic(precision: Precision) -> Iterator[None]:
    """Of a GPU's products. What is rounded more depends more on the batch, and now and then flips a class."""
    switches: list[AllowsTF32] = [torch.backends.cudnn, torch.backends.cuda.matmul]
    before = [switch.allow_tf32 for switch in switches]
    for switch in switches:
        switch.allow_tf32 = precision in ("tf32", "float16")  # which keep as many digits
    try:
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bfloat16"):
            yield
    finally:
        for switch, value in zip(switches, before, strict=True):
            switch.allow_tf32 = value
