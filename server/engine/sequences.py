"""What the KV cache holds: sequences, the prefixes they share, and how much room is left.

A sequence is live while a reply is written into it, and parked afterwards, so that the next turn
of its conversation can go on from it. Parked ones are given up, the longest unused first, when
room or a number is needed.
"""

from __future__ import annotations

from collections.abc import Sequence as Tokens
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

SHORT_TAIL = 32
"""A parked sequence is not kept for so few tokens beyond what its follower shares."""


class Cache(Protocol):
    """The operations on the real cache."""

    def copy(self, source: int, target: int, tokens: int) -> None:
        """Let `target` share the beginning of `source`."""
        ...

    def cut(self, sequence: int, tokens: int) -> None:
        """Forget what comes after the first `tokens`."""
        ...


@dataclass(eq=False, slots=True)
class _Run:
    """Neighbouring cells that the same sequences hold."""

    length: int
    holders: int = 1


@dataclass(eq=False, slots=True)
class Sequence:
    """Tokens in the cache, from position 0 without a gap."""

    number: int
    live: bool = True
    used_at: int = 0
    length: int = 0
    _ids: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(256, np.int32))
    runs: list[_Run] = field(default_factory=list)

    @property
    def tokens(self) -> npt.NDArray[np.int32]:
        """Their ids."""
        return self._ids[: self.length]

    def extend(self, tokens: Tokens[int] | npt.NDArray[np.int32]) -> None:
        """Take ids in; grows by doubling, so that a token costs the same however many there are."""
        end = self.length + len(tokens)
        if end > len(self._ids):
            self._ids = np.resize(self._ids, max(end, 2 * len(self._ids)))
        self._ids[self.length : end] = tokens
        self.length = end

    def shared_with(self, prompt: npt.NDArray[np.int32]) -> int:
        """Length of the common beginning."""
        size = min(self.length, len(prompt))
        differing = self._ids[:size] != prompt[:size]
        first = int(differing.argmax()) if size else 0
        return first if size and differing[first] else size


class Sequences:
    """All sequences of one cache of `room` tokens."""

    def __init__(self, cache: Cache, room: int, numbers: int) -> None:
        """`numbers`: how many sequences there can be, live and parked."""
        self.room = room
        self.used = 0
        self._cache = cache
        self._free = list(range(numbers - 1, -1, -1))
        self._all: list[Sequence] = []
        self._clock = 0

    @property
    def parked(self) -> list[Sequence]:
        """Those that may be given up, the longest unused first."""
        return sorted((s for s in self._all if not s.live), key=lambda s: s.used_at)

    @property
    def count(self) -> int:
        """Live and parked."""
        return len(self._all)

    def best(self, prompt: npt.NDArray[np.int32]) -> tuple[Sequence | None, int]:
        """The sequence that shares most with a prompt, and how much."""
        best, most = None, 0
        for sequence in self._all:
            if (shared := sequence.shared_with(prompt)) > most:
                best, most = sequence, shared
        return best, most

    def live_room(self) -> int:
        """Cells that live sequences hold; all others can be had."""
        runs = {id(run): run.length for s in self._all if s.live for run in s.runs}
        return sum(runs.values())

    def begin(self) -> Sequence:
        """A new live sequence that holds nothing; the oldest parked one goes if need be."""
        if not self._free:
            self._drop(self.parked[0])
        sequence = Sequence(self._free.pop())
        self._all.append(sequence)
        return sequence

    def share(self, source: Sequence, target: Sequence, tokens: int) -> None:
        """Let the empty `target` begin with the first `tokens` of `source`, at no cost."""
        self._touch(source)
        self._cache.copy(source.number, target.number, tokens)
        target.extend(source.tokens[:tokens])
        self._split(source, tokens)
        left = tokens
        for run in source.runs:
            if left <= 0:
                break
            run.holders += 1
            target.runs.append(run)
            left -= run.length
        if not source.live and source.length - tokens <= SHORT_TAIL:
            self._drop(source)

    def append(self, sequence: Sequence, tokens: Tokens[int] | npt.NDArray[np.int32]) -> None:
        """These tokens were computed into the cache."""
        sequence.extend(tokens)
        self.used += len(tokens)
        if sequence.runs and sequence.runs[-1].holders == 1:
            sequence.runs[-1].length += len(tokens)
        else:
            sequence.runs.append(_Run(len(tokens)))

    def cut(self, sequence: Sequence, tokens: int) -> None:
        """Forget what a sequence holds after its first `tokens`."""
        if tokens >= sequence.length:
            return
        self._cache.cut(sequence.number, tokens)
        self._split(sequence, tokens)
        while sum(run.length for run in sequence.runs) > tokens:
            self._release(sequence.runs.pop())
        sequence.length = tokens

    def park(self, sequence: Sequence) -> None:
        """Its reply has ended: keep it for the next turn."""
        sequence.live = False
        self._touch(sequence)
        if sequence.length == 0:
            self._drop(sequence)

    def make_room(self, tokens: int) -> bool:
        """Give up parked sequences until so many more tokens fit; False if they never will."""
        while self.used + tokens > self.room:
            parked = self.parked
            if not parked:
                return False
            self._drop(parked[0])
        return True

    def forget(self, sequence: Sequence) -> None:
        """Give up a sequence, live or parked."""
        self._drop(sequence)

    def _touch(self, sequence: Sequence) -> None:
        self._clock += 1
        sequence.used_at = self._clock

    def _drop(self, sequence: Sequence) -> None:
        self._cache.cut(sequence.number, 0)
        for run in sequence.runs:
            self._release(run)
        sequence.runs.clear()
        self._all.remove(sequence)
        self._free.append(sequence.number)

    def _release(self, run: _Run) -> None:
        run.holders -= 1
        if run.holders == 0:
            self.used -= run.length

    def _split(self, sequence: Sequence, tokens: int) -> None:
        """See to it that a run ends after the first `tokens` tokens, for all who hold it."""
        at = 0
        for run in sequence.runs:
            if at < tokens < at + run.length:
                rest = _Run(at + run.length - tokens, run.holders)
                run.length = tokens - at
                for holder in self._all:
                    if run in holder.runs:
                        holder.runs.insert(holder.runs.index(run) + 1, rest)
                return
            at += run.length
