"""From a backend's pieces to HTTP: one JSON reply, or a stream of server-sent events.

In both forms a client that goes away closes the backend's iterator at once.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing, suppress
from typing import Any

from starlette.types import Receive, Scope, Send

from server.backend import Backend, CallPiece, Finish, Piece, TextPiece
from server.errors import ApiError, EngineFailed, RawReply, Unavailable
from server.json_text import compact_json
from server.shapes import call_object, chunk_body, reply_body, usage
from server.wire import ChatRequest

log = logging.getLogger(__name__)

SILENCE_S = 10.0
"""Seconds without a piece after which a stream gets a comment, so that no client gives up."""
_DONE = b"data: [DONE]\n\n"
_STREAM_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


async def send_json(
    send: Send, status: int, body: Any, headers: dict[str, str] | None = None
) -> None:
    """A whole JSON answer."""
    named = {"content-type": "application/json", "cache-control": "no-store", **(headers or {})}
    await _send_whole(send, status, compact_json(body).encode(), named)


async def send_error(send: Send, error: ApiError) -> None:
    """An error in OpenAI's shape."""
    await send_json(send, error.status, error.body(), error.headers)


class ChatReply:
    """The answer to one checked request, as an ASGI app."""

    def __init__(
        self, backend: Backend, request: ChatRequest, model: str, stopping: asyncio.Event
    ) -> None:
        """`model` is the name of the model that answers; `stopping` breaks the reply off."""
        self._stopping = stopping
        self._backend = backend
        self._request = request
        self._head = {
            "id": f"chatcmpl-{uuid.uuid4().hex[:24]}",
            "created": int(time.time()),
            "model": model,
        }

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, unless the client goes away or the server ends first."""
        out = _Out(send)
        work = self._stream(out) if self._request.stream else self._whole(out)
        await _first_of(work, _disconnect(receive), self._stopping.wait())
        if self._stopping.is_set() and not out.ended:
            await out.error(Unavailable("The server is ending.", code="server_ending"))

    async def _whole(self, out: _Out) -> None:
        texts: list[str] = []
        calls = _Calls()
        async with aclosing(self._pieces(out)) as pieces:
            async for piece in pieces:
                if isinstance(piece, TextPiece):
                    texts.append(piece.text)
                elif isinstance(piece, CallPiece):
                    calls.add(piece)
                elif isinstance(piece, Finish):
                    used, reason = _used(piece), _reason(piece, calls)
                    body = reply_body(self._head, "".join(texts), calls.objects(), reason, used)
                    await out.whole({**body, **_timings(piece)})

    async def _stream(self, out: _Out) -> None:
        calls = _Calls()
        first = True
        async with aclosing(self._pieces(out)) as pieces:
            async for piece in pieces:
                if piece is None:
                    await out.events(b": still working\n\n")
                    continue
                if first:
                    await self._chunk(out, _first_delta(piece))
                    first = False
                await self._piece(out, piece, calls)

    async def _piece(self, out: _Out, piece: Piece, calls: _Calls) -> None:
        if isinstance(piece, CallPiece):
            calls.add(piece)
            await self._chunk(out, {"tool_calls": [_call_delta(piece)]})
        elif isinstance(piece, Finish):
            await self._last_chunks(out, piece, _reason(piece, calls))
        elif piece.text:
            await self._chunk(out, {"content": piece.text})

    async def _last_chunks(self, out: _Out, finish: Finish, reason: str) -> None:
        await self._chunk(out, {}, reason, _timings(finish))
        if self._request.include_usage:
            await out.events(_event(chunk_body(self._head, None, None, _used(finish))))
        await out.events(_DONE, more=False)

    async def _chunk(
        self,
        out: _Out,
        delta: dict[str, Any],
        reason: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        chunk = {**chunk_body(self._head, delta, reason), **(extra or {})}
        if self._request.include_usage:
            chunk["usage"] = None
        await out.events(_event(chunk))

    async def _pieces(self, out: _Out) -> AsyncGenerator[Piece | None, None]:
        """The backend's pieces to the end; whatever goes wrong is sent to the client."""
        try:
            async with aclosing(_with_silence(self._backend.chat(self._request))) as pieces:
                async for piece in pieces:
                    yield piece
                    if isinstance(piece, Finish):
                        return
            await out.error(EngineFailed("The reply broke off before its end."))
        except RawReply as raw:
            await out.raw(raw)
        except ApiError as error:
            await out.error(error)
        except Exception:
            log.exception("A reply failed")
            await out.error(EngineFailed("The reply failed; the server's log says why."))


class _Out:
    """The response on its way. Until something was sent, an error is still an HTTP status."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False
        self.ended = False

    async def whole(self, body: dict[str, Any]) -> None:
        self._begun = self.ended = True
        await send_json(self._send, 200, body)

    async def raw(self, raw: RawReply) -> None:
        self._begun = self.ended = True
        await _send_raw(self._send, raw)

    async def error(self, error: ApiError) -> None:
        """A status and a body, or an `error` object in the stream that has begun."""
        if not self._begun:
            self._begun = self.ended = True
            await send_error(self._send, error)
        else:
            await self.events(_event(error.body()) + _DONE, more=False)

    async def events(self, data: bytes, *, more: bool = True) -> None:
        """Some server-sent events; the first of them begin the response."""
        if not self._begun:
            self._begun = True
            start = {"type": "http.response.start", "status": 200, "headers": _STREAM_HEADERS}
            await self._send(start)
        self.ended = not more
        await self._send({"type": "http.response.body", "body": data, "more_body": more})


class _Calls:
    """Tool calls put together from their pieces."""

    def __init__(self) -> None:
        self._calls: dict[int, tuple[str, str, list[str]]] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, piece: CallPiece) -> None:
        if piece.index not in self._calls:
            self._calls[piece.index] = (piece.id or "", piece.name or "", [])
        self._calls[piece.index][2].append(piece.arguments)

    def objects(self) -> list[dict[str, Any]]:
        ordered = sorted(self._calls.items())
        return [call_object(id_, name, "".join(parts)) for _, (id_, name, parts) in ordered]


def _reason(finish: Finish, calls: _Calls) -> str:
    return "tool_calls" if calls and finish.reason == "stop" else finish.reason


def _call_delta(piece: CallPiece) -> dict[str, Any]:
    """A call's piece as a delta: id, type and name come once, with the first."""
    if piece.id is None:
        return {"index": piece.index, "function": {"arguments": piece.arguments}}
    function = {"name": piece.name, "arguments": piece.arguments}
    return {"index": piece.index, "id": piece.id, "type": "function", "function": function}


def _first_delta(piece: Piece) -> dict[str, Any]:
    return {"role": "assistant", "content": None if isinstance(piece, CallPiece) else ""}


def _used(finish: Finish) -> dict[str, Any]:
    return usage(finish.prompt_tokens, finish.cached_tokens, finish.completion_tokens)


def _timings(finish: Finish) -> dict[str, Any]:
    """What a backend measured, beside OpenAI's fields."""
    return {} if finish.timings is None else {"timings": dict(finish.timings)}


def _event(body: dict[str, Any]) -> bytes:
    return f"data: {compact_json(body)}\n\n".encode()


async def _first_of(work: Coroutine[Any, Any, None], *ends: Coroutine[Any, Any, Any]) -> None:
    """Await `work`, but cancel it as soon as one of `ends` comes."""
    working = asyncio.create_task(work)
    tasks = [working, *map(asyncio.create_task, ends)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    if not working.cancelled():
        working.result()


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _with_silence(pieces: AsyncIterator[Piece]) -> AsyncGenerator[Piece | None, None]:
    """The pieces, and a None for each `SILENCE_S` without one; closes them in any case."""
    waiting: asyncio.Future[Piece] | None = None
    try:
        while True:
            waiting = asyncio.ensure_future(_next(pieces))
            while not (await asyncio.wait({waiting}, timeout=SILENCE_S))[0]:
                yield None
            try:
                piece = waiting.result()
            except StopAsyncIteration:
                return
            yield piece
    finally:
        if waiting is not None and not waiting.done():
            waiting.cancel()
            await asyncio.wait({waiting})
        close: Callable[[], Awaitable[None]] | None = getattr(pieces, "aclose", None)
        if close is not None:
            await close()


async def _next(pieces: AsyncIterator[Piece]) -> Piece:
    return await anext(pieces)


async def _send_whole(send: Send, status: int, body: bytes, headers: dict[str, str]) -> None:
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    raw.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


async def _send_raw(send: Send, raw: RawReply) -> None:
    """Exactly these bytes. A cut reply is left unfinished, so that the server breaks it off."""
    if not raw.cut:
        await _send_whole(send, raw.status, raw.body, raw.headers)
        return
    headers = [(name.lower().encode(), value.encode()) for name, value in raw.headers.items()]
    with suppress(OSError):
        await send({"type": "http.response.start", "status": raw.status, "headers": headers})
        await send({"type": "http.response.body", "body": raw.body, "more_body": True})
