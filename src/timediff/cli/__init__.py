"""The command line: parses, calls, shows progress."""

from timediff.cli.auditing import audit
from timediff.cli.commands import app, main
from timediff.cli.comparison import compare
from timediff.cli.documents import dossier
from timediff.cli.inferring import infer
from timediff.cli.reproduction import reproduce

__all__ = ["app", "audit", "compare", "dossier", "infer", "main", "reproduce"]
