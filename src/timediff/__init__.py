"""TimeDiff: learns from intensive-care records and generates synthetic ones.

Every name below is imported when it is first used, so that `import timediff` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "About",
    "Audit",
    "AuditSettings",
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
    "audit",
    "audit_to",
    "batches",
    "check",
    "compare",
    "describe",
    "dossier",
    "evaluate",
    "evaluate_to",
    "export",
    "extract",
    "generator",
    "infer",
    "load",
    "marginals",
    "read_cohort",
    "reproduce",
    "resolve",
    "sample_to",
    "simulate",
    "write_comparison",
    "write_raw",
]

_HOMES = {
    "Cohort": "timediff.data.cohort",
    "read_cohort": "timediff.data.cohort",
    "batches": "timediff.data.batches",
    "Feature": "timediff.data.schema",
    "Schema": "timediff.data.schema",
    "Split": "timediff.data.schema",
    "Settings": "timediff.generators.timediff.settings",
    "resolve": "timediff.settings.resolve",
    "simulate": "timediff.sources.simulated",
    "extract": "timediff.sources.extract",
    "infer": "timediff.sources.infer",
    "describe": "timediff.report.cohort_summary",
    "write_raw": "timediff.sources.raw",
    "Generator": "timediff.generators.base",
    "TimeDiff": "timediff.generators.timediff.generator",
    "generator": "timediff.generators.registry",
    "load": "timediff.generators.registry",
    "sample_to": "timediff.generators.streaming",
    "EvaluationSettings": "timediff.evaluation.settings",
    "evaluate": "timediff.evaluation.evaluate",
    "evaluate_to": "timediff.evaluation.evaluate",
    "Results": "timediff.evaluation.results",
    "export": "timediff.exports.export",
    "Audit": "timediff.evaluation.audit_results",
    "AuditSettings": "timediff.evaluation.audit_work",
    "audit": "timediff.evaluation.audit",
    "audit_to": "timediff.evaluation.audit",
    "marginals": "timediff.evaluation.metrics.marginals",
    "write_comparison": "timediff.report.comparison_page",
    "check": "timediff.cli.check",
    "compare": "timediff.comparison.compare",
    "reproduce": "timediff.reproduction.reproduce",
    "About": "timediff.documents.about",
    "dossier": "timediff.documents.dossier",
    "TimeDiffError": "timediff.errors",
}

_CALLED = {"Settings": "TimeDiffSettings"}  # there

if TYPE_CHECKING:
    from timediff.cli.check import check
    from timediff.comparison.compare import compare
    from timediff.data.batches import batches
    from timediff.data.cohort import Cohort, read_cohort
    from timediff.data.schema import Feature, Schema, Split
    from timediff.documents.about import About
    from timediff.documents.dossier import dossier
    from timediff.errors import TimeDiffError
    from timediff.evaluation.audit import audit, audit_to
    from timediff.evaluation.audit_results import Audit
    from timediff.evaluation.audit_work import AuditSettings
    from timediff.evaluation.evaluate import evaluate, evaluate_to
    from timediff.evaluation.metrics.marginals import marginals
    from timediff.evaluation.results import Results
    from timediff.evaluation.settings import EvaluationSettings
    from timediff.exports.export import export
    from timediff.generators.base import Generator
    from timediff.generators.registry import generator, load
    from timediff.generators.streaming import sample_to
    from timediff.generators.timediff.generator import TimeDiff
    from timediff.generators.timediff.settings import TimeDiffSettings as Settings
    from timediff.report.cohort_summary import describe
    from timediff.report.comparison_page import write_comparison
    from timediff.reproduction.reproduce import reproduce
    from timediff.settings.resolve import resolve
    from timediff.sources.extract import extract
    from timediff.sources.infer import infer
    from timediff.sources.raw import write_raw
    from timediff.sources.simulated import simulate


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'timediff' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), _CALLED.get(name, name))


def __dir__() -> list[str]:
    return __all__
