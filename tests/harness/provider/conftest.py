"""A raw HTTP server on loopback that sends exactly the bytes a test gives it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from harness.cancel import CancelToken
from harness.provider import HttpProvider
from harness.provider.retry import RetryPolicy

Step = bytes | float | Callable[[asyncio.StreamWriter], Awaitable[None]]


def http(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    """A whole response whose end is the end of the connection."""
    lines = [f"HTTP/1.1 {status}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunk(**delta: object) -> bytes:
    """One event of a stream with `delta`."""
    return event({"choices": [{"index": 0, "delta": delta}]})


def event(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def finish(reason: str = "stop", prompt: int = 10, completion: int = 5) -> bytes:
    """The end of a stream: finish reason, usage, [DONE]."""
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    return (
        event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        + event({"choices": [], "usage": usage})
        + b"data: [DONE]\n\n"
    )


class RawServer:
    """Answers the n-th request with the n-th reply, the last one again and again.

    A reply is bytes, or a list of bytes and pauses in seconds.
    """

    def __init__(self) -> None:
        self.replies: list[bytes | list[Step]] = []
        self.requests: list[tuple[dict[str, str], dict[str, object]]] = []
        self.gone = asyncio.Event()
        """Set when a client hangs up in the middle of a reply."""
        self.connections = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    @property
    def base_url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._serve_one(reader, writer):
                pass
        writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        headers = dict(
            line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line
        )
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.requests.append((headers, json.loads(body)))
        reply = self.replies[min(len(self.requests), len(self.replies)) - 1]
        watch = asyncio.ensure_future(reader.read(1))
        watch.add_done_callback(lambda _: self.gone.set())
        for step in reply if isinstance(reply, list) else [reply]:
            if callable(step):
                await step(writer)
            elif isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            else:
                await asyncio.wait((watch,), timeout=step)
        keep = b"Content-Length" in (reply if isinstance(reply, bytes) else b"")
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch
        return keep and b"Connection: close" not in bytes(reply)  # type: ignore[arg-type]


@pytest.fixture
async def server() -> AsyncIterator[RawServer]:
    raw = RawServer()
    await raw.start()
    yield raw
    await raw.stop()


@pytest.fixture
async def ask(server: RawServer) -> AsyncIterator[Callable[..., Awaitable[object]]]:
    """Ask the raw server once; keyword arguments over the usual ones."""
    provider = HttpProvider(
        server.base_url,
        policy=RetryPolicy(tries=3, first_wait=0.001, max_retry_after=0.05),
        read_timeout=5.0,
    )

    async def once(**changes: object) -> object:
        arguments: dict[str, object] = {
            "messages": [{"role": "user", "content": "Hi"}],
            "tools": [],
            "model": "m",
            "temperature": 0.0,
            "max_tokens": 100,
            "cancel": CancelToken(),
        }
        return await provider.complete(**{**arguments, **changes})  # type: ignore[arg-type]

    yield once
    await provider.aclose()


@pytest.fixture
def wire() -> object:
    """The helpers above, for tests that build replies."""

    class Wire:
        http = staticmethod(http)
        chunk = staticmethod(chunk)
        event = staticmethod(event)
        finish = staticmethod(finish)

        @staticmethod
        def stream(*pieces: bytes) -> bytes:
            return http(b"".join(pieces), Content_Type="text/event-stream")

        @staticmethod
        def whole(value: object) -> bytes:
            return http(json.dumps(value).encode(), Content_Type="application/json")

    return Wire
