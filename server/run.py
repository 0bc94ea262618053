"""A server in this process: its socket, its lines on the terminal, its end."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
from collections.abc import Callable
from types import FrameType

import httpx
import uvicorn
from starlette.types import ASGIApp

from local.guard import allowed_hosts, bracketed
from server.app import create_app
from server.backend import Backend

Layer = Callable[[ASGIApp], ASGIApp]

KEEP_ALIVE_S = 120
"""Seconds an unused connection stays open: longer than most tools run between two turns."""
GRACE_S = 5
"""Seconds that broken-off requests have for their last words when the server ends."""


class CannotListen(Exception):
    """The port cannot be had; the message says why and what to do."""


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one.

    Raises:
        CannotListen: if the port is taken or the address is not ours.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        bound = socket.create_server((host, port), family=family, backlog=512)
        # Connections inherit it. asyncio sets it only on sockets that name their protocol, which
        # this one does not, and without it every reply on a kept connection waits 40 ms.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except (OSError, OverflowError) as error:
        raise CannotListen(_why_not(host, port, error)) from error
    return bound


def _why_not(host: str, port: int, error: Exception) -> str:
    address = f"{bracketed(host)}:{port}"
    if not isinstance(error, OSError) or error.errno != errno.EADDRINUSE:
        return f"Cannot listen on {address}: {error}."
    holder = _holder(host, port)
    return f"{address} is taken by {holder}. Stop it, or choose another with --port."


def _holder(host: str, port: int) -> str:
    """Who answers there, as far as one question can tell."""
    try:
        reply = httpx.get(f"http://{bracketed(host)}:{port}/health", timeout=1, trust_env=False)
        state = reply.json()
    except (httpx.HTTPError, ValueError):
        return "another program"
    if not isinstance(state, dict) or "status" not in state:
        return "another program"
    return f"a model server that is running already ({state.get('detail') or state['status']})"


def url_of(bound: socket.socket, host: str) -> str:
    """The base URL for clients of a bound socket, as LLM_BASE_URL wants it."""
    return f"http://{bracketed(host)}:{bound.getsockname()[1]}/v1"


class Server(uvicorn.Server):
    """Uvicorn, which at its end breaks off the requests that are running instead of waiting."""

    def __init__(
        self,
        backend: Backend,
        *,
        host: str,
        port: int,
        token: str | None = None,
        layer: Layer | None = None,
    ) -> None:
        """`host` and `port` are those of the socket that it will be given."""
        self._stopping = asyncio.Event()
        app = create_app(
            backend,
            allowed_hosts=allowed_hosts(host, port),
            token=token,
            stopping=self._stopping,
        )
        super().__init__(
            uvicorn.Config(
                app if layer is None else layer(app),
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=GRACE_S,
            )
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Tell the running requests first; uvicorn then waits for them."""
        self._stopping.set()
        await super().shutdown(sockets)


def run(
    backend: Backend,
    bound: socket.socket,
    *,
    host: str,
    say: Callable[[str], None],
    token: str | None = None,
    layer: Layer | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; then break everything off and close the backend.

    Args:
        backend: where replies come from; it is closed at the end.
        bound: the listening socket, from `bind`.
        host: the address that it was bound to.
        token: what clients must send, where others than this machine can reach the server.
        say: takes each line for the person at the terminal.
        layer: an ASGI app to be put around the server's own.
    """
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    say(f"Listening on {url_of(bound, host)}")
    # Uvicorn raises the signal once more when it has ended; by then it has been obeyed.
    before = {number: signal.signal(number, _obeyed) for number in _SIGNALS}
    try:
        port = bound.getsockname()[1]
        Server(backend, host=host, port=port, token=token, layer=layer).run(sockets=[bound])
    finally:
        bound.close()
        backend.close()
        for number, handler in before.items():
            signal.signal(number, handler)


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def _obeyed(_number: int, _frame: FrameType | None) -> None:
    """Nothing is left to do."""
