"""What a tool gave back, as text that a model can read, cut while it is produced."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

OUTPUT_CAP = 8 * 1024
"""Bytes of a tool's output that the model gets to see: about 2,500 tokens."""

NOTHING = "(no output)"
"""Instead of an empty tool message, which a model takes for success."""


class UnreadableOutput(Exception):
    """The tool returned something that has no text form."""


@dataclass(slots=True)
class CappedText:
    """Collects pieces of output up to `cap` bytes of UTF-8, and counts the rest."""

    cap: int = OUTPUT_CAP
    left_out: int = 0
    """Bytes that were produced and not kept."""
    more_unread: bool = False
    """There was more, which nobody read."""
    _kept: bytearray = field(default_factory=bytearray)

    @property
    def full(self) -> bool:
        return len(self._kept) >= self.cap

    def add(self, piece: str | bytes) -> None:
        """Keep what still fits."""
        room = self.cap - len(self._kept)
        if isinstance(piece, str):
            # A character is at least one byte, so the rest need not be encoded.
            head = piece[:room].encode("utf-8", "backslashreplace")
            size = len(head) + _byte_length(piece[room:])
        else:
            head, size = piece[:room], len(piece)
        self._kept += head[:room]
        self.left_out += size - min(len(head), room)

    def kept(self) -> str:
        r"""The kept text alone. Bytes that are not UTF-8 stand as `\xff`."""
        whole = not self.left_out and not self.more_unread
        data = bytes(self._kept)
        return (data if whole else _without_half_character(data)).decode(
            "utf-8", "backslashreplace"
        )

    def text(self) -> str:
        """The kept text, with a last line that says what is missing. Never empty."""
        text = self.kept()
        if not self.left_out and not self.more_unread:
            return text if text.strip() else NOTHING
        amount = "The rest" if self.more_unread else f"{self.left_out:,} more bytes"
        return f"{text}\n[{amount} left out: at most {self.cap:,} bytes are shown.]"


def _byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "backslashreplace"))


def _without_half_character(data: bytes) -> bytes:
    """`data` without the beginning of a UTF-8 character that was cut at its end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:  # a continuation byte: look further back
            continue
        needed = 2 if byte >> 5 == 0b110 else 3 if byte >> 4 == 0b1110 else 4
        return data[:-back] if byte & 0x80 and needed > back else data
    return data


def collect(value: Any, output: CappedText) -> None:
    """Put what a plain function returned into `output`.

    Text, bytes and `CappedText` as they are, nothing for `None`, the pieces of a generator
    until the cap is reached, all else as compact JSON. Raises `UnreadableOutput`.
    """
    if isinstance(value, (str, bytes)):
        output.add(value)
    elif isinstance(value, CappedText):
        output.add(value.kept())
        output.left_out += value.left_out
        output.more_unread = output.more_unread or value.more_unread
    elif isinstance(value, Iterator):
        for piece in value:
            output.add(_piece(piece))
            if output.full:
                output.more_unread = True
                getattr(value, "close", lambda: None)()
                break
    elif value is not None:
        output.add(_as_json(value))


async def collect_async(value: AsyncIterator[Any], output: CappedText) -> None:
    """The same for an async generator."""
    async for piece in value:
        output.add(_piece(piece))
        if output.full:
            output.more_unread = True
            closing = getattr(value, "aclose", None)
            if closing is not None:
                await closing()
            break


def _piece(piece: Any) -> str | bytes:
    if not isinstance(piece, (str, bytes)):
        raise UnreadableOutput(f"a generator must give text, not {type(piece).__name__}")
    return piece


def _as_json(value: Any) -> str:
    if inspect.iscoroutine(value):
        value.close()
    try:
        return json.dumps(
            value, ensure_ascii=False, separators=(",", ":"), default=to_jsonable_python
        )
    except (TypeError, ValueError, RecursionError, PydanticSerializationError):
        raise UnreadableOutput(f"{type(value).__name__} has no text form") from None
