"""Ways in which a provider fails, each on command.

Two kinds: replies that are well-formed on the wire and wrong in what they say (`WRONG`), and
answers that are not a chat completion at all (`RAW`), sent as the exact bytes. Beside these a
stall, which sends nothing more until the client goes, and any HTTP status of 400 to 599.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from server.errors import RawReply
from server.json_text import compact_json
from server.scripted.conversation import Call, Reply
from server.shapes import chunk_body, reply_body, usage

HUGE_ARGUMENT_BYTES = 10_000_000
HEAD = {"id": "chatcmpl-fault", "created": 0, "model": "fault"}

Change = Callable[[Reply], Reply]
Raw = Callable[["Wire"], RawReply]


@dataclass(frozen=True, slots=True)
class Wire:
    """A reply on its way out."""

    reply: Reply
    prompt_tokens: int
    stream: bool

    @property
    def used(self) -> dict[str, Any]:
        """The usage that belongs to the reply."""
        return usage(self.prompt_tokens, 0, self.reply.completion_tokens())

    def call_deltas(self) -> list[dict[str, Any]]:
        """The calls as a stream's delta has them."""
        return [{"index": i, **call} for i, call in enumerate(self.reply.wire_calls())]

    def body(self) -> bytes:
        """The whole reply, or the whole stream, as it should be."""
        if not self.stream:
            return _json(
                reply_body(
                    HEAD, self.reply.text, self.reply.wire_calls(), self.reply.reason, self.used
                )
            )
        first, rest = self.deltas()
        return sse(
            chunk_body(HEAD, first),
            chunk_body(HEAD, rest),
            chunk_body(HEAD, {}, self.reply.reason),
            chunk_body(HEAD, None, None, self.used),
        )

    def deltas(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The reply in two pieces, divided in the middle of its text and of each argument."""
        text = self.reply.text
        first: dict[str, Any] = {"role": "assistant", "content": text and half(text)}
        rest: dict[str, Any] = {} if text is None else {"content": text[len(half(text)) :]}
        if self.reply.calls:
            first["tool_calls"], rest["tool_calls"] = [], []
        for call in self.call_deltas():
            arguments = call["function"]["arguments"]
            begun = {**call["function"], "arguments": half(arguments)}
            first["tool_calls"].append({**call, "function": begun})
            end = {"arguments": arguments[len(half(arguments)) :]}
            rest["tool_calls"].append({"index": call["index"], "function": end})
        return first, rest

    def send(self, body: bytes, *, cut: bool = False, content_type: str | None = None) -> RawReply:
        """These bytes with status 200, under the content type that would be right."""
        right = "text/event-stream; charset=utf-8" if self.stream else "application/json"
        return RawReply(body, headers={"Content-Type": content_type or right}, cut=cut)


def _json(value: Any) -> bytes:
    return compact_json(value).encode()


def sse(*chunks: dict[str, Any]) -> bytes:
    """A stream of these chunks, ended as OpenAI ends it."""
    lines = [b"data: " + _json(chunk) + b"\n\n" for chunk in chunks]
    return b"".join(lines) + b"data: [DONE]\n\n"


# --- well-formed on the wire, wrong in what it says


def _first(change: Callable[[Call], Call]) -> Change:
    """Change the first call; a reply without calls stays as it is."""

    def apply(reply: Reply) -> Reply:
        if not reply.calls:
            return reply
        return replace(reply, calls=(change(reply.calls[0]), *reply.calls[1:]))

    return apply


def _arguments(text: str) -> Change:
    return _first(lambda call: replace(call, arguments=text))


def _call_as_text(reply: Reply) -> Reply:
    calls = (f'{{"name":"{c.tool}","arguments":{c.arguments}}}' for c in reply.calls)
    said = "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in calls)
    return Reply(text=said) if said else reply


def _cut_short(reply: Reply) -> Reply:
    """The token limit came in the middle: of the last call's arguments, or of the text."""
    if not reply.calls:
        return replace(reply, text=half(reply.text or ""), finish_reason="length")
    last = replace(reply.calls[-1], arguments=half(reply.calls[-1].arguments))
    return replace(reply, calls=(*reply.calls[:-1], last), finish_reason="length")


def half(text: str) -> str:
    """The first half of a text."""
    return text[: len(text) // 2]


def _twice(reply: Reply) -> Reply:
    return replace(reply, calls=reply.calls * 2)


WRONG: dict[str, Change] = {
    "call_as_text": _call_as_text,
    "length": _cut_short,
    "duplicate_id": _twice,
    "reused_id": _first(lambda call: replace(call, id="c1")),
    "unknown_tool": _first(lambda call: replace(call, tool="launch_rocket")),
    "args_broken": _first(lambda call: replace(call, arguments=half(call.arguments))),
    "args_text": _arguments("errors.log"),
    "args_list": _arguments('["errors.log"]'),
    "args_null": _arguments("null"),
    "args_empty": _arguments(""),
    "args_huge": _arguments('{"path":"' + "log " * (HUGE_ARGUMENT_BYTES // 4) + '"}'),
    "no_text": lambda _: Reply(text=None),
}


# --- not a chat completion


def _without(wire: Wire, key: str) -> bytes:
    """The reply without `key` in its calls, or in its choice."""
    calls: list[dict[str, Any]] = wire.call_deltas()
    for call in calls:
        call.pop(key, None)
    if not wire.stream:
        return _json(reply_body(HEAD, wire.reply.text, calls, wire.reply.reason, wire.used))
    delta = {"role": "assistant", "content": wire.reply.text, "tool_calls": calls}
    return sse(
        chunk_body(HEAD, delta),
        chunk_body(HEAD, {}, wire.reply.reason),
        chunk_body(HEAD, None, None, wire.used),
    )


def _odd(wire: Wire, choices: list[dict[str, Any]]) -> bytes:
    """A reply or a stream with these choices and the right usage."""
    kind = "chat.completion.chunk" if wire.stream else "chat.completion"
    body = {**HEAD, "object": kind, "choices": choices, "usage": wire.used}
    return sse(body) if wire.stream else _json(body)


def _broken_json(wire: Wire) -> bytes:
    if not wire.stream:
        return half(wire.body().decode()).encode()
    return b'data: {"id":"chatcmpl-fault","choices":[{"index":0,"delta":{"con\n\ndata: [DONE]\n\n'


def _first_chunks(stream: bytes, number: int) -> bytes:
    return b"".join(chunk + b"\n\n" for chunk in stream.split(b"\n\n")[:number])


def _half_stream(wire: Wire) -> RawReply:
    """Half a body, or a stream's first piece and a bit more, then the connection breaks."""
    body = wire.body()
    kept = body.find(b"\n\n") + 30 if wire.stream else len(body) // 2
    return wire.send(body[:kept], cut=True)


def _no_end(wire: Wire) -> RawReply:
    """Everything but the finish reason and what follows; the connection closes in good order."""
    body = wire.body()
    return wire.send(_first_chunks(body, 2) if wire.stream else body[:-1])


_HTML = b"<!doctype html><title>502 Bad Gateway</title><h1>502 Bad Gateway</h1>\n"
_NO_MESSAGE = {"index": 0, "finish_reason": "stop"}

RAW: dict[str, Raw] = {
    "half_stream": _half_stream,
    "no_end": _no_end,
    "broken_json": lambda wire: wire.send(_broken_json(wire)),
    "content_type": lambda wire: wire.send(wire.body(), content_type="text/plain"),
    "html": lambda wire: wire.send(_HTML, content_type="text/html"),
    "empty": lambda wire: wire.send(b""),
    "null": lambda wire: wire.send(sse_null() if wire.stream else b"null"),
    "no_choices": lambda wire: wire.send(_odd(wire, [])),
    "no_message": lambda wire: wire.send(_odd(wire, [dict(_NO_MESSAGE)])),
    "missing_id": lambda wire: wire.send(_without(wire, "id")),
    "no_function": lambda wire: wire.send(_without(wire, "function")),
    "no_usage": lambda wire: wire.send(_no_usage(wire)),
}


def sse_null() -> bytes:
    """A stream whose one chunk is `null`."""
    return b"data: null\n\ndata: [DONE]\n\n"


def _no_usage(wire: Wire) -> bytes:
    if not wire.stream:
        body = reply_body(HEAD, wire.reply.text, wire.reply.wire_calls(), wire.reply.reason, {})
        return _json({key: value for key, value in body.items() if key != "usage"})
    return _first_chunks(wire.body(), 3) + b"data: [DONE]\n\n"


STALLS = ("stall", "stall_midway")
FAULTS = (*WRONG, *RAW, *STALLS)


def is_fault(name: str) -> bool:
    """Whether there is such a fault; an HTTP status of 400 to 599 is one."""
    return name in FAULTS or (name.isdecimal() and 400 <= int(name) <= 599)


def http_error(status: int, retry_after: int | None, retry_date: int | None) -> RawReply:
    """An error in OpenAI's shape; both times are seconds from now."""
    headers = {"Content-Type": "application/json"}
    if retry_after is not None:
        headers["Retry-After"] = str(retry_after)
    if retry_date is not None:
        when = datetime.now(UTC) + timedelta(seconds=retry_date)
        headers["Retry-After"] = format_datetime(when, usegmt=True)
    kind = "rate_limit_error" if status == 429 else "server_error"
    error = {"message": f"A fault that was asked for: status {status}.", "type": kind}
    return RawReply(
        _json({"error": {**error, "param": None, "code": None}}), status=status, headers=headers
    )
