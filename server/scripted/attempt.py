"""Which try of the same request this is, by what the client says.

The scripted provider has no memory, so a fault that goes away ("fails twice, then works") needs
the client's own count: our harness sends `X-Attempt`, the openai client its retry count. A
backend sees the body only, so a layer around the app leaves the number where it can read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

HEADERS = ("x-attempt", "x-stainless-retry-count")

_attempt: ContextVar[int] = ContextVar("attempt", default=0)


def read_attempt(headers: Mapping[str, str]) -> int:
    """0 for the first try, 1 for the first retry, …; 0 where the client says nothing."""
    for name in HEADERS:
        value = headers.get(name, "")
        if value.isascii() and value.isdecimal() and len(value) < 10:
            return int(value)
    return 0


def current_attempt() -> int:
    """The try that the request of the current context is."""
    return _attempt.get()


class AttemptLayer:
    """An ASGI app around `app` that notes each request's attempt for `current_attempt`."""

    def __init__(self, app: ASGIApp) -> None:
        """`app` is the server's, with a scripted backend."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with its number set."""
        if scope["type"] == "http":
            _attempt.set(read_attempt(Headers(scope=scope)))
        await self.app(scope, receive, send)
