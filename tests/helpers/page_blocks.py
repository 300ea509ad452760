"""Runs the code of a page, in order, as a reader would, but on tiny settings."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEREDOC = re.compile(r"cat > (\S+) <<'END'\n(.*?)^END\n", re.MULTILINE | re.DOTALL)
WELL = (0, 3)  # exit codes; 3 is what a verdict says of a cohort that is far too small
TINY = {  # appended to each command; the last of an option counts
    "simulate": ["--stays", "240"],
    "fit": ["--set", "training.steps=3"],
    "sample": ["-n", "60"],
    "evaluate": ["--only", "copies", "--repetitions", "1"],
    "compare": ["--set", "training.steps=3", "-n", "60", "--seeds", "1", "--only", "copies"],
    "audit": ["--no-power"],
}


def run_page(page: Path, call: Callable[[list[str]], int]) -> None:
    """In the current folder; `call` is the command line in this process."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for language, text in BLOCK.findall(page.read_text()):
        if language == "python":
            tiny = re.sub(r'"training\.steps": \d+', '"training.steps": 3', text)
            exec(compile(tiny, page.name, "exec"), names)
        else:
            _shell(text, call)


def _shell(text: str, call: Callable[[list[str]], int]) -> None:
    for name, content in HEREDOC.findall(text):
        Path(name).write_text(content)
    for line in HEREDOC.sub("", text).replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        given = dict(word.split("=", 1) for word in words[: words.index("timediff")])
        command, *arguments = words[words.index("timediff") + 1 :]
        own = command == "fit" and "--generator" in arguments  # which has no such settings
        arguments = [command, *arguments, *([] if own else TINY.get(command, []))]
        if given:  # in a process of its own, in which nothing has been imported yet
            started = [sys.executable, "-P", "-m", "timediff", *arguments]
            subprocess.run(started, env={**os.environ, **given}, check=True, capture_output=True)
        else:
            assert call(arguments) in WELL, line
