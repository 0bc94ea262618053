"""Text out of tokens' bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.engine.words import Words


def said(words: Words, data: list[bytes]) -> list[str]:
    return [words.feed(part) for part in data] + [words.finish()]


def test_a_character_split_over_tokens_comes_whole() -> None:
    first, second = "€".encode()[:1], "€".encode()[1:]
    assert said(Words(), [first, second]) == ["", "€", ""]
    assert said(Words(), [first]) == ["", "\ufffd"]


def test_a_stop_string_over_several_pieces_is_no_part_of_the_text() -> None:
    words = Words(["\nEND", "###"])
    assert said(words, [b"one\n", b"EN", b"D two"]) == ["one", "", "", ""]
    assert words.stopped
    assert said(Words(["\nEND"]), [b"one\n", b"EN", b"TER"]) == ["one", "", "\nENTER", ""]
    assert said(Words(["aab"]), [b"aaa", b"a", b"b"]) == ["a", "a", "", ""]


def test_the_earliest_stop_counts() -> None:
    words = Words(["late", "a"])
    assert words.feed(b"xx a late") == "xx "


@pytest.mark.parametrize("stops", [[], ["ab"], ["aab", "ba"]])
@given(text=st.text("abé", max_size=20), sizes=st.lists(st.integers(1, 3), max_size=30))
def test_pieces_of_any_size_give_the_same_text(stops, text, sizes) -> None:
    data = text.encode()
    pieces = []
    for size in [*sizes, len(data)]:
        pieces.append(data[:size])
        data = data[size:]
    ends = [at for stop in stops if (at := text.find(stop)) >= 0]
    assert "".join(said(Words(stops), pieces)) == (text[: min(ends)] if ends else text)
