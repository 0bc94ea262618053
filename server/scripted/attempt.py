"""What a scripted backend knows of a request beside its body, and a stall that is really silent.

The scripted provider has no memory, so a fault that goes away ("fails twice, then works") needs
the client's own count: our harness sends `X-Attempt`, the openai client its retry count. A
backend sees the body only, so a layer around the app leaves the number where it can read it. And
the server tells a client that waits now and then that it is still working; the layer holds that
back for a reply that is to look dead.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = ("x-attempt", "x-stainless-retry-count")


@dataclass(slots=True)
class Asked:
    """One request. `silent`: nothing more is sent to its client."""

    attempt: int = 0
    silent: bool = False


_asked: ContextVar[Asked] = ContextVar("asked")


def current() -> Asked:
    """The request of the current context; outside the layer, one that is the first try."""
    return _asked.get(Asked())


def read_attempt(headers: Mapping[str, str]) -> int:
    """0 for the first try, 1 for the first retry, …; 0 where the client says nothing."""
    for name in HEADERS:
        value = headers.get(name, "")
        if value.isascii() and value.isdecimal() and len(value) < 10:
            return int(value)
    return 0


class AttemptLayer:
    """An ASGI app around `app`, for a server with a scripted backend."""

    def __init__(self, app: ASGIApp) -> None:
        """`app` is the server's."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with what is known of it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        asked = Asked(read_attempt(Headers(scope=scope)))
        _asked.set(asked)

        async def unless_silent(message: Message) -> None:
            if not asked.silent:
                await send(message)

        await self.app(scope, receive, unless_silent)
