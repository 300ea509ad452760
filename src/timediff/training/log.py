"""The log of a run: JSON lines for programs, TensorBoard for eyes."""

import json
from pathlib import Path
from types import TracebackType
from typing import Any


class Log:
    """Appends to `log.jsonl` and `tensorboard/`; on resuming, what came after the checkpoint is forgotten."""

    def __init__(self, folder: Path, after: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        path = folder / "log.jsonl"
        kept = [line for line in path.read_text().splitlines() if _step(line) <= after] if path.exists() else []
        self._file = path.open("w")
        self._file.writelines(f"{line}\n" for line in kept)
        self._tensorboard = folder / "tensorboard"
        _without_host(self._tensorboard)
        self._board: Any = SummaryWriter(str(self._tensorboard), purge_step=after + 1)
        self._board.flush()  # makes the file, which can then be renamed while it is open
        _without_host(self._tensorboard)

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()
        self._board.close()
        _without_host(self._tensorboard)

    def write(self, step: int, values: dict[str, float]) -> None:
        self._file.write(json.dumps({"step": step, **values}) + "\n")
        self._file.flush()
        for name, value in values.items():
            self._board.add_scalar(f"training/{name}", value, step)


def _without_host(folder: Path) -> None:
    """TensorBoard puts the machine's name into its files' names, and a run folder may be given away."""
    for file in folder.glob("events.out.tfevents.*"):
        # events.out.tfevents.TIME.HOST.PROCESS.NUMBER, and a host may have dots in its name
        parts = file.name.split(".")
        file.rename(file.with_name(".".join([*parts[:4], "timediff", *parts[-2:]])))


def _step(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):  # half a line, from a run that was killed while it wrote
        return float("inf")
