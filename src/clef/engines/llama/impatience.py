"""Turns a second Ctrl+C, while a child gets its time to end, into the end of that child at once."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def hurried_by_signals(hurry: Callable[[], None]) -> Iterator[None]:
    """Call `hurry` for a SIGINT or SIGTERM that comes meanwhile; does nothing outside of a program's main thread."""
    loop = asyncio.get_running_loop()
    before = {}
    try:
        for number in SIGNALS:
            handler = signal.getsignal(number)
            loop.add_signal_handler(number, hurry)
            before[number] = handler
    except (ValueError, RuntimeError, NotImplementedError):  # another thread, or a loop that cannot
        pass
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
