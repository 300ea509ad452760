"""A trained bidirectional LSTM as a GPU computes it soonest: all steps of a layer in one kernel.

cuDNN launches every step as a product and the gates' arithmetic after it, and writes what is between them to memory.
Here a program keeps to some stays and goes through their steps; weights come from the chip's cache. Products are of
float16 numbers, gathered in single precision: the digits are those of TF32. Cell states stay in single precision.
"""

from collections.abc import Iterator

import torch
import triton
import triton.language as tl
from torch import Tensor, nn
from torch.nn.functional import pad
from triton.language.core import inline_asm_elementwise

from timediff.kernels.training import ALIGNED
from timediff.networks.brnn import BidirectionalRNN, DropoutRNN

WIDEST = 256  # units a direction
# Of a program: stays, units at once, warps, slices of weights under way. The first that a GPU has room for is taken.
SHAPES = ((128, 16, 8, 3), (128, 16, 8, 2), (64, 16, 4, 1), (32, 16, 4, 1))
CELLS = 16  # steps that a program normalises
INTERPRETED = triton.knobs.runtime.interpret
OPTIONS = {"enable_fp_fusion": True}  # a · b + c rounded once; newer Tritons want it said


@triton.jit
def tanh(x, EXACT: tl.constexpr):
    if EXACT:
        return 2 * tl.sigmoid(2 * x) - 1
    return inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def sigmoid(x, EXACT: tl.constexpr):
    return 0.5 + 0.5 * tanh(0.5 * x, EXACT)


@triton.jit(do_not_specialize=["B"])  # not compiled again for another number of stays
def _layer(
    gates, weights, out, cells, B, L: tl.constexpr,
    H: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr, STAGES: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """One direction of some stays: gates (B, L, 2, 4 · H), weights (2, H, 4 · H), out (B, L, 2, H), cells (2, B, H).

    The four gates of eight units lie together, so that a product has them in the same registers.
    """
    back = tl.program_id(1)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = (row < B)[:, None]
    row = row.to(tl.int64)[:, None]
    unit, column = tl.arange(0, H), tl.arange(0, 4 * UNITS)
    weights += back * 4 * H * H
    cells += (back.to(tl.int64) * B + row) * H
    for step in tl.range(0, L, num_stages=1):
        t = back * (L - 1 - step) + (1 - back) * step
        now = (row * L + t) * 2 + back
        begun = here & (step > 0)
        h = tl.load(out + (now + 4 * back - 2) * H + unit[None, :], mask=begun, other=0.0)
        for start in tl.range(0, H, UNITS, num_stages=STAGES):
            some = start + tl.arange(0, UNITS)[None, :]
            given = gates + (now * H + start) * 4 + column[None, :]  # read once, the weights by all
            given = tl.load(given, mask=here, other=0.0, eviction_policy="evict_first").to(tl.float32)
            w = weights + (unit[:, None] * H + start) * 4 + column[None, :]
            a = tl.dot(h, tl.load(w, eviction_policy="evict_last"), given)
            a = tl.permute(tl.reshape(a, (ROWS, UNITS // 8, 2, 2, 8)), (0, 1, 4, 2, 3))
            first_and_third, second_and_fourth = tl.split(a)
            i, g = tl.split(first_and_third)
            f, o = tl.split(second_and_fourth)
            c = tl.reshape(tl.load(cells + some, mask=begun, other=0.0), (ROWS, UNITS // 8, 8))
            c = sigmoid(f, EXACT) * c + sigmoid(i, EXACT) * tanh(g, EXACT)
            y = sigmoid(o, EXACT) * tanh(c, EXACT)
            tl.store(cells + some, tl.reshape(c, (ROWS, UNITS)), mask=here)
            tl.store(out + now * H + some, tl.reshape(y, (ROWS, UNITS)).to(tl.float16), mask=here)
        tl.debug_barrier()  # what this step has written is read by the next


@triton.jit(do_not_specialize=["N"])
def _modulate(
    states, weight, bias, scale, shift, stride, out, N, L, EPS: tl.constexpr,
    HIDDEN: tl.constexpr, H: tl.constexpr, CELLS: tl.constexpr,
):  # fmt: skip
    """(norm(h) · weight + bias) · (1 + scale) + shift of states (N, 2, H), of which HIDDEN units are; scale
    and shift have a row of `stride` numbers for each L."""
    cell = (tl.program_id(0) * CELLS + tl.arange(0, CELLS)).to(tl.int64)[:, None]
    place = tl.arange(0, 2 * H)[None, :]
    column, real = place // H * HIDDEN + place % H, place % H < HIDDEN
    here = (cell < N) & real
    x = tl.load(states + cell * 2 * H + place, mask=here, other=0.0).to(tl.float32)
    mean = tl.sum(x, 1)[:, None] / (2 * HIDDEN)
    x = tl.where(real, x - mean, 0.0)
    x *= tl.rsqrt(tl.sum(x * x, 1)[:, None] / (2 * HIDDEN) + EPS)
    x = x * tl.load(weight + column, mask=real, other=0.0) + tl.load(bias + column, mask=real, other=0.0)
    given = cell // L * stride + column
    x = x * (1 + tl.load(scale + given, mask=here, other=0.0)) + tl.load(shift + given, mask=here, other=0.0)
    tl.store(out + cell * 2 * HIDDEN + column, x.to(tl.float16), mask=here)


def fused(network: nn.Module) -> "FusedRNN":
    """The network by these kernels, or a ValueError where they do not cover it."""
    if type(network) is not BidirectionalRNN:
        raise ValueError(f"no kernels cover a {type(network).__name__}")
    return FusedRNN(network)


class FusedRNN:
    """What `network` computes, to rounding, from its weights as they are now; the output is in float16."""

    def __init__(self, network: BidirectionalRNN) -> None:
        if network.states > 2 * WIDEST:
            raise ValueError(f"the kernels are for LSTMs of at most {WIDEST} units")
        self.network = network
        self.hidden = network.states // 2
        self.width = max(32, triton.next_power_of_2(self.hidden))
        self.shapes = list(SHAPES)
        with torch.no_grad():
            self.layers = [self._packed(*each, number > 0) for number, each in enumerate(layers_of(network))]
            weight, bias = network.output.weight, network.output.bias
            more = -len(bias) % ALIGNED
            self.output = pad(weight.T, (0, more)).half().contiguous(), pad(bias, (0, more)).half()
        if not all(one.isfinite().all() for layer in [*self.layers, self.output] for one in layer):
            raise ValueError("some weights are too large for float16")

    def __call__(self, x: Tensor, t: Tensor) -> Tensor:
        seen, scale, shift = self.network.condition(x, t)
        stays, length, columns = seen.shape
        x = torch.zeros((stays * length, len(self.layers[0][0])), dtype=torch.float16, device=seen.device)
        x[:, :columns] = seen.reshape(stays * length, columns)
        for w, bias, recurrent in self.layers:
            x = self._recur(torch.addmm(bias, x, w).view(stays, length, -1), recurrent)
        norm = self.network.norm
        out = x.new_empty((stays * length, 2 * self.hidden))
        _modulate[(triton.cdiv(len(out), CELLS),)](
            x, norm.weight, norm.bias, scale, shift, scale.stride(0), out, len(out), length, EPS=norm.eps,
            HIDDEN=self.hidden, H=self.width, CELLS=CELLS, **OPTIONS,
        )  # fmt: skip
        output, bias = self.output
        return torch.addmm(bias, out, output).view(stays, length, -1)[..., : self.network.output.out_features]

    def _recur(self, gates: Tensor, weights: Tensor) -> Tensor:
        while True:
            try:
                return recur(gates, weights, *self.shapes[0])
            except triton.runtime.errors.OutOfResources:
                if len(self.shapes) == 1:
                    raise
            del self.shapes[0]

    def _packed(self, layer: nn.LSTM, number: int, later: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Weights (inputs, 2 · 4 · H) and biases of the inputs, and those of the states (2, H, 4 · H).

        H is a power of two. Units beyond the layer's own have no weights, so that they stay 0.
        """
        more = self.width - self.hidden
        of_inputs, biases, of_states = [], [], []
        for end in (f"l{number}", f"l{number}_reverse"):
            inputs, states, *both = (
                getattr(layer, f"{name}_{end}").unflatten(0, (4, self.hidden))
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            if later:  # inputs are the states of a layer before it
                inputs = pad(inputs.unflatten(2, (2, self.hidden)), (0, more)).flatten(2)
            of_inputs.append(_in_eights(pad(inputs, (0, -inputs.shape[2] % ALIGNED, 0, more))))
            biases.append(_in_eights(pad(sum(both), (0, more))))
            of_states.append(_in_eights(pad(states, (0, more, 0, more))).T)
        return (
            torch.cat(of_inputs).T.half().contiguous(),
            torch.cat(biases).half(),
            torch.stack(of_states).half().contiguous(),
        )


def recur(gates: Tensor, weights: Tensor, rows: int, units: int, warps: int, stages: int) -> Tensor:
    """The states (B · L, 2 · H) of a layer from what its inputs add to the gates (B, L, 2 · 4 · H)."""
    stays, length, h = *gates.shape[:2], weights.shape[1]
    out = gates.new_empty((stays * length, 2 * h))
    cells = torch.empty((2, stays, h), device=gates.device)
    _layer[(triton.cdiv(stays, rows), 2)](
        gates, weights, out, cells, stays, L=length,
        H=h, ROWS=rows, UNITS=units, STAGES=stages, EXACT=INTERPRETED, num_warps=warps,
        **OPTIONS,
    )  # fmt: skip
    return out


def _in_eights(x: Tensor) -> Tensor:
    """(4, H, …) → (4 · H, …): the gates of eight units, then those of the next eight."""
    return x.reshape(4, -1, 8, *x.shape[2:]).transpose(0, 1).flatten(0, 2)


def layers_of(network: BidirectionalRNN) -> Iterator[tuple[nn.LSTM, int]]:
    """Each layer, and its number within its module."""
    modules = network.rnn.layers if isinstance(network.rnn, DropoutRNN) else [network.rnn]
    for module in modules:
        if not isinstance(module, nn.LSTM):
            raise ValueError("the kernels are for LSTMs")
        for number in range(module.num_layers):
            yield module, number
