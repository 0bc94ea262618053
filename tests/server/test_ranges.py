"""Number ranges as digit patterns."""

from __future__ import annotations

import re

from hypothesis import assume, given
from hypothesis import strategies as st

from server.ranges import integer_range, number_range

WHOLE = st.integers(-3000, 3000)


def pattern(expression: str | None) -> re.Pattern[str]:
    """The GBNF expression as a regular expression: literals, classes and counts are all it has."""
    assert expression is not None
    literals = re.sub(r'"([^"]*)"', lambda match: re.escape(match[1]), expression)
    return re.compile(literals.replace(" ", ""))


@given(low=WHOLE, high=WHOLE, value=WHOLE)
def test_integers_are_in_the_range_exactly(low: int, high: int, value: int) -> None:
    made = integer_range({"minimum": low, "maximum": high})
    if low > high:
        assert made is None
        return
    for one in (low - 1, low, value, high, high + 1):
        assert bool(pattern(made).fullmatch(str(one))) == (low <= one <= high)


@given(low=st.floats(-50, 50), high=st.floats(-50, 50), data=st.data())
def test_numbers_with_a_fraction_are_in_the_range(
    low: float, high: float, data: st.DataObject
) -> None:
    made = number_range({"exclusiveMinimum": low, "exclusiveMaximum": high})
    assume(made is not None)
    text = data.draw(st.from_regex(pattern(made), fullmatch=True))
    assert low < float(text) < high


def test_one_bound_and_exclusive_bounds() -> None:
    assert pattern(integer_range({"minimum": 1})).fullmatch("123456")
    assert not pattern(integer_range({"minimum": 1})).fullmatch("0")
    assert not pattern(integer_range({"exclusiveMinimum": 1})).fullmatch("1")
    assert pattern(integer_range({"exclusiveMaximum": 2.5})).fullmatch("2")
    assert pattern(number_range({"minimum": 0, "maximum": 1})).fullmatch("0.25")
    assert number_range({"minimum": 0.3, "maximum": 0.7}) is None
    assert integer_range({"minimum": 10**400}) is None
