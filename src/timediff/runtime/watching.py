"""What `progress=` takes in Python: nothing, True, False, a tqdm class or bar, or a function of one's own.

Whatever goes wrong in showing it, the work goes on: from then on nobody is shown anything, and a warning says so. So an
error in a callback never costs a model. Ctrl-C, and our own errors, end the work as they always do.
"""

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from timediff.errors import TimeDiffError
from timediff.runtime import devices
from timediff.runtime.progress import Progress, silent

# None: a bar in a terminal or notebook; True: lines where there is neither; False: silence; or a tqdm class, a tqdm
# bar, or any function of (done, total), which is given loss=… and rate=… if it takes them.
Watching = bool | Callable[..., object] | Any | None
EXPECTED = "expected True, False, a tqdm class or bar, or a function of (done, total)"


@contextmanager
def watched(given: Watching, what: str) -> Iterator[Progress]:
    """Yields the progress that was asked for; `what` names the work."""
    if given is False or given is silent or isinstance(given, Guarded):  # guarded by whoever called us
        yield silent if given is False else given
        return
    with ExitStack() as closing:
        shown = _bar(given is True, what, closing) if given is None or given is True else _adapted(given, what, closing)
        yield Guarded(shown, what) if shown is not silent else silent


class Guarded:
    """Progress whose errors end nothing but itself."""

    def __init__(self, inner: Progress, what: str) -> None:
        self.inner, self.what, self.broken = inner, what, False

    def __call__(self, done: int, total: int, **values: float) -> None:
        if self.broken:
            return
        try:
            self.inner(done, total, **values)
        except TimeDiffError:
            raise
        except Exception as error:
            self.broken = True
            warnings.warn(
                f"the progress callback raised {type(error).__name__} ({error}): {self.what} goes on without it.",
                RuntimeWarning,
                stacklevel=2,
            )


def _bar(asked: bool, what: str, closing: ExitStack) -> Progress:
    from rich.console import Console

    from timediff.runtime.bars import bar, in_notebook

    console = Console(stderr=True, highlight=False)
    seen = devices.rank() == 0 and (asked or console.is_terminal or in_notebook())
    return closing.enter_context(bar(what, console)) if seen else silent


def _adapted(given: Any, what: str, closing: ExitStack) -> Progress:
    if isinstance(given, type) and hasattr(given, "update") and hasattr(given, "set_postfix"):
        return _TqdmBar(None, given, what, closing)
    if hasattr(given, "update") and hasattr(given, "n") and hasattr(given, "total"):
        return _TqdmBar(given, type(given), what, closing)
    if not callable(given):
        raise TimeDiffError(f"progress is of type {type(given).__name__}; {EXPECTED}.")
    taken = _values_taken(given)

    def told(done: int, total: int, **values: float) -> None:
        given(done, total, **{name: value for name, value in values.items() if taken is None or name in taken})

    return told


def _values_taken(function: Callable[..., object]) -> frozenset[str] | None:
    """The names of values that a function takes by keyword; None = any."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of some functions written in C
        return frozenset()
    try:
        signature.bind(0, 1)
    except TypeError:
        raise TimeDiffError(f"progress cannot be called with two arguments; {EXPECTED}.") from None
    kinds = list(signature.parameters.values())
    if any(one.kind is one.VAR_KEYWORD for one in kinds):
        return None
    given = [one for one in kinds if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)][:2]
    return frozenset(one.name for one in kinds if one not in given)


class _TqdmBar:
    """A bar of tqdm, whichever of its classes; one that we have made is closed at the end."""

    def __init__(self, bar: Any, kind: Any, what: str, closing: ExitStack) -> None:
        self.bar, self.kind, self.what, self.closing = bar, kind, what, closing

    def __call__(self, done: int, total: int, **values: float) -> None:
        if self.bar is None:
            self.bar = self.kind(total=total, desc=self.what)
            self.closing.callback(self._close)
        self.bar.total = total
        if values:
            self.bar.set_postfix(values, refresh=False)
        self.bar.update(done - self.bar.n)

    def _close(self) -> None:
        with suppress(Exception):  # it has told of its errors before
            self.bar.close()
