"""What a person sees while waiting: a bar with a remaining time, or a line now and then where there is no terminal."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from timediff.runtime import bars as shown_as
from timediff.runtime import devices
from timediff.runtime.progress import Progress, Watch

if TYPE_CHECKING:
    from timediff.data.cohort import Cohort

console = Console(highlight=False, quiet=devices.rank() > 0)  # of many processes only the first speaks
errors = Console(stderr=True, highlight=False)


def say(line: str) -> None:
    console.print(line, markup=False, soft_wrap=True)


def shortened(cohort: "Cohort", horizon: int | None, path: Path) -> "Cohort":
    """The first steps of the stays that have so many, and how many stays do not."""
    if horizon is None:
        return cohort
    kept = cohort.horizon(horizon)
    if dropped := len(cohort) - len(kept):
        say(f"{path}: --horizon {horizon} drops {dropped:,} of {len(cohort):,} stays, which are shorter")
    return kept


def bar(what: str) -> AbstractContextManager[Progress]:
    """Yields a function that shows how far `what` is."""
    return shown_as.bar(what, console)


@contextmanager
def bars() -> Iterator[Watch]:
    """Yields a function that gives a name a bar of its own; a bar that is full is taken away."""
    if not console.is_terminal:
        yield lambda what: shown_as.Lines(what, console, ends=False)
        return
    with shown_as.columns(console) as shown:

        def watch(what: str) -> Progress:
            task = shown.add_task(escape(what), total=None, note="")

            def show(done: int, total: int, **values: float) -> None:
                noted = {"note": shown_as.noted(values)} if values else {}
                shown.update(task, completed=done, total=total, visible=done < total, **noted)  # type: ignore[arg-type]

            return show

        yield watch


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """For what cannot say how far it is, such as the first import of PyTorch."""
    with console.status(escape(what)):
        yield
