"""Faster training from outside: the same network, and where something cannot be replaced training goes on."""

import copy

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch import Tensor, nn

import timediff as td
from timediff.generators import fitting
from timediff.kernels import training
from timediff.kernels.training import ALIGNED, LowPrecisionNorm, PaddedLinear, accelerate
from timediff.networks.brnn import BidirectionalRNN
from timediff.settings.resolve import resolve

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
KIND = torch.bfloat16 if DEVICE == "cuda" else torch.float32  # Triton's interpreter does not know bfloat16


@pytest.fixture(autouse=True)
def any_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not every CPU has oneDNN's LSTM in bfloat16; PyTorch's own is everywhere."""
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)


@pytest.fixture
def lstm_training():
    pytest.importorskip("triton", reason="Triton is there for Linux on x86 alone, and with PyTorch for CUDA")
    from timediff.kernels import lstm_training

    return lstm_training


@pytest.fixture
def network() -> BidirectionalRNN:
    torch.manual_seed(0)
    network = BidirectionalRNN(4, 16, noise_level_input=True).to(DEVICE)
    with torch.no_grad():
        for weight in network.parameters():
            weight.mul_(1.5)  # so that gates are not all half open
        network.norm.weight.uniform_(0.5, 2)
        network.norm.bias.normal_()
    return network


def batch(stays: int = 5, length: int = 3, inputs: int = 4) -> tuple[Tensor, Tensor]:
    return torch.randn(stays, length, inputs, device=DEVICE), torch.rand(stays, device=DEVICE)


def rounded(network: nn.Module, x: Tensor, t: Tensor) -> Tensor:
    with torch.autocast(DEVICE, torch.bfloat16):
        return network(x, t)


def distance(found: Tensor, wanted: Tensor) -> float:
    return float((found.detach() - wanted.detach()).norm() / (wanted.detach().norm() + 1e-6))


def gradients(network: nn.Module, output: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(output.float().square().sum(), list(network.parameters()))


def test_they_are_for_rounded_training_alone(lstm_training, network: BidirectionalRNN) -> None:
    x, t = batch()
    exact, said = network(x, t), list[str]()
    wanted = gradients(network, exact)
    accelerate(network, 3, say=said.append)
    assert not said
    assert isinstance(network.rnn.forward, lstm_training.TrainingLSTM)
    assert network.rnn.forward.kind == torch.bfloat16
    calls: list[Tensor] = []
    lstm = lstm_training.TrainingLSTM(network, 3, KIND)
    whole = lstm.states
    lstm.states = lambda x: calls.append(x) or whole(x)
    training.replace_forward(network.rnn, lstm)
    assert torch.equal(network(x, t), exact)
    assert not calls
    output = rounded(network, x, t)
    assert len(calls) == 1
    assert distance(output.float(), exact) < 0.03
    for found, one in zip(gradients(network, output), wanted, strict=True):
        assert distance(found, one) < 0.05


def test_without_kernels_norm_and_output_are_replaced_alone(network: BidirectionalRNN) -> None:
    x, t = batch()
    exact, said, names = network(x, t), list[str](), list(network.state_dict())
    accelerate(network, 3, kernels=False, say=said.append)
    assert not said
    assert "forward" not in vars(network.rnn)
    assert isinstance(network.norm.forward, LowPrecisionNorm)
    assert isinstance(network.output.forward, PaddedLinear)
    assert list(network.state_dict()) == names
    assert torch.equal(network(x, t), exact)
    output = rounded(network, x, t)
    assert output.dtype == torch.bfloat16
    assert output.shape == exact.shape
    assert distance(output.float(), exact) < 0.03


@pytest.mark.parametrize("outputs", [1, ALIGNED, ALIGNED + 3])
def test_a_padded_layer_computes_what_the_layer_does(outputs: int) -> None:
    layer, x = nn.Linear(6, outputs).to(DEVICE), torch.randn(3, 2, 6, device=DEVICE)
    padded = PaddedLinear(layer)
    assert torch.equal(padded(x), layer(x))
    with torch.autocast(DEVICE, torch.bfloat16):
        assert padded(x).shape == (3, 2, outputs)
        assert distance(padded(x).float(), layer(x).float()) < 1e-2


def test_a_norm_of_low_precision_stays_in_it(network: BidirectionalRNN) -> None:
    h, scale, shift = (torch.randn(*shape, device=DEVICE) for shape in ((3, 5, 32), (5, 32), (5, 32)))
    low = LowPrecisionNorm(network.norm)
    exact = network.norm(h, scale, shift)
    assert torch.equal(low(h, scale, shift), exact)
    with torch.autocast(DEVICE, torch.bfloat16):
        found = low(h, scale, shift)
    assert found.dtype == torch.bfloat16
    assert distance(found.float(), exact) < 0.02


def test_a_copy_is_trained_by_its_own_weights(lstm_training, network: BidirectionalRNN) -> None:
    accelerate(network, 3)
    training.replace_forward(network.rnn, lstm_training.TrainingLSTM(network, 3, KIND))
    other, (x, t) = copy.deepcopy(network), batch()
    for part in ("rnn", "norm", "output"):
        assert torch.equal(rounded(other, x, t), rounded(network, x, t)), part
        weight = next(getattr(network, part).parameters())
        with torch.no_grad():
            weight.add_(1)
        assert not torch.equal(rounded(other, x, t), rounded(network, x, t)), part
        with torch.no_grad():
            weight.copy_(next(getattr(other, part).parameters()))


def test_networks_within_others_are_found_and_others_left_as_they_are() -> None:
    outer = nn.ModuleDict({"denoiser": BidirectionalRNN(4, 8), "head": nn.Linear(3, 3)})
    accelerate(outer, 3, kernels=False)
    assert isinstance(outer["denoiser"].norm.forward, LowPrecisionNorm)
    assert "forward" not in vars(outer["head"])


@pytest.mark.parametrize("why", ["no Triton", "GRU", "300 units", "a kernel that fails"])
def test_without_them_rounded_training_goes_on_by_pytorch(why: str, monkeypatch: pytest.MonkeyPatch, request) -> None:
    """In silence where there is no Triton; or else in one line that says why."""
    network = BidirectionalRNN(4, 300 if "units" in why else 8, cell="gru" if why == "GRU" else "lstm").to(DEVICE)
    if why == "no Triton":
        monkeypatch.setattr(training, "find_spec", lambda name: None)
    else:
        lstm_training = request.getfixturevalue("lstm_training")
    if why == "a kernel that fails":
        monkeypatch.setattr(lstm_training, "_forward", None)
    said: list[str] = []
    accelerate(network, 5, say=said.append)
    assert len(said) == (why != "no Triton")
    assert all(line.startswith("the RNN is trained by cuDNN: ") and "\n" not in line for line in said)
    assert "forward" not in vars(network.rnn)
    rounded(network, *batch(3, 5)).float().sum().backward()
    assert all(weight.grad is not None for weight in network.parameters())


@pytest.mark.parametrize(
    ("precision", "kernels", "asked"), [("bf16", True, [7]), ("bf16", False, []), ("no", True, [])]
)
def test_fit_asks_for_them_when_products_are_rounded_unless_set_not_to(
    precision: str, kernels: bool, asked: list[int], lstm_training, monkeypatch: pytest.MonkeyPatch
) -> None:
    AcceleratorState._reset_state(reset_partial_state=False)  # which keeps the first precision of a process
    accelerator = Accelerator(mixed_precision=precision, cpu=True)
    found: list[int] = []

    def asked_for(network: BidirectionalRNN, length: int) -> None:
        found.append(length)
        raise ValueError("and not given")

    monkeypatch.setattr(fitting, "make_accelerator", lambda settings: accelerator)
    monkeypatch.setattr(lstm_training, "TrainingLSTM", asked_for)
    changes = {"training.steps": 1, "training.kernels": kernels, "model.hidden": 4}
    td.TimeDiff(settings=resolve("fast", assignments=changes)).fit(td.simulate(20, steps=7, seed=0), seed=0)
    assert found == asked
