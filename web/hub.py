"""Wakes the pages that watch, and hands them the model's words as they come.

What is stored is read from the store; this only says "look again". The words
of a turn that is being written are kept here until the turn is stored, so that
a page which opens in mid-turn sees them from their start.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

MOST_WORDS = 200_000
"""Characters of one turn kept for pages that open late."""


class TooManyWatchers(Exception):
    """As many pages watch as this process can serve."""


@dataclass(slots=True)
class Words:
    """What the model has written of one turn so far."""

    turn: int
    text: str = ""


@dataclass(slots=True, eq=False)
class Watcher:
    """One open page. `run_id` is `None` for a page that shows all runs."""

    run_id: str | None
    _condition: threading.Condition = field(default_factory=threading.Condition)
    _woken: bool = False
    closed: bool = False

    def wake(self) -> None:
        """Let `wait` return, now or when it is next called."""
        with self._condition:
            self._woken = True
            self._condition.notify()

    def wait(self, seconds: float) -> bool:
        """Wait until woken; returns whether it was. Forgets the wake."""
        with self._condition:
            self._condition.wait_for(lambda: self._woken, seconds)
            woken, self._woken = self._woken, False
            return woken


class Hub:
    """See the module's docstring. Safe to use from any thread."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._watchers: set[Watcher] = set()
        self._words: dict[str, Words] = {}

    def join(self, run_id: str | None) -> Watcher:
        """A new watcher, to be given back with `leave`. Raises `TooManyWatchers`."""
        watcher = Watcher(run_id)
        with self._lock:
            if len(self._watchers) >= self._most:
                raise TooManyWatchers
            self._watchers.add(watcher)
        return watcher

    def leave(self, watcher: Watcher) -> None:
        """It watches no longer. Safe to call twice."""
        with self._lock:
            self._watchers.discard(watcher)

    @property
    def watched(self) -> bool:
        """Whether any page watches."""
        return bool(self._watchers)

    def changed(self, run_id: str | None = None) -> None:
        """Something was stored: for one run, or for one that is not known."""
        with self._lock:
            if run_id is not None:
                self._words.pop(run_id, None)
            found = [w for w in self._watchers if run_id is None or w.run_id in (None, run_id)]
        for watcher in found:
            watcher.wake()

    def delta(self, run_id: str, turn: int, text: str) -> None:
        """A piece of the model's words."""
        with self._lock:
            words = self._words.get(run_id)
            if words is None or words.turn != turn:
                words = self._words[run_id] = Words(turn)
            if len(words.text) < MOST_WORDS:
                words.text += text
            found = [w for w in self._watchers if w.run_id == run_id]
        for watcher in found:
            watcher.wake()

    def words(self, run_id: str) -> Words | None:
        """What the model has written of the turn that is not stored yet."""
        with self._lock:
            words = self._words.get(run_id)
            return Words(words.turn, words.text) if words else None

    def close(self) -> None:
        """Let every watcher go: the page stops."""
        with self._lock:
            found = list(self._watchers)
            self._most = 0
        for watcher in found:
            watcher.closed = True
            watcher.wake()
