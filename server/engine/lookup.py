"""Prompt lookup: guesses at the next tokens, out of the conversation itself.

Replies about files repeat them, and tool calls repeat names. Where the last three tokens stood
before, what followed them then is guessed to follow again, and computed beside the next token in
the same step; guesses that the model would not have made are thrown away. The text is the same
token for token, since a step gives the same logits however many rows it has (see `context`).

Whether that pays depends on the hardware: on what a step of several rows costs beside one of a
single row, which `StepCosts` measures while it runs. How often guesses come true is counted for
every token, computed ahead or not, so that finding out costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

LOOKED_AT = 3
"""Tokens that must have stood together before."""
MOST_GUESSED = 7
_MEMORY = 0.9
"""Weight of what was measured before, at each new measurement."""
_GAIN = 1.05
"""Guessing must promise at least this much more speed."""


class StepCosts:
    """Seconds of a step by its number of rows, as measured."""

    def __init__(self) -> None:
        """Until it is measured, each row more is taken to cost a quarter of the first."""
        self._seconds: dict[int, float] = {}

    def add(self, rows: int, seconds: float) -> None:
        """One more measurement."""
        before = self._seconds.get(rows, seconds)
        self._seconds[rows] = _MEMORY * before + (1 - _MEMORY) * seconds

    def of(self, rows: int) -> float:
        """Beside a step of one row; a number of rows that was never tried counts as the nearest."""
        one = self._seconds.get(1)
        if one is None or len(self._seconds) < 2:
            return 1 + (rows - 1) / 4
        if rows in self._seconds:
            return max(1.0, self._seconds[rows] / one)
        nearest = min((n for n in self._seconds if n > 1), key=lambda n: abs(n - rows))
        slope = (self._seconds[nearest] / one - 1) / (nearest - 1)
        return 1 + max(slope, 0.0) * (rows - 1)


class Lookup:
    """The tokens of one conversation, and what followed them."""

    def __init__(self, tokens: Iterable[int], costs: StepCosts) -> None:
        """`tokens`: the prompt."""
        self._costs = costs
        self._tokens: list[int] = []
        self._after: dict[tuple[int, ...], int] = {}
        self._at: int | None = None
        self._right = 0.5
        for token in tokens:
            self._append(token)

    def add(self, token: int) -> None:
        """One more token of the conversation."""
        if self._at is not None:
            came_true = self._tokens[self._at] == token
            self._right = _MEMORY * self._right + (1 - _MEMORY) * came_true
        self._append(token)

    def guess(self, most: int) -> Sequence[int]:
        """Tokens that are worth computing ahead; none where it does not pay."""
        if self._at is None:
            return ()
        known = self._tokens[self._at : self._at + min(most, MOST_GUESSED)]
        best, best_speed = 0, _GAIN
        promised = 1.0
        for count in range(1, len(known) + 1):
            promised += self._right**count
            speed = promised / self._costs.of(1 + count)
            if speed > best_speed:
                best, best_speed = count, speed
        return known[:best]

    def _append(self, token: int) -> None:
        self._tokens.append(token)
        key = tuple(self._tokens[-LOOKED_AT:])
        self._at = self._after.get(key)
        self._after[key] = len(self._tokens)
