"""The command line: parses, calls, shows progress."""

from timediff.cli.auditing import audit
from timediff.cli.commands import app, main
from timediff.cli.comparison import compare
from timediff.cli.documents import dossier

__all__ = ["app", "audit", "compare", "dossier", "main"]
