"""Methods: the rows of the paper's tables, each a generator with the settings that were published, and one of today."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from timediff.comparison.rows import Row
from timediff.generators.registry import GENERATORS, choose
from timediff.reproduction.budget import FEWEST_UPDATES, Scale
from timediff.reproduction.datasets import Kind
from timediff.settings.resolve import resolve

FULL_STEPS = 1000  # of sampling, where a preset leaves them unset


@dataclass(frozen=True)
class Method:
    name: str  # of its row in published/
    title: str
    preset: str = ""  # empty: TimeDiff's, which the data set names
    changes: Mapping[str, Any] = field(default_factory=dict)


TIMEDIFF = Method("timediff", "TimeDiff")
FAST = Method("fast", "TimeDiff, preset fast (not in the paper)", "fast")
BASELINES = tuple(
    Method(name, title, f"{name}-published")
    for name, title in {
        "ehrmgan": "EHR-M-GAN", "dspd-gp": "DSPD-GP", "dspd-ou": "DSPD-OU", "cspd-gp": "CSPD-GP", "cspd-ou": "CSPD-OU",
        "gtgan": "GT-GAN", "timegan": "TimeGAN", "rcgan": "RCGAN", "crnngan": "C-RNN-GAN", "tforcing": "T-Forcing",
        "pforcing": "P-Forcing", "halo": "HALO",
    }.items()
)  # fmt: skip
EVERY = (TIMEDIFF, FAST, *BASELINES)
REAL = Method("real", "Real data")  # nothing is trained for it
ABLATION = (
    Method("rounding", "Gaussian and rounding", changes={"diffusion.discrete": "rounding"}),
    Method("softmax", "Gaussian and softmax", changes={"diffusion.discrete": "softmax"}),
)
LAMBDAS = tuple(
    Method(f"lambda-{text}", f"λ = {text}", changes={"diffusion.lambda": float(text)})
    for text in ("0.001", "0.01", "0.1", "1", "10")
)
CDE = Method("cde", "neural CDE", changes={"model.network": "cde"})
STATIC = Method("static", "TimeDiff")  # on the supplement's channels; the paper's row has a name of its own


def row_of(method: Method, kind: Kind, scale: Scale) -> Row:
    """The generator and its settings on a data set, with as many updates as the budget leaves."""
    owner, preset = choose(None, method.preset or kind.preset)
    settings = resolve(preset or GENERATORS(owner).Settings(), assignments=dict(method.changes))
    return Row(owner, GENERATORS(owner), scaled(settings, kind, scale))


def scaled(settings: Any, kind: Kind, scale: Scale) -> Any:
    """The settings with fewer updates and sampling steps, where they have any; other generators take none."""
    parts: list[Any] = [getattr(settings, part, None) for part in ("training", "sampling", "codec")]
    training, sampling, codec = parts
    if training is not None and scale.updates < 1:
        fewest = min(FEWEST_UPDATES, training.steps)
        steps = max(fewest, round(training.steps * scale.updates))
        warmup = round(training.warmup * steps / training.steps)
        settings = replace(settings, training=replace(training, steps=steps, warmup=warmup))
    if scale.sampling is not None and hasattr(sampling, "steps"):
        full = sampling.steps or getattr(settings.diffusion, "steps", FULL_STEPS) or FULL_STEPS
        settings = replace(settings, sampling=replace(sampling, steps=min(full, scale.sampling)))
    if kind.sparse and hasattr(codec, "sparse"):
        settings = replace(settings, codec=replace(codec, sparse=kind.sparse))
    return settings


def full_updates(method: Method, kind: Kind) -> int | None:
    """How many updates its preset takes; None of a generator that takes none."""
    owner, preset = choose(None, method.preset or kind.preset)
    found = getattr(resolve(preset or GENERATORS(owner).Settings()), "training", None)
    return None if found is None else int(found.steps)
