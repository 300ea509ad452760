"""Experiments by name, in the order of the paper."""

from collections.abc import Sequence
from difflib import get_close_matches

from timediff.errors import TimeDiffError
from timediff.reproduction.experiments import downstream, fidelity, pictures, privacy, supplement, tables
from timediff.reproduction.experiments.base import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    one.name: one
    for one in (
        tables.DATASETS,
        fidelity.SCORES,
        downstream.TSTR,
        downstream.TSRTR,
        downstream.RNN_CLASSIFIERS,
        privacy.PRIVACY,
        tables.RUNTIME,
        fidelity.ABLATED,
        fidelity.LAMBDA,
        fidelity.NEURAL_CDE,
        pictures.TSNE,
        pictures.UMAP,
        pictures.TRAJECTORIES,
        supplement.SUPPLEMENT,
    )
}


def chosen(names: Sequence[str]) -> list[Experiment]:
    """Those named, or all; in the order of the paper."""
    for name in names:
        if name not in EXPERIMENTS:
            near = get_close_matches(name, EXPERIMENTS, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise TimeDiffError(f"there is no experiment {name[:40]!r}; they are {', '.join(EXPERIMENTS)}.{hint}")
    return [one for name, one in EXPERIMENTS.items() if not names or name in names]
