"""The command line: parses, calls, shows progress. Everything it does can be done from Python too."""

from timediff.cli import cohort_commands, model_commands, result_commands
from timediff.cli.auditing import audit
from timediff.cli.comparison import compare
from timediff.cli.documents import dossier
from timediff.cli.inferring import infer
from timediff.cli.program import app, main
from timediff.cli.reproduction import reproduce

__all__ = [
    "app",
    "audit",
    "cohort_commands",
    "compare",
    "dossier",
    "infer",
    "main",
    "model_commands",
    "reproduce",
    "result_commands",
]  # fmt: skip
