"""What training changes, and a checkpoint keeps: the network, its average, the optimizers and the validation."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from timediff.errors import TimeDiffError
from timediff.runtime.progress import Say
from timediff.settings.training import TrainingSettings
from timediff.training.checkpoints import Checkpoint, Checkpoints
from timediff.training.ema import EMA
from timediff.training.objective import Objective
from timediff.training.validation import Validation


@dataclass
class TrainingState:
    network: nn.Module
    ema: EMA
    optimizers: dict[str, torch.optim.Optimizer]  # by their part of a checkpoint
    validations: Sequence[Validation] = ()

    @staticmethod
    def initial(
        network: nn.Module, objectives: Sequence[Objective], settings: TrainingSettings,
        validations: Sequence[Validation] = (),
    ) -> "TrainingState":  # fmt: skip
        optimizers = {
            _part(one): make_optimizer(one.parameters(network), settings, one.optimizer) for one in objectives
        }
        return TrainingState(network, EMA(network, settings.ema), optimizers, validations)

    def parts(self) -> dict[str, dict[str, Tensor]]:
        """For a checkpoint."""
        optimizers = {part: _flattened(optimizer) for part, optimizer in self.optimizers.items()}
        found = {"model": self.network.state_dict(), "ema": self.ema.weights} | optimizers
        for validation in self.validations:
            found |= validation.parts()
        return found

    def restore(self, checkpoints: Checkpoints | None, say: Say) -> int:
        """Goes back to the newest checkpoint, and says of how many training steps it is."""
        checkpoint = checkpoints.newest(say) if checkpoints else None
        if checkpoint is None:
            return 0
        if found := self._misfits(checkpoint):
            raise TimeDiffError(
                f"the checkpoint of update {checkpoint.step:,} does not fit this run ({found[0]}): it is another "
                "run's, or the settings were edited. Restore the folder, or fit again."
            )
        say(f"going on from update {checkpoint.step:,}")
        self.network.load_state_dict(checkpoint.parts["model"])
        self.ema.load(checkpoint.parts["ema"])
        for validation in self.validations:
            if validation.part_names[1] in checkpoint.parts:
                validation.load(checkpoint.parts)
        for part, optimizer in self.optimizers.items():
            state: dict[int, dict[str, Tensor]] = {}
            for name, value in checkpoint.parts[part].items():
                number, _, key = name.partition(".")
                state.setdefault(int(number), {})[key] = value
            optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
        return checkpoint.step

    def _misfits(self, checkpoint: Checkpoint) -> list[str]:
        """What of a checkpoint could not be gone on from."""
        parts, network = checkpoint.parts, self.network.state_dict()
        kinds = {"model": network, "ema": self.ema.weights}
        for validation in self.validations:
            best, _ = validation.part_names
            kinds |= {best: {n: v for n, v in network.items() if n in validation.chosen}} if best in parts else {}
        found = [problem for part, expected in kinds.items() for problem in _unlike(part, parts.get(part), expected)]
        for best, validated in (validation.part_names for validation in self.validations):
            if validated in parts:
                found += [] if best in parts else [f"{best} is missing"]
                found += _unlike(validated, parts[validated], {"state": torch.zeros(4)}, finite=False)
        for part, optimizer in self.optimizers.items():
            if part not in parts:
                found.append(f"{part} is missing")
                continue
            shapes: dict[str, Tensor] = {}
            for number, parameter in enumerate(_parameters(optimizer)):
                if any(name.startswith(f"{number}.") for name in parts[part]):  # an optimizer may not have begun yet
                    moments = {f"{number}.exp_avg": parameter, f"{number}.exp_avg_sq": parameter}
                    shapes |= moments | {f"{number}.step": torch.zeros(())}
            found += _unlike(part, parts[part], shapes, finite=False)
        return found

    def over(self, patience: int | None) -> bool:
        """Whether validation says that it is enough, of all objectives."""
        return bool(self.validations) and all(validation.over(patience) for validation in self.validations)

    def finished(self, patience: int | None) -> frozenset[str]:
        """The objectives of which it says so."""
        return frozenset(one.name for one in self.validations if one.name and one.over(patience))

    def best_weights(self, say: Say) -> dict[str, Tensor]:
        """The averaged weights, those with the lowest validation loss where there is one."""
        weights, seen = dict(self.ema.weights), [one for one in self.validations if one.seen]
        for validation in seen:
            weights |= validation.best
        if seen:
            steps = " and ".join(f"{one.best_step:,}" + (f" ({one.name})" if one.name else "") for one in seen)
            say(f"held-out loss was lowest after update {steps}: those weights are kept")
        return weights

    def require_finite(self, loss: float, done: int, lr: float | None, saved: int) -> None:
        """A loss or a weight that is no number is never saved."""
        norms = torch.stack(torch._foreach_norm(list(self.network.parameters())))
        if math.isfinite(loss) and bool(norms.isfinite().all()):
            return
        kept = f" The checkpoint of update {saved:,} is sound." if saved else ""
        raise TimeDiffError(
            f"training broke down before update {done:,}: the loss or a weight is no longer a number. "
            f"Start again with a lower training.lr than {lr}.{kept}"
        )


def make_optimizer(
    parameters: list[nn.Parameter], settings: TrainingSettings, kind: str | None = None
) -> torch.optim.Optimizer:
    """Adam or SGD, whose learning rate is a tensor: a CUDA graph then follows its changes.

    Only where they are fused do both skip a step by a flag on the device, and does SGD leave its learning rate there.
    """
    device = parameters[0].device
    lr = torch.zeros((), device=device)
    # A list and no weight decay: the order of parameters is the order of their states in a checkpoint.
    if (kind or settings.optimizer) == "sgd":
        return torch.optim.SGD(parameters, lr=lr, fused=True)
    return torch.optim.Adam(parameters, lr=lr, betas=settings.betas, fused=True, capturable=device.type == "cuda")


def _part(objective: Objective) -> str:
    return f"optimizer-{objective.name}" if objective.name else "optimizer"


def _parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _unlike(
    part: str, found: Mapping[str, Tensor] | None, expected: Mapping[str, Tensor], *, finite: bool = True
) -> list[str]:
    """Where tensors of a checkpoint have other names or shapes than expected, or are no numbers."""
    if found is None:
        return [f"{part} is missing"]
    names = [f"{part} has no {name}" for name in expected if name not in found]
    names += [f"{part} has an unknown {name}" for name in found if name not in expected]
    same = [name for name in expected if name in found]
    shapes = [f"{name} of {part} has another shape" for name in same if found[name].shape != expected[name].shape]
    broken = [f"{name} of {part} is not finite" for name in same if finite and not found[name].isfinite().all()]
    return names + shapes + broken


def _flattened(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    state = optimizer.state_dict()["state"]
    return {f"{number}.{key}": value for number, entry in state.items() for key, value in entry.items()}
