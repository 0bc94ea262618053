"""How far a fetch has come, for people: bytes, percent, speed, time left."""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import Protocol, TextIO

WINDOW_SECONDS = 5.0
"""The speed is that of the last few seconds: what counts is how long the rest will take."""
TERMINAL_SECONDS = 0.1
LOG_SECONDS = 5.0
"""Between two lines where no terminal can overwrite the last one."""


class Progress(Protocol):
    """What a fetch tells while it goes on."""

    def say(self, text: str) -> None:
        """Tell one thing that happened, in a line of its own."""

    def advance(self, what: str, done: int, total: int) -> None:
        """Tell that `done` of `total` bytes of `what` are there."""


class Lines:
    """Tells it on a stream: in one line that changes on a terminal, else in a line now and then."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty()
        self._width = 0
        self._what = ""
        self._told = 0.0
        self._seen: deque[tuple[float, int]] = deque()

    def say(self, text: str) -> None:
        """One line, below whatever line is being overwritten."""
        self._end_line()
        print(text, file=self._stream, flush=True)

    def advance(self, what: str, done: int, total: int) -> None:
        """The figures, if it is time to tell them again; the last ones always."""
        now = time.monotonic()
        if what != self._what:
            self._what, self._told = what, 0.0 if self._terminal else now
            self._seen.clear()
        elif done >= total and self._seen[-1][1] >= total:
            return
        self._seen.append((now, done))
        while now - self._seen[0][0] > WINDOW_SECONDS and len(self._seen) > 2:
            self._seen.popleft()
        last = done >= total
        if not last and now - self._told < (TERMINAL_SECONDS if self._terminal else LOG_SECONDS):
            return
        self._told = now
        self._show(figures(what, done, total, self._speed()), last)

    def _speed(self) -> float:
        (began, before), (now, done) = self._seen[0], self._seen[-1]
        return (done - before) / (now - began) if now > began else 0.0

    def _show(self, text: str, last: bool) -> None:
        if not self._terminal:
            print(text, file=self._stream, flush=True)
            return
        print(f"\r{text:<{self._width}}", end="", file=self._stream, flush=True)
        self._width = len(text)
        if last:
            self._end_line()

    def _end_line(self) -> None:
        if self._width:
            print(file=self._stream)
            self._width = 0


def figures(what: str, done: int, total: int, speed: float) -> str:
    """One line such as `x: 120 of 491 MB, 24 %, 31.0 MB/s, 12 s left`.

    Args:
        what: is being fetched.
        done: bytes so far.
        total: bytes in all.
        speed: bytes a second; 0 while it is unknown.
    """
    text = f"{what}: {done / 1e6:.0f} of {megabytes(total)}, {100 * done // max(total, 1)} %"
    if speed > 0:
        text += f", {speed / 1e6:.1f} MB/s"
        if done < total:
            text += f", {_duration((total - done) / speed)} left"
    return text


def megabytes(count: int) -> str:
    """Bytes in megabytes of 1,000,000, as disks and networks are sold."""
    return f"{count / 1e6:,.0f} MB" if count >= 10e6 else f"{count / 1e6:,.2f} MB"


def _duration(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole} s" if whole < 100 else f"{round(seconds / 60)} min"
