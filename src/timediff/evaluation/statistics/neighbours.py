"""Nearest neighbours, exactly: fast products find a few candidates a row, differences in float64 measure them.

|x − y|² = |x|² + |y|² − 2 x·y needs only a matrix product, but loses its digits where x and y are close. So it only
proposes: the candidates' distances are computed anew, and a row is settled once no other row can be nearer by more
than TOLERANCE, whatever the product's rounding. What float32 cannot settle goes to float64, and near copies beyond
that are compared one by one. An exact copy has distance 0; block size and device change at most the last digits.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from timediff.data.arrays import Array, Floats
from timediff.errors import TimeDiffError

CANDIDATES = 4  # a row; with fewer, more rows go to float64
TOLERANCE = 1e-9  # relative, of a squared distance
BLOCK = 2048  # rows on either side of a product
NUMBERS = 1 << 22  # numbers held at a time where differences are taken


def nearest(a: Array, b: Array, *, device: str = "cpu", exclude_self: bool = False, block: int = BLOCK) -> Floats:
    """Euclidean distance of each row of `a` to its nearest row of `b`, infinite where there is none.

    With `exclude_self`, `b` has the rows of `a`, and none is its own neighbour.
    """
    found: Floats = nearest_few(a, b, 1, device=device, exclude_self=exclude_self, block=block)[:, 0]
    return found


def nearest_few(
    a: Array, b: Array, count: int, *, device: str = "cpu", exclude_self: bool = False, block: int = BLOCK
) -> Floats:
    """Distances of each row of `a` to its `count` nearest rows of `b`, (N, count), in ascending order."""
    if not 1 <= count < CANDIDATES:
        raise ValueError(f"count is {count}; expected 1 to {CANDIDATES - 1}")
    x, y = _tensors(a, b, device)
    if exclude_self and len(x) != len(y):
        raise ValueError(f"exclude_self compares a set with itself, not {len(x)} rows with {len(y)}")
    own = torch.arange(len(x), device=x.device) if exclude_self else None
    with _full_precision():
        forward, _ = _search(x, y, torch.float32, block, own)
        return _finish(x, y, forward, block, own, count)


def nearest_both(a: Array, b: Array, *, device: str = "cpu", block: int = BLOCK) -> tuple[Floats, Floats]:
    """Distances of `a` to `b` and of `b` to `a`, from one pass over all pairs."""
    x, y = _tensors(a, b, device)
    with _full_precision():
        forward, backward = _search(x, y, torch.float32, block, both=True)
        forth, back = _finish(x, y, forward, block), _finish(y, x, backward, block)
        return forth[:, 0], back[:, 0]


@dataclass
class _Candidates:
    """The nearest rows found so far, (N, CANDIDATES), in ascending order."""

    squares: Tensor
    index: Tensor
    norm: Tensor  # (N,), of the rows themselves

    @staticmethod
    def none(norm: Tensor) -> "_Candidates":
        shape = (len(norm), CANDIDATES)
        return _Candidates(norm.new_full(shape, torch.inf), norm.new_zeros(shape, dtype=torch.long), norm)

    def error(self, distance: Tensor, columns: int) -> Tensor:
        """A bound on the rounding of |x − y|², a sum of `columns` products, for all y within `distance` of x.

        Such y have |y| ≤ |x| + distance; those beyond it are no competitors, however large their error.
        """
        unit = torch.finfo(self.norm.dtype)
        return (columns + 16) * (unit.eps * (2 * self.norm.double() + distance).square() + unit.tiny)

    def update(self, rows: slice, squares: Tensor, start: int) -> None:
        """Takes in the squared distances of `rows` to the rows from `start` on."""
        found, index = squares.topk(min(CANDIDATES, squares.shape[1]), dim=1, largest=False)
        merged = torch.cat([self.squares[rows], found], dim=1)
        self.squares[rows], order = merged.topk(CANDIDATES, dim=1, largest=False)
        self.index[rows] = torch.cat([self.index[rows], index + start], dim=1).gather(1, order)


def _search(
    x: Tensor, y: Tensor, dtype: torch.dtype, block: int, own: Tensor | None = None, both: bool = False
) -> tuple[_Candidates, _Candidates]:
    """Candidates of each row of `x` in `y`, and if `both`, of each row of `y` in `x`; `own` = what to leave out."""
    wide = torch.promote_types(x.dtype, dtype)
    if len(y):  # far from zero, the products would leave no digits for the differences
        shift = y.mean(dim=0, dtype=torch.float64).to(x.dtype).to(wide)
        x, y = (x.to(wide) - shift).to(dtype), (y.to(wide) - shift).to(dtype)
    xx, yy = x.square().sum(dim=1), y.square().sum(dim=1)
    limit = 0.0 if xx.isfinite().all() and yy.isfinite().all() else torch.inf  # after an overflow nothing is settled
    forward, backward = _Candidates.none(xx.sqrt() + limit), _Candidates.none(yy.sqrt() + limit)
    for i in range(0, len(x), block):
        rows = slice(i, i + block)
        for j in range(0, len(y), block):
            columns = slice(j, j + block)
            squares = torch.addmm(yy[columns], x[rows], y[columns].T, alpha=-2).add_(xx[rows, None])
            if own is not None:
                other = own[rows] - j
                at = ((other >= 0) & (other < squares.shape[1])).nonzero()[:, 0]
                squares[at, other[at]] = torch.inf
            forward.update(rows, squares, j)
            if both:
                backward.update(columns, squares.T, i)
    return forward, backward


def _finish(x: Tensor, y: Tensor, found: _Candidates, block: int, own: Tensor | None = None, count: int = 1) -> Floats:
    """The `count` least distances of all rows of `x`, those that float32 could not settle by the slower ways."""
    if len(y) == 0:
        return np.full((len(x), count), np.inf)
    squares, settled = _measured(x, y, found, count)
    if not settled.all():
        rows = (~settled).nonzero()[:, 0]
        mine = None if own is None else own[rows]
        again, _ = _search(x[rows], y, torch.float64, block, mine)
        squares[rows], settled = _measured(x[rows], y, again, count)
        for row in rows[~settled].tolist():
            squares[row] = _direct(x[row], y, None if own is None else int(own[row]), count)
    return np.asarray(squares.sqrt().cpu().numpy(), np.float64)


def _measured(x: Tensor, y: Tensor, found: _Candidates, count: int) -> tuple[Tensor, Tensor]:
    """The `count` least squared distances among the candidates, in float64, and whether no other row can be nearer."""
    best = torch.full((len(x), count), torch.inf, dtype=torch.float64, device=x.device)
    for rows in _chunks(len(x), CANDIDATES * x.shape[1]):
        squares = (y[found.index[rows]].double() - x[rows, None].double()).square().sum(dim=2)
        squares = squares.masked_fill(found.squares[rows] == torch.inf, torch.inf)
        best[rows] = squares.topk(count, dim=1, largest=False).values
    last = best[:, -1]
    others = found.squares[:, -1].double() if len(y) > CANDIDATES else torch.full_like(last, torch.inf)
    nearest_other = others - found.error(last.sqrt(), x.shape[1])
    return best, (last == 0) | (nearest_other >= last * (1 - TOLERANCE))


def _direct(row: Tensor, y: Tensor, own: int | None, count: int) -> Tensor:
    """The `count` least squared distances of one row, by differences from all others."""
    squares = torch.cat([(y[part].double() - row.double()).square().sum(dim=1) for part in _chunks(len(y), len(row))])
    if own is not None:
        squares[own] = torch.inf
    least = squares.new_full((count,), torch.inf)
    found = squares.topk(min(count, len(squares)), largest=False).values
    least[: len(found)] = found
    return least


def _chunks(count: int, width: int) -> Iterator[slice]:
    """Slices of `count` rows of `width` numbers each, that hold about NUMBERS numbers."""
    size = max(1, NUMBERS // max(width, 1))
    return (slice(start, start + size) for start in range(0, count, size))


def _tensors(a: Array, b: Array, device: str) -> tuple[Tensor, Tensor]:
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ValueError(f"expected two tables with the same columns, got shapes {a.shape} and {b.shape}")
    for rows in (a,) if a is b else (a, b):
        if not np.isfinite(rows).all():
            raise TimeDiffError("rows to compare hold NaN or infinite numbers: fill missing values before.")
    dtype = torch.float64 if np.result_type(a, b) == np.float64 else torch.float32
    x = torch.tensor(a, dtype=dtype, device=device)
    return x, x if a is b else torch.tensor(b, dtype=dtype, device=device)


@contextmanager
def _full_precision() -> Iterator[None]:
    """No TF32 or bfloat16 in products, whatever was set before."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_float32_matmul_precision(before)
