"""The body of a reply: told by how it begins, read as it comes, never without bound."""

from __future__ import annotations

import json
from typing import Any

from harness.provider.errors import ReplyBroken, ReplyUnreadable
from harness.provider.reading import Assembly
from harness.provider.sse import EventDecoder

MAX_REPLY_BYTES = 32 * 1024 * 1024
"""A longer reply is refused while it is read."""

_STREAM_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")


class Body:
    """Takes the body's bytes and feeds the `Assembly`.

    The content type is not asked: it is wrong often enough, and how a body
    begins is not.
    """

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._size = 0
        self._events: EventDecoder | None = None
        self._whole = bytearray()
        self.done = False
        """The stream said that it is at its end."""

    def take(self, chunk: bytes) -> None:
        """Take some more. Raises a `ProviderError`."""
        self._size += len(chunk)
        if self._size > MAX_REPLY_BYTES:
            raise ReplyUnreadable(f"The reply is longer than {MAX_REPLY_BYTES:,} bytes.")
        if self._events is not None:
            self._feed(self._events.feed(chunk))
            return
        self._whole += chunk
        if self._size == len(chunk) or len(self._whole) < 1024:
            head = _begin(self._whole)
            if head.startswith(_STREAM_STARTS):
                self._events = EventDecoder()
                self._feed(self._events.feed(head))

    def end(self) -> None:
        """The connection has nothing more. Raises a `ProviderError`."""
        if self._events is not None:
            self._feed(self._events.end())
            if not self.done and not self._assembly.complete:
                raise ReplyBroken("The reply broke off before its end.")
            return
        head = _begin(self._whole)
        if not head:
            raise ReplyUnreadable("The endpoint's reply is empty.")
        if not head.startswith((b"{", b"[")):
            raise ReplyUnreadable(f"The endpoint's reply is no chat completion: {excerpt(head)}")
        self._assembly.feed(_json(head))

    def _feed(self, payloads: list[bytes]) -> None:
        for payload in payloads:
            if payload.strip() == b"[DONE]":
                self.done = True
            elif payload.strip() and not self.done:
                self._assembly.feed(_json(payload))


def _begin(data: bytearray) -> bytes:
    return bytes(data).removeprefix(b"\xef\xbb\xbf").lstrip()


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise ReplyUnreadable(f"The reply holds broken JSON: {excerpt(data)}") from None


def excerpt(data: bytes) -> str:
    """The beginning of a body in one line, for an error message."""
    text = data[:2000].decode("utf-8", "backslashreplace")
    return " ".join(text.split())[:300] or "(nothing)"
