"""Ctrl-C and its kin as the stop of what goes on."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from harness.cancel import CancelToken

SIGNALS = {
    signal.SIGINT: "Ctrl-C was pressed",
    signal.SIGTERM: "the process was told to end",
    signal.SIGHUP: "the terminal was closed",
}


@contextmanager
def stopped_by_signals(token: CancelToken) -> Iterator[None]:
    """Set the token at the first signal; a second one ends the process at once.

    To be used inside a running event loop of the main thread.
    """
    loop = asyncio.get_running_loop()

    def release() -> None:
        for each in SIGNALS:
            loop.remove_signal_handler(each)

    def stop(number: signal.Signals) -> None:
        release()
        token.cancel(SIGNALS[number])

    for number in SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        yield
    finally:
        release()
