"""What the KV cache holds: sequences, the prefixes they share, and how much room is left.

A sequence is live while a reply is written into it, and parked afterwards, so that the next turn
of its conversation can go on from it. Parked ones are put away, the longest unused first, when
room or a number is needed, or when they are many: see `shelf`.

Cells are used in one direction only, like a log. Attention adds up a sequence's cells in the order
in which they lie, and floating point sums depend on order: were a freed cell in the middle used
again, a reply's text could depend on what else the server did. So cells that nobody needs any
more stay where they are, as `spent`, until all that is still wanted is copied together: see
`gather`, which takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Tokens
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from server.engine.ids import Ids, begins, most_shared
from server.engine.shelf import Shelf

HELD_AT_REST = 768
"""Cells that sequences may hold while there is nothing to do; the newest may hold more."""
SPENT_AT_REST = 512
"""Spent cells that are put up with while there is nothing to do."""


class Cache(Protocol):
    """The operations on the real cache. Ranges are positions, the end not included."""

    def copy(self, source: int, target: int, begin: int, end: int) -> None:
        """Let `target` hold these cells of `source` too."""
        ...

    def remove(self, sequence: int, begin: int, end: int) -> None:
        """Let a sequence hold these cells no longer."""
        ...

    def save(self, sequence: int) -> bytes:
        """All that a sequence holds."""
        ...

    def restore(self, sequence: int, state: bytes) -> bool:
        """Put it into new cells, side by side; False if it does not fit."""
        ...

    def clear(self) -> None:
        """Forget everything."""
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
    runs: list[_Run] = field(default_factory=list)
    _ids: Ids = field(default_factory=lambda: np.zeros(256, np.int32))

    @property
    def tokens(self) -> Ids:
        """Their ids."""
        return self._ids[: self.length]

    def extend(self, tokens: Tokens[int] | Ids) -> None:
        """Take ids in; grows by doubling, so that a token costs the same however many there are."""
        end = self.length + len(tokens)
        if end > len(self._ids):
            self._ids = np.resize(self._ids, max(end, 2 * len(self._ids)))
        self._ids[self.length : end] = tokens
        self.length = end

    def placed(self) -> Iterator[tuple[int, _Run]]:
        """Its runs, each with the position of its first cell."""
        at = 0
        for run in self.runs:
            yield at, run
            at += run.length


class Sequences:
    """All sequences of one cache of `room` tokens."""

    def __init__(self, cache: Cache, room: int, numbers: int) -> None:
        """`numbers`: how many sequences the cache knows; two of them are for our own use."""
        self.room = room
        self.used = 0
        """Cells that sequences hold."""
        self.spent = 0
        """Cells that nobody holds and that cannot be used before the next gathering."""
        self.shelf = Shelf(room)
        """What is put away; it takes as much memory as the cache at most."""
        self._cache = cache
        self._buried, self._moved = numbers - 1, numbers - 2
        self._free = list(range(numbers - 3, -1, -1))
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

    def best(self, prompt: Ids) -> tuple[Sequence | None, int]:
        """The sequence that shares most with a prompt, and how much."""
        return most_shared(self._all, prompt)

    def live_cells(self) -> int:
        """Cells that live sequences hold; all others can be had."""
        runs = {id(run): run.length for s in self._all if s.live for run in s.runs}
        return sum(runs.values())

    def begin(self, needed: Sequence | None = None) -> Sequence:
        """A new live sequence that holds nothing; the oldest parked one is put away if need be.

        `needed`: one that must not be given up for it.
        """
        if not self._free:
            self._put_away(next(s for s in self.parked if s is not needed))
        sequence = Sequence(self._free.pop())
        self._all.append(sequence)
        return sequence

    def share(self, source: Sequence, target: Sequence, tokens: int) -> None:
        """Let the empty `target` begin with the first `tokens` of `source`, at no cost."""
        self._touch(source)
        self._cache.copy(source.number, target.number, 0, tokens)
        target.extend(source.tokens[:tokens])
        self._split(source, tokens)
        for at, run in source.placed():
            if at >= tokens:
                break
            run.holders += 1
            target.runs.append(run)

    def append(self, sequence: Sequence, tokens: Tokens[int] | Ids) -> None:
        """These tokens were computed into the next cells."""
        sequence.extend(tokens)
        self.used += len(tokens)
        if sequence.runs and sequence.runs[-1].holders == 1:
            sequence.runs[-1].length += len(tokens)
        else:
            sequence.runs.append(_Run(len(tokens)))

    def cut(self, sequence: Sequence, tokens: int, *, newest: bool = False) -> None:
        """Forget what a sequence holds after its first `tokens`.

        `newest`: those cells were the last that were used at all, so they are free again.
        """
        if tokens >= sequence.length:
            return
        self._split(sequence, tokens)
        for at, run in reversed(list(sequence.placed())):
            if at < tokens:
                break
            self._release(sequence, at, run, free=newest)
            sequence.runs.pop()
        sequence.length = tokens

    def park(self, sequence: Sequence) -> None:
        """Its reply has ended: keep it for the next turn, and no other that it contains."""
        for other in self.parked:
            if begins(other.tokens, sequence.tokens):
                self.forget(other)
        sequence.live = False
        self._touch(sequence)
        if sequence.length == 0:
            self.forget(sequence)

    def forget(self, sequence: Sequence) -> None:
        """Give up a sequence, live or parked."""
        for at, run in sequence.placed():
            self._release(sequence, at, run, free=False)
        sequence.runs.clear()
        sequence.length = 0
        self._all.remove(sequence)
        self._free.append(sequence.number)

    def make_room(self, tokens: int) -> bool:
        """See to it that so many tokens more fit; False if they cannot."""
        while self.used + tokens > self.room:
            parked = self.parked
            if not parked:
                return False
            self._put_away(parked[0])
        if self.used + self.spent + tokens > self.room:
            self.gather()
        return self.used + self.spent + tokens <= self.room

    def tidy(self) -> bool:
        """A few milliseconds' work for when there is nothing else to do; False if none is left."""
        parked = self.parked
        if self.used > HELD_AT_REST and len(parked) > 1:
            self._put_away(parked[0])
        elif self.spent > SPENT_AT_REST:
            self.gather()
        else:
            return False
        return True

    def gather(self) -> None:
        """Copy everything that is held to the beginning of the cache; `spent` is none after.

        Run by run, those nearer to position 0 first, so that each sequence's cells keep their
        order and what is shared stays shared.
        """
        places: dict[int, tuple[int, _Run]] = {}
        for sequence in self._all:
            places.update((id(run), (at, run)) for at, run in sequence.placed())
        ordered = sorted(places.values(), key=lambda place: place[0])
        holders = [[s for s in self._all if run in s.runs] for _, run in ordered]
        states = []
        for (at, run), held_by in zip(ordered, holders, strict=True):
            self._cache.copy(held_by[0].number, self._moved, at, at + run.length)
            states.append(self._cache.save(self._moved))
            self._cache.remove(self._moved, 0, -1)
        self._cache.clear()
        lost: set[int] = set()
        for (at, run), held_by, state in zip(ordered, holders, states, strict=True):
            if not self._cache.restore(self._moved, state):
                lost.update(id(sequence) for sequence in held_by)
                continue
            for sequence in held_by:
                self._cache.copy(self._moved, sequence.number, at, at + run.length)
            self._cache.remove(self._moved, 0, -1)
        self.spent = 0
        if lost:
            raise RuntimeError(f"{len(lost)} sequences could not be gathered")

    def _put_away(self, sequence: Sequence) -> None:
        self.shelf.put(sequence.tokens, self._cache.save(sequence.number))
        self.forget(sequence)

    def _touch(self, sequence: Sequence) -> None:
        self._clock += 1
        sequence.used_at = self._clock

    def _release(self, sequence: Sequence, at: int, run: _Run, *, free: bool) -> None:
        run.holders -= 1
        end = at + run.length
        if run.holders == 0:
            self.used -= run.length
            if not free:
                self.spent += run.length
                self._cache.copy(sequence.number, self._buried, at, end)
        self._cache.remove(sequence.number, at, end)

    def _split(self, sequence: Sequence, tokens: int) -> None:
        """See to it that a run ends after the first `tokens` tokens, for all who hold it."""
        for at, run in sequence.placed():
            if at < tokens < at + run.length:
                rest = _Run(at + run.length - tokens, run.holders)
                run.length = tokens - at
                for holder in self._all:
                    if run in holder.runs:
                        holder.runs.insert(holder.runs.index(run) + 1, rest)
                return
