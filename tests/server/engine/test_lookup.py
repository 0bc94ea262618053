"""Guesses out of the conversation, and when they are worth a step's time."""

from __future__ import annotations

import pytest

from server.engine.lookup import Lookup, StepCosts


def costs(**seconds: float) -> StepCosts:
    made = StepCosts()
    for rows, value in seconds.items():
        made.add(int(rows[1:]), value)
    return made


def test_what_followed_before_is_guessed_to_follow_again() -> None:
    lookup = Lookup([1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3], costs(n1=1.0, n4=1.1))
    assert list(lookup.guess(3)) == [4, 5, 6]
    assert list(lookup.guess(0)) == []
    lookup.add(4)
    assert list(lookup.guess(2)) == [5, 6]
    lookup.add(99)
    assert list(lookup.guess(3)) == []


def test_the_last_time_counts() -> None:
    lookup = Lookup([1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3], costs(n1=1.0, n2=1.0))
    assert list(lookup.guess(1)) == [5]


def test_nothing_is_guessed_where_rows_cost_as_much_as_steps() -> None:
    lookup = Lookup([1, 2, 3, 4, 5, 1, 2, 3], costs(n1=1.0, n2=2.0, n4=4.0))
    assert list(lookup.guess(5)) == []


def test_wrong_guesses_end_it_and_right_ones_bring_it_back() -> None:
    lookup = Lookup([1, 2, 3], costs(n1=1.0, n2=1.3, n4=1.9))
    for number in range(20):
        for token in (1, 2, 3, 100 + number):
            lookup.add(token)
    for token in (1, 2, 3):
        lookup.add(token)
    assert list(lookup.guess(3)) == []
    for _ in range(30):
        for token in (1, 2, 3, 4):
            lookup.add(token)
    assert len(lookup.guess(3)) == 3


def test_costs_that_were_never_measured_are_reckoned_from_their_neighbours() -> None:
    measured = costs(n1=1.0, n4=1.6)
    assert measured.of(4) == pytest.approx(1.6)
    assert measured.of(2) == pytest.approx(1.2)
    assert costs().of(3) == 1.5
    assert costs(n1=1.0, n2=0.8).of(2) == 1.0


def test_a_longer_match_counts_before_a_later_one() -> None:
    lookup = Lookup([9, 8, 1, 2, 3, 4, 7, 7, 1, 2, 3, 5, 9, 8, 1, 2, 3], costs(n1=1.0, n2=1.0))
    assert list(lookup.guess(1)) == [4]


def test_how_replies_usually_begin_is_guessed_from_their_first_token_on() -> None:
    usual = [[50, 51], [50, 51, 52, 53], [60, 61]]
    lookup = Lookup([1, 2, 3, 4, 5, 6], costs(n1=1.0, n8=1.0), usual)
    assert list(lookup.guess(7)) == [60, 61]
    lookup.add(50)
    assert list(lookup.guess(7)) == [51, 52, 53]
    for token in (51, 52, 53):
        lookup.add(token)
    assert list(lookup.guess(7)) == []


def test_what_the_conversation_says_counts_more_than_what_is_usual() -> None:
    before = [5, 6, 7, 8, 9]
    prompt = [*before, 50, 60, 61, 62, *before]
    lookup = Lookup(prompt, costs(n1=1.0, n4=1.0), [[50, 51, 52]])
    lookup.add(50)
    assert list(lookup.guess(3)) == [60, 61, 62]
