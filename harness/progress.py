"""A tool's progress on its way to the trace: from any thread, and not too often."""

from __future__ import annotations

import asyncio
import threading
import time

from harness.ports import OnProgress

INTERVAL = 0.1
"""Seconds between two progress events of one call; the last one is always kept."""

MAX_MESSAGE = 500

Item = tuple[str, int | None, int | None]


class Reporter:
    """Passes progress on in the loop's thread.

    After `close` everything that still comes is dropped: a call that is settled
    makes no more progress.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, deliver: OnProgress) -> None:
        self._loop = loop
        self._deliver = deliver
        self._lock = threading.Lock()
        self._next = 0.0
        self._held: Item | None = None
        self._closed = False
        self.last: str | None = None
        """The newest message."""

    def report(self, message: str, done: int | None, total: int | None) -> None:
        """Take one piece of progress. Never blocks, never raises."""
        item = (str(message)[:MAX_MESSAGE], done, total)
        now = time.monotonic()
        with self._lock:
            if self._closed:
                return
            self.last = item[0]
            if now < self._next:
                self._held = item
                return
            self._next = now + INTERVAL
            self._held = None
            # Not open any more means closed by its owner, so the loop is alive here.
            self._loop.call_soon_threadsafe(self._pass_on, item)

    def _pass_on(self, item: Item) -> None:
        if not self._closed:
            self._deliver(*item)

    def close(self) -> None:
        """Deliver what was held back and end. To be called in the loop's thread."""
        with self._lock:
            held, self._held = self._held, None
        if held is not None:
            self._pass_on(held)
        self._closed = True
