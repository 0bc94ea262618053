"""A reply's tokens to text, piece by piece: characters split over tokens, stop strings."""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class Words:
    """Takes bytes of tokens; gives text that is certain to belong to the reply.

    What each token costs does not depend on how long the reply is: only an unfinished character
    and what may become a stop string are held back.
    """

    def __init__(self, stops: Sequence[str] = ()) -> None:
        """`stops`: strings, none empty, that end the reply and are no part of it."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._stops = tuple(stops)
        self._held = ""
        self.stopped = False

    def feed(self, data: bytes) -> str:
        """Some more bytes; the text that is certain now. `stopped` tells of a stop string."""
        return self._released(self._decoder.decode(data))

    def finish(self) -> str:
        """What was held back, once no more comes."""
        if self.stopped:
            return ""
        text = self._released(self._decoder.decode(b"", final=True))
        held, self._held = self._held, ""
        return text if self.stopped else text + held

    def _released(self, text: str) -> str:
        if not self._stops:
            return text
        if self.stopped or not text:
            return ""
        text = self._held + text
        found = [at for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            self.stopped = True
            self._held = ""
            return text[: min(found)]
        keep = max(_overlap(text, stop) for stop in self._stops)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that is a beginning of `stop`."""
    for size in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:size]):
            return size
    return 0
