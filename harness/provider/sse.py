"""Server-sent events, as far as chat endpoints use them.

Only `data` matters; comments, ids and event names are passed over. Written out
here because this is the hot path of every turn, and plain calls cost less than
an async generator. The format:
https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations


class EventDecoder:
    """Bytes in as they come, the data of each finished event out."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that `chunk` finishes."""
        self._buffer += chunk
        if b"\n" not in chunk:
            return []
        *lines, rest = bytes(self._buffer).split(b"\n")
        self._buffer = bytearray(rest)
        found = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" ").removesuffix(b"\r"))
            elif line in (b"", b"\r") and self._data:
                found.append(b"\n".join(self._data))
                self._data = []
        return found

    def end(self) -> list[bytes]:
        """What is left at the end: an event whose last line break was never sent."""
        return self.feed(b"\n\n")
