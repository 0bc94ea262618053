"""The book-keeping of the KV cache, against a cache that checks every operation."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest

from server.engine.ids import Ids
from server.engine.sequences import Sequence, Sequences
from server.engine.shelf import WORTH


class Cells:
    """A cache as llama.cpp's is: cells with a position and those who hold them."""

    def __init__(self, room: int) -> None:
        self.cells: list[tuple[int, int, set[int]]] = []  # position, token, holders
        self.room = room

    def _of(self, number: int, begin: int, end: int) -> list[tuple[int, int, set[int]]]:
        end = end if end >= 0 else 10**9
        return [c for c in self.cells if number in c[2] and begin <= c[0] < end]

    def copy(self, source: int, target: int, begin: int, end: int) -> None:
        for cell in self._of(source, begin, end):
            cell[2].add(target)

    def remove(self, sequence: int, begin: int, end: int) -> None:
        for cell in self._of(sequence, begin, end):
            cell[2].discard(sequence)
        # As a log: only at its end are free cells used again.
        while self.cells and not self.cells[-1][2]:
            self.cells.pop()

    def save(self, sequence: int) -> bytes:
        return pickle.dumps([(c[0], c[1]) for c in self._of(sequence, 0, -1)])

    def restore(self, sequence: int, state: bytes) -> bool:
        held = pickle.loads(state)
        if len(self.cells) + len(held) > self.room:
            return False
        self.cells += [(at, token, {sequence}) for at, token in held]
        return True

    def clear(self) -> None:
        self.cells = []

    def compute(self, sequence: Sequence, tokens: list[int]) -> None:
        assert len(self.cells) + len(tokens) <= self.room
        for offset, token in enumerate(tokens):
            self.cells.append((sequence.length + offset, token, {sequence.number}))

    def read(self, number: int) -> list[tuple[int, int]]:
        return [(c[0], c[1]) for c in self._of(number, 0, -1)]


def check(cells: Cells, sequences: Sequences, held: list[Sequence]) -> None:
    for sequence in held:
        assert cells.read(sequence.number) == list(enumerate(sequence.tokens.tolist()))
    assert sequences.used + sequences.spent == len(cells.cells)
    assert sequences.used <= sequences.room


OPERATIONS = ["begin", "grow", "grow", "grow", "cut", "park", "forget", "gather", "tidy", "back"]


def some_prompt(chance: random.Random) -> Ids:
    return np.array([chance.randrange(2) for _ in range(12)], np.int32)


def begun(chance: random.Random, sequences: Sequences) -> Sequence:
    """A new one, with what another shares with its prompt."""
    source, shared = sequences.best(some_prompt(chance))
    sequence = sequences.begin(source)
    if source is not None and shared:
        sequences.share(source, sequence, shared)
    return sequence


def put_back(chance: random.Random, cells: Cells, sequences: Sequences) -> list[Sequence]:
    """One that was put away and shares its beginning with a prompt, if there is one with room."""
    found = sequences.shelf.find(some_prompt(chance), -WORTH + 1)
    if not found or not sequences.make_room(len(found[0].tokens)):
        return []
    assert pickle.loads(found[0].state) == list(enumerate(found[0].tokens.tolist()))
    sequence = sequences.begin()
    assert cells.restore(sequence.number, found[0].state)
    sequences.append(sequence, found[0].tokens)
    sequences.cut(sequence, found[1], newest=True)
    return [sequence]


@pytest.mark.parametrize("seed", range(20))
def test_any_order_of_operations_keeps_every_sequence_in_order(seed, monkeypatch) -> None:
    monkeypatch.setattr("server.engine.sequences.HELD_AT_REST", 20)
    monkeypatch.setattr("server.engine.sequences.SPENT_AT_REST", 10)
    chance = random.Random(seed)
    cells = Cells(120)
    sequences = Sequences(cells, 120, 10)
    live: list[Sequence] = []
    for _ in range(300):
        what = chance.choice(OPERATIONS)
        if what == "begin" and len(live) < 4:
            live.append(begun(chance, sequences))
        elif what == "back" and len(live) < 4:
            live += put_back(chance, cells, sequences)
        elif what == "tidy":
            sequences.tidy()
        elif what == "gather":
            sequences.gather()
            assert sequences.spent == 0
        elif what in ("grow", "cut", "park", "forget") and live:
            change(what, live, chance, cells, sequences)
        check(cells, sequences, [*live, *sequences.parked])
    assert sequences.shelf.count


def change(
    what: str, live: list[Sequence], chance: random.Random, cells: Cells, sequences: Sequences
) -> None:
    """One of those in the making grows, is cut short, or leaves."""
    sequence = chance.choice(live)
    if what == "grow":
        tokens = [chance.randrange(2) for _ in range(chance.randrange(1, 9))]
        if sequences.make_room(len(tokens)):
            cells.compute(sequence, tokens)
            sequences.append(sequence, tokens)
    elif what == "cut":
        sequences.cut(sequence, chance.randrange(sequence.length + 1))
    else:
        live.remove(sequence)
        (sequences.park if what == "park" else sequences.forget)(sequence)


def test_the_newest_cells_are_free_again() -> None:
    cells = Cells(20)
    sequences = Sequences(cells, 20, 5)
    sequence = sequences.begin()
    cells.compute(sequence, [1, 2, 3, 4])
    sequences.append(sequence, [1, 2, 3, 4])
    sequences.cut(sequence, 2, newest=True)
    assert (sequences.used, sequences.spent) == (2, 0)
    check(cells, sequences, [sequence])


def test_what_is_shared_is_counted_once() -> None:
    cells = Cells(100)
    sequences = Sequences(cells, 100, 6)
    first = sequences.begin()
    cells.compute(first, [1] * 50)
    sequences.append(first, [1] * 50)
    second = sequences.begin()
    sequences.share(first, second, 40)
    assert (sequences.used, sequences.live_cells()) == (50, 50)
    sequences.forget(first)
    assert (sequences.used, sequences.spent) == (40, 10)
    check(cells, sequences, [second])


def test_what_rests_is_put_away_and_the_newest_stays(monkeypatch) -> None:
    """Cells that nobody needs slow down whoever comes next."""
    monkeypatch.setattr("server.engine.sequences.HELD_AT_REST", 25)
    monkeypatch.setattr("server.engine.sequences.SPENT_AT_REST", 10)
    cells = Cells(100)
    sequences = Sequences(cells, 100, 8)
    shelf = sequences.shelf
    for first in range(6):
        sequence = sequences.begin()
        cells.compute(sequence, [first] * 10)
        sequences.append(sequence, [first] * 10)
        sequences.park(sequence)
        while sequences.tidy():
            pass
    assert [int(s.tokens[0]) for s in sequences.parked] == [4, 5]
    assert shelf.count == 4
    assert (sequences.used, sequences.spent) == (20, 0)
    found, shared = shelf.find(np.array([1] * 12, np.int32), 0)
    assert (shared, pickle.loads(found.state)) == (10, [(at, 1) for at in range(10)])
