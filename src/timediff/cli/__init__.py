"""The command line: parses, calls, shows progress."""

from timediff.cli.commands import app, main
from timediff.cli.comparison import compare

__all__ = ["app", "compare", "main"]
