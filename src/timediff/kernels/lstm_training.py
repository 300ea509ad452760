"""A bidirectional LSTM as a GPU trains it soonest: a layer's steps are one kernel, and those of its gradient another.

A program keeps to 16 stays, so that a batch of some hundred is shared by many multiprocessors; states and cells go from
step to step without a launch between them. What goes through memory is bfloat16, which reaches as far down as single
precision, so that no gradient vanishes; within a program, sums and cells are in single precision.
"""

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad
from triton.runtime.errors import OutOfResources

from timediff.kernels.lstm_inference import INTERPRETED, OPTIONS, WIDEST, layers_of, sigmoid, tanh
from timediff.kernels.training import ALIGNED
from timediff.networks.brnn import BidirectionalRNN, DropoutRNN

ROWS = 16  # stays of a program
WARPS = 8


class Shape(NamedTuple):
    """How many rows of the weights a program has at once, and in how many stages they come; on the way back columns."""

    rows: int
    stages: int
    columns: int
    stages_back: int


SHAPES = (Shape(32, 3, 64, 5), Shape(16, 3, 32, 4), Shape(16, 1, 16, 1))  # the first that a GPU has room for is taken


@triton.jit(do_not_specialize=["B"])  # not compiled again for another number of stays
def _forward(
    gates, weights, out, cells, B, L: tl.constexpr,
    H: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr, SLICE: tl.constexpr, STAGES: tl.constexpr,
    EXACT: tl.constexpr,
):  # fmt: skip
    """One direction of some stays: gates (L, B, 2, 4 · H), weights (2, H, 4 · H), out and cells (L, B, 2, H).

    In place of what the inputs add to them, the open gates are left for the way back.
    """
    back = tl.program_id(1)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = (row < B)[:, None]
    row = row.to(tl.int64)[:, None]
    unit, column, some = tl.arange(0, H)[None, :], tl.arange(0, 4 * H)[None, :], tl.arange(0, SLICE)
    weights += back * 4 * H * H
    kind = out.dtype.element_ty
    c = tl.zeros((ROWS, H // GROUP, GROUP), tl.float32)
    for step in tl.range(0, L, num_stages=1):
        t = back * (L - 1 - step) + (1 - back) * step
        now = (t * B + row) * 2 + back
        last = now + (2 * back - 1) * 2 * B
        given = tl.load(gates + now * 4 * H + column, mask=here, other=0.0)  # on its way during the product
        a = tl.zeros((ROWS, 4 * H), tl.float32)
        for start in tl.range(0, H, SLICE, num_stages=STAGES):
            h = tl.load(out + last * H + start + some[None, :], mask=here & (step > 0), other=0.0)
            a = tl.dot(h, tl.load(weights + (start + some)[:, None] * 4 * H + column), a)
        a += given.to(tl.float32)
        a = tl.permute(tl.reshape(a, (ROWS, H // GROUP, 2, 2, GROUP)), (0, 1, 4, 2, 3))
        first_and_third, second_and_fourth = tl.split(a)
        i, g = tl.split(first_and_third)
        f, o = tl.split(second_and_fourth)
        i, f, g, o = sigmoid(i, EXACT), sigmoid(f, EXACT), tanh(g, EXACT), sigmoid(o, EXACT)
        c = f * c + i * g
        tl.store(out + now * H + unit, tl.reshape(o * tanh(c, EXACT), (ROWS, H)).to(kind), mask=here)
        tl.store(cells + now * H + unit, tl.reshape(c, (ROWS, H)).to(kind), mask=here)
        a = tl.permute(tl.join(tl.join(i, g), tl.join(f, o)), (0, 1, 3, 4, 2))
        tl.store(gates + now * 4 * H + column, tl.reshape(a, (ROWS, 4 * H)).to(kind), mask=here)
        tl.debug_barrier()  # what this step has written is read by the next


@triton.jit(do_not_specialize=["B"])
def _backward(
    gates, weights, cells, wanted, slopes, B, L: tl.constexpr,
    H: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr, SLICE: tl.constexpr, STAGES: tl.constexpr,
    EXACT: tl.constexpr,
):  # fmt: skip
    """From the gradient of the states, `wanted` (L, B, 2, H), that of the gates as they were given, `slopes` as those.

    Stays are columns, since a product of 16 columns is sooner done than one of 16 rows. What the next step needs is on
    its way during the product.
    """
    back = tl.program_id(1)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = (row < B)[None, :]
    row = row.to(tl.int64)[None, :]
    unit, some = tl.arange(0, H)[:, None], tl.arange(0, SLICE)
    gate = unit // GROUP * 4 * GROUP + unit % GROUP  # of a unit, the first
    weights += back * 4 * H * H
    kind = slopes.dtype.element_ty
    dh = tl.zeros((H, ROWS), tl.float32)
    dc = tl.zeros((H, ROWS), tl.float32)
    now = ((1 - back) * (L - 1) * B + row) * 2 + back
    at = gates + now * 4 * H + gate
    i, f = tl.load(at, mask=here, other=0.0), tl.load(at + GROUP, mask=here, other=0.0)
    g, o = tl.load(at + 2 * GROUP, mask=here, other=0.0), tl.load(at + 3 * GROUP, mask=here, other=0.0)
    given = tl.load(wanted + now * H + unit, mask=here, other=0.0)
    c = tl.load(cells + now * H + unit, mask=here, other=0.0).to(tl.float32)
    before = tl.load(cells + (now + (2 * back - 1) * 2 * B) * H + unit, mask=here & (L > 1), other=0.0)
    for step in tl.range(L - 1, -1, -1, num_stages=1):
        t = back * (L - 1 - step) + (1 - back) * step
        now = (t * B + row) * 2 + back
        i, f, g, o = i.to(tl.float32), f.to(tl.float32), g.to(tl.float32), o.to(tl.float32)
        y = tanh(c, EXACT)
        c = before.to(tl.float32)
        dh += given.to(tl.float32)
        dc += dh * o * (1 - y * y)
        to = slopes + now * 4 * H + gate
        tl.store(to, (dc * g * i * (1 - i)).to(kind), mask=here)
        tl.store(to + GROUP, (dc * c * f * (1 - f)).to(kind), mask=here)
        tl.store(to + 2 * GROUP, (dc * i * (1 - g * g)).to(kind), mask=here)
        tl.store(to + 3 * GROUP, (dh * y * o * (1 - o)).to(kind), mask=here)
        dc *= f
        tl.debug_barrier()  # what is written here is read as a whole by the product
        last = now + (2 * back - 1) * 2 * B
        more, at = here & (step > 0), gates + last * 4 * H + gate
        i, f = tl.load(at, mask=more, other=0.0), tl.load(at + GROUP, mask=more, other=0.0)
        g, o = tl.load(at + 2 * GROUP, mask=more, other=0.0), tl.load(at + 3 * GROUP, mask=more, other=0.0)
        given = tl.load(wanted + last * H + unit, mask=more, other=0.0)
        before = tl.load(cells + (last + (2 * back - 1) * 2 * B) * H + unit, mask=here & (step > 1), other=0.0)
        dh = tl.zeros((H, ROWS), tl.float32)
        for start in tl.range(0, 4 * H, SLICE, num_stages=STAGES):
            d = tl.load(slopes + now * 4 * H + start + some[:, None], mask=here, other=0.0)
            dh = tl.dot(tl.load(weights + unit * 4 * H + start + some[None, :]), d, dh)


class Layer(torch.autograd.Function):
    """The states (L, B, 2 · H) of a layer from its inputs (L, B, I), differentiable; all are of one kind of number.

    Weights are of the inputs (2 · 4 · H, I), biases (2 · 4 · H,), and of the states (2, H, 4 · H), each with the gates
    of a group of units together.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, of_inputs: Tensor, bias: Tensor, of_states: Tensor, shape: Shape) -> Tensor:
        length, stays, inputs = x.shape
        h = of_states.shape[1]
        gates = torch.addmm(bias, x.reshape(length * stays, inputs), of_inputs.T)
        out, cells = gates.new_empty((length, stays, 2 * h)), gates.new_empty((length, stays, 2 * h))
        _forward[(triton.cdiv(stays, ROWS), 2)](
            gates, of_states, out, cells, stays, L=length, H=h, GROUP=group(h), ROWS=ROWS, SLICE=min(h, shape.rows),
            STAGES=shape.stages, EXACT=INTERPRETED, num_warps=WARPS, **OPTIONS,
        )  # fmt: skip
        ctx.save_for_backward(x, of_inputs, of_states, gates, out, cells)
        ctx.shape = shape
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, wanted: Tensor) -> Any:
        x, of_inputs, of_states, gates, out, cells = ctx.saved_tensors
        length, stays, inputs = x.shape
        h, shape = of_states.shape[1], ctx.shape
        slopes = torch.empty_like(gates)
        _backward[(triton.cdiv(stays, ROWS), 2)](
            gates, of_states, cells, wanted.contiguous(), slopes, stays, L=length, H=h, GROUP=group(h), ROWS=ROWS,
            SLICE=shape.columns, STAGES=shape.stages_back, EXACT=INTERPRETED, num_warps=WARPS, **OPTIONS,
        )  # fmt: skip
        of_x = (slopes @ of_inputs).view_as(x) if ctx.needs_input_grad[0] else None
        # What a direction has seen of a step is the state of the step before it, in its own order.
        steps, states = slopes.view(length * stays, 2, 4 * h), out.view(length * stays, 2, h)
        seen = (length - 1) * stays
        of_both = [states[:seen, 0].T @ steps[stays:, 0], states[stays:, 1].T @ steps[:seen, 1]]
        return of_x, slopes.T @ x.reshape(length * stays, inputs), slopes.sum(0), torch.stack(of_both), None


def group(h: int) -> int:
    """Units whose gates lie together: warps have eight columns each in turn, and so all gates of a unit."""
    return min(h, 8 * WARPS)


class TrainingLSTM:
    """In place of the forward method of a network's LSTM, under autocast: differentiable, and rounded to `kind`."""

    def __init__(self, network: BidirectionalRNN, length: int, kind: torch.dtype = torch.bfloat16) -> None:
        if network.states > 2 * WIDEST:
            raise ValueError(f"the kernels are for LSTMs of at most {WIDEST} units")
        self.rnn, self.layers = network.rnn, list(layers_of(network))
        self.dropout = network.rnn.dropout if isinstance(network.rnn, DropoutRNN) else None
        self.hidden, self.kind = network.states // 2, kind
        self.width = max(32, triton.next_power_of_2(self.hidden))
        self.shape = self._first_that_fits(length)

    def __call__(self, x: Tensor) -> tuple[Tensor, Any]:
        """(B, L, inputs) → the states (B, L, 2 · hidden), and what an LSTM returns beside them."""
        if not torch.is_autocast_enabled(x.device.type):
            return type(self.rnn).forward(self.rnn, x)
        return self.states(x), None

    def states(self, x: Tensor) -> Tensor:
        x = x.transpose(0, 1)
        for number, layer in enumerate(self.layers):
            x = self._layer(*layer, self.dropout(x) if number and self.dropout else x)
        return x.transpose(0, 1)

    def _layer(self, module: torch.nn.LSTM, number: int, x: Tensor) -> Tensor:
        more, wider = self.width - self.hidden, -x.shape[-1] % ALIGNED
        of_inputs, of_states, *biases = (
            torch.stack([getattr(module, f"{name}_{end}") for end in (f"l{number}", f"l{number}_reverse")])
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        with torch.autocast(x.device.type, enabled=False):
            of_states = self._in_groups(of_states.unflatten(1, (4, -1)), (0, more, 0, more)).movedim(-1, 1)
            out: Tensor = Layer.apply(
                pad(x.to(self.kind), (0, wider)) if wider else x.to(self.kind),
                self._rounded(self._in_groups(of_inputs.unflatten(1, (4, -1)), (0, wider, 0, more))).flatten(0, 3),
                self._rounded(self._in_groups((biases[0] + biases[1]).unflatten(1, (4, -1)), (0, more))).flatten(),
                self._rounded(of_states).flatten(2),
                self.shape,
            )
        return out.unflatten(2, (2, self.width))[..., : self.hidden].flatten(2) if more else out

    def _in_groups(self, weights: Tensor, more: tuple[int, ...]) -> Tensor:
        """(2, 4, hidden, …) → (2, H / group, 4, group, …); units beyond the layer's own have no weights, and stay 0."""
        weights = pad(weights, more) if any(more) else weights
        grouped: Tensor = weights.unflatten(2, (-1, group(self.width)))
        return grouped.transpose(1, 2)

    def _rounded(self, weights: Tensor) -> Tensor:
        """In one copy; where nothing is to be rounded, `to` would leave them where they lie."""
        return weights.to(self.kind, memory_format=torch.contiguous_format).contiguous()

    def _first_that_fits(self, length: int) -> Shape:
        """The first shape that a stay of this length can be trained on with."""
        module = self.layers[0][0]
        weight = next(module.parameters())
        example = torch.zeros((length, 1, module.input_size), device=weight.device)
        for shape in SHAPES:
            self.shape = shape
            try:
                torch.autograd.grad(self._layer(*self.layers[0], example).float().sum(), weight)
            except OutOfResources:
                continue
            return shape
        raise ValueError("this GPU has no room for the kernels")
