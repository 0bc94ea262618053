"""One token that stops everything below it.

A `CancelToken` is handed to the HTTP request, to every tool and to every
subagent of a run. It can be set from any thread and read from any thread; it
is never unset. Tokens form a tree: cancelling one cancels its children, never
its parent.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import weakref
from collections.abc import Callable


class CancelledByToken(Exception):
    """Raised by `raise_if_cancelled`; its text is the reason of the cancellation."""


class CancelToken:
    """See the module's docstring. Cheap to read: `cancelled` takes no lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reason: str | None = None
        self._cancelled_at: float | None = None
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._next_key = 0
        # Weak, so that a long run does not keep every finished child's token.
        self._children: weakref.WeakSet[CancelToken] = weakref.WeakSet()
        # A child keeps its parent, so that a chain of tokens holds together as
        # long as its lowest link is in use.
        self._parent: CancelToken | None = None

    @property
    def cancelled(self) -> bool:
        return self._reason is not None

    @property
    def reason(self) -> str | None:
        """Why it was cancelled, in words, or `None` while it is not."""
        return self._reason

    @property
    def cancelled_at(self) -> float | None:
        """`time.monotonic()` of the cancellation."""
        return self._cancelled_at

    def cancel(self, reason: str) -> bool:
        """Cancel this token and all below it. Returns whether this call was the first.

        Callbacks run in the calling thread before this returns.
        """
        return self._cancel(reason, time.monotonic())

    def _cancel(self, reason: str, now: float) -> bool:
        with self._lock:
            if self._reason is not None:
                return False
            self._cancelled_at = now
            self._reason = reason
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
            children = list(self._children)
        for child in children:
            child._cancel(reason, now)
        for callback in callbacks:
            callback()
        return True

    def child(self) -> CancelToken:
        """A token that is cancelled with this one and can be cancelled alone."""
        child = CancelToken()
        with self._lock:
            if self._reason is None:
                self._children.add(child)
                child._parent = self
                return child
            reason, at = self._reason, self._cancelled_at
        child._cancel(reason, at or time.monotonic())
        return child

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` once when cancelled, in the cancelling thread.

        Called at once where the token is cancelled already. It must be quick and
        must not raise. Returns a function that takes it back.
        """
        with self._lock:
            if self._reason is None:
                key = self._next_key
                self._next_key += 1
                self._callbacks[key] = callback

                def unregister() -> None:
                    with self._lock:
                        self._callbacks.pop(key, None)

                return unregister
        callback()
        return lambda: None

    async def wait(self) -> str:
        """Return the reason as soon as the token is cancelled."""
        loop = asyncio.get_running_loop()
        event = asyncio.Event()

        def wake() -> None:
            # A loop that has closed has nobody left to wake.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(event.set)

        unregister = self.on_cancel(wake)
        try:
            await event.wait()
        finally:
            unregister()
        return self._reason or ""

    def raise_if_cancelled(self) -> None:
        """Raise `CancelledByToken` when cancelled; for long loops in tools."""
        if self._reason is not None:
            raise CancelledByToken(self._reason)
