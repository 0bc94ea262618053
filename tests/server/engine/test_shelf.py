"""States in memory: found by their beginning, bounded, and right when they come back."""

from __future__ import annotations

import numpy as np
import pytest

from server.engine.ids import Ids
from server.engine.shelf import WORTH, Shelf


def ids(*numbers: int) -> Ids:
    return np.array([number for number in numbers for _ in range(20)], np.int32)


def test_the_one_that_shares_most_is_found_if_it_is_worth_it() -> None:
    shelf = Shelf(1000)
    shelf.put(ids(1, 2), b"12")
    shelf.put(ids(1, 3), b"13")
    found, shared = shelf.find(ids(1, 2, 4), 0)
    assert (found.state, shared) == (b"12", 40)
    assert shelf.find(ids(1, 2, 4), 40 - WORTH) is not None
    assert shelf.find(ids(1, 2, 4), 40 - WORTH + 1) is None
    assert shelf.find(ids(5), 0) is None
    assert Shelf(1000).find(ids(5), 0) is None


def test_a_longer_one_takes_the_place_of_what_it_begins_with() -> None:
    shelf = Shelf(1000)
    shelf.put(ids(1), b"1")
    shelf.put(ids(2), b"2")
    shelf.put(ids(1, 2), b"12")
    assert (shelf.count, shelf.tokens) == (2, 60)
    assert shelf.find(ids(1), 0)[0].state == b"12"


def test_the_longest_unused_go_first() -> None:
    shelf = Shelf(60)
    for number in range(1, 4):
        shelf.put(ids(number), b"")
    shelf.find(ids(1), 0)
    shelf.put(ids(4), b"")
    assert shelf.tokens == 60
    assert shelf.find(ids(2), 0) is None
    assert shelf.find(ids(1), 0) is not None
    shelf.put(ids(5, 6, 7, 8), b"")
    assert (shelf.count, shelf.tokens) == (0, 0)


@pytest.mark.engine
def test_a_conversation_comes_back_without_a_prefill(started, asked, tmp_path, monkeypatch) -> None:
    """Put away as soon as another was begun; the text is as if it had stayed."""
    for name in ("HELD_AT_REST", "SPENT_AT_REST"):
        monkeypatch.setattr(f"server.engine.sequences.{name}", 40)
    engine = started(tmp_path)
    try:
        ask = asked(engine)
        texts = [f"{word} is what this story of many words is about, " * 6 for word in "ABCD"]
        first = [ask.reply(text, 12).whole for text in texts]
        computed = engine.figures.prefill_tokens
        assert [ask.reply(text, 12).whole for text in texts] == first
        assert engine.figures.prefill_tokens - computed == len(texts)
        assert engine.figures.shelf_loads >= len(texts) - 1
        assert engine.shelved >= len(texts) - 1
        again = [ask.reply(f"{text}{said} So", 12) for text, said in zip(texts, first, strict=True)]
        assert all(reply.ending.cached_tokens > 40 for reply in again)
    finally:
        engine.close()
