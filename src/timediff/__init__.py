"""TimeDiff: learns from intensive-care records and generates synthetic ones.

Every name below is imported when it is first used, so that `import timediff` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "Cohort",
    "EvaluationSettings",
    "Feature",
    "Generator",
    "Results",
    "Schema",
    "Settings",
    "Split",
    "TimeDiff",
    "TimeDiffError",
    "evaluate",
    "evaluate_to",
    "generator",
    "load",
    "marginals",
    "read_cohort",
    "resolve",
    "sample_to",
    "simulate",
    "write_comparison",
    "write_raw",
]

_HOMES = {
    "Cohort": "timediff.cohort",
    "read_cohort": "timediff.cohort",
    "Feature": "timediff.schema",
    "Schema": "timediff.schema",
    "Split": "timediff.schema",
    "Settings": "timediff.config",
    "resolve": "timediff.config",
    "simulate": "timediff.sources.simulated",
    "write_raw": "timediff.sources.raw",
    "Generator": "timediff.generators.base",
    "TimeDiff": "timediff.generators.timediff",
    "generator": "timediff.generators.registry",
    "load": "timediff.generators.registry",
    "sample_to": "timediff.generators.streaming",
    "EvaluationSettings": "timediff.evaluation",
    "evaluate": "timediff.evaluation",
    "evaluate_to": "timediff.evaluation",
    "Results": "timediff.results",
    "marginals": "timediff.metrics.marginals",
    "write_comparison": "timediff.report.page",
    "TimeDiffError": "timediff.errors",
}

if TYPE_CHECKING:
    from timediff.cohort import Cohort, read_cohort
    from timediff.config import Settings, resolve
    from timediff.errors import TimeDiffError
    from timediff.evaluation import EvaluationSettings, evaluate, evaluate_to
    from timediff.generators.base import Generator
    from timediff.generators.registry import generator, load
    from timediff.generators.streaming import sample_to
    from timediff.generators.timediff import TimeDiff
    from timediff.metrics.marginals import marginals
    from timediff.report.page import write_comparison
    from timediff.results import Results
    from timediff.schema import Feature, Schema, Split
    from timediff.sources.raw import write_raw
    from timediff.sources.simulated import simulate


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'timediff' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
