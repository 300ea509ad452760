"""The log of a run."""

import json
import socket
from pathlib import Path


def test_the_log_tells_of_every_loss(whole: Path) -> None:
    lines = [json.loads(line) for line in (whole / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [2, 4, 6, 8, 10, 12]
    for line in lines:
        assert abs(line["total"] - (0.01 * line["discrete"] + line["continuous"])) < 1e-4 * line["total"]


def test_the_names_of_its_files_do_not_tell_of_the_machine(whole: Path) -> None:
    assert [socket.gethostname() in file.name for file in (whole / "tensorboard").iterdir()] == [False]
