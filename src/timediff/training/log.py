"""The log of a run: JSON lines for programs, TensorBoard for eyes, where it is tracked."""

import json
from pathlib import Path
from types import TracebackType
from typing import Any

from timediff.runtime.parsing import Unreadable, parse_json, read_text


class Log:
    """Appends to `log.jsonl` and, with `board`, `tensorboard/`, and takes nothing back.

    The first line of a resumed run names the update that it went on from: lines of later ones before it are superseded.
    """

    def __init__(self, folder: Path, after: int, *, board: bool = True) -> None:
        path = folder / "log.jsonl"
        self._resumed = {"resumed_from": after} if path.exists() and path.stat().st_size else {}
        self._break = "" if _ends_with_newline(path) else "\n"  # after half a line, of a run killed while it wrote
        self._file = path.open("a", encoding="utf-8")
        self._tensorboard = folder / "tensorboard"
        self._board: Any = self._opened(after) if board else None

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()
        if self._board:
            self._board.close()
            _without_host(self._tensorboard)

    def write(self, step: int, values: dict[str, float]) -> None:
        self._file.write(self._break + json.dumps({"step": step, **self._resumed, **values}) + "\n")
        self._file.flush()
        self._break, self._resumed = "", {}
        for name, value in values.items() if self._board else ():
            self._board.add_scalar(f"training/{name}", value, step)

    def _opened(self, after: int) -> Any:
        from torch.utils.tensorboard import SummaryWriter

        _without_host(self._tensorboard)
        board = SummaryWriter(str(self._tensorboard), purge_step=after + 1)
        board.flush()  # makes the file, which can then be renamed while it is open
        _without_host(self._tensorboard)
        return board


def read_log(path: Path) -> list[dict[str, Any]]:
    """The lines that led to the run as it is: none that was superseded, none that was cut off."""
    lines: list[dict[str, Any]] = []
    for text in read_text(path).splitlines():
        try:
            line = parse_json(text, str(path), finite=False)
        except Unreadable:  # half a line
            continue
        if isinstance(line, dict) and isinstance(line.get("step"), int):
            after = line.get("resumed_from", line["step"] - 1)
            lines = [one for one in lines if one["step"] <= after] + [line]
    return lines


def _ends_with_newline(path: Path) -> bool:
    """Also of a file that is empty or not there."""
    if not path.exists() or not path.stat().st_size:
        return True
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"


def _without_host(folder: Path) -> None:
    """TensorBoard puts the machine's name into its files' names, and a run folder may be given away."""
    for file in folder.glob("events.out.tfevents.*"):
        # events.out.tfevents.TIME.HOST.PROCESS.NUMBER, and a host may have dots in its name
        parts = file.name.split(".")
        file.rename(file.with_name(".".join([*parts[:4], "timediff", *parts[-2:]])))
