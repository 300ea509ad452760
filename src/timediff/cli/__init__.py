"""The command line: parses, calls, shows progress."""

from timediff.cli.commands import app, main

__all__ = ["app", "main"]
