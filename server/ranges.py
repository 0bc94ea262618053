"""Numbers between two bounds, as GBNF expressions over their digits."""

from __future__ import annotations

import math
from collections.abc import Mapping

MOST_DIGITS = 15
"""Digits that a double holds exactly."""
_LARGEST = 10**MOST_DIGITS - 1
_FRACTION = '"." [0-9]{0,5} [1-9]'
"""Never all zeros, so that a number with it lies strictly between two whole ones."""


def integer_range(bounds: Mapping[str, float]) -> str | None:
    """An expression for the whole numbers within JSON schema `bounds`, or None for none."""
    low, high = _whole_bounds(bounds)
    return _joined(_signed(low, high, ""))


def number_range(bounds: Mapping[str, float]) -> str | None:
    """An expression for numbers within `bounds`: whole ones, and some with a fraction.

    Fractions are written only between two whole numbers that both lie within.
    """
    low, high = _whole_bounds(bounds)
    closed_low, closed_high = _closed_bounds(bounds)
    return _joined([*_signed(low, high, ""), *_signed_fractions(closed_low, closed_high)])


def _whole_bounds(bounds: Mapping[str, float]) -> tuple[int, int]:
    """The smallest and the largest whole number allowed."""
    low, high = _closed_bounds(bounds)
    if (above := bounds.get("exclusiveMinimum")) is not None:
        low = max(low, math.floor(above) + 1)
    if (below := bounds.get("exclusiveMaximum")) is not None:
        high = min(high, math.ceil(below) - 1)
    return low, high


def _closed_bounds(bounds: Mapping[str, float]) -> tuple[int, int]:
    """The outermost whole numbers, an excluded bound counted in."""
    lows = [bounds[key] for key in ("minimum", "exclusiveMinimum") if key in bounds]
    highs = [bounds[key] for key in ("maximum", "exclusiveMaximum") if key in bounds]
    low = max([-_LARGEST, *map(math.ceil, lows)])
    return low, min([_LARGEST, *map(math.floor, highs)])


def _signed(low: int, high: int, tail: str) -> list[str]:
    """Whole numbers from `low` to `high`, each followed by `tail`."""
    made = [f'"-" {one} {tail}' for one in _between(max(1, -high), -low)]
    return made + [f"{one} {tail}" for one in _between(max(0, low), high)]


def _signed_fractions(low: int, high: int) -> list[str]:
    """Numbers with a fraction between `low` and `high`."""
    made = [f'"-" {one} {_FRACTION}' for one in _between(max(0, -high), -low - 1)]
    return made + [f"{one} {_FRACTION}" for one in _between(max(0, low), high - 1)]


def _between(low: int, high: int) -> list[str]:
    """Whole numbers from `low` to `high`, neither negative; one expression a digit pattern."""
    made = []
    for digits in range(len(str(low)), len(str(max(high, 0))) + 1):
        first = max(low, 10 ** (digits - 1) if digits > 1 else 0)
        last = min(high, 10**digits - 1)
        if first <= last:
            made.extend(_same_length(str(first), str(last)))
    return made


def _same_length(first: str, last: str) -> list[str]:
    """Digit strings from `first` to `last`, which are equally long."""
    if not first:
        return [""]
    rest = len(first) - 1
    if first[0] == last[0]:
        return [f'"{first[0]}" {tail}'.strip() for tail in _same_length(first[1:], last[1:])]
    start, end = int(first[0]), int(last[0])
    made = []
    if first[1:].strip("0"):
        made += [f'"{start}" {tail}' for tail in _same_length(first[1:], "9" * rest)]
        start += 1
    after = []
    if last[1:].strip("9"):
        after = [f'"{end}" {tail}' for tail in _same_length("0" * rest, last[1:])]
        end -= 1
    if start <= end:
        made.append(f"[{start}-{end}]" + (f" [0-9]{{{rest}}}" if rest else ""))
    return made + after


def _joined(options: list[str]) -> str | None:
    return " | ".join(option.strip() for option in options) or None
