"""Ctrl-C and SIGTERM as a request that is met between two updates, never in the middle of one."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    requested = False


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Yields a flag that the first signal sets; a second Ctrl-C interrupts at once.

    A second SIGTERM does not: who starts many processes passes on a signal they have already.
    """
    stop, previous = Stop(), {}

    def request(number: int, frame: FrameType | None) -> None:
        if stop.requested and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.requested = True

    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            previous[number] = signal.signal(number, request)
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
