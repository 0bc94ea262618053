"""Prompt lookup: guesses at the next tokens, out of the conversation itself.

Replies about files repeat them, and tool calls repeat each other. Where the last tokens stood
before, what followed them then is guessed to follow again, and computed beside the next token in
the same step; guesses that the model would not have made are thrown away. The text is the same
token for token, since a step gives the same logits however many rows it has (see `context`).
Calls of the offered tools are known before the first is written: see `usual`.

Whether that pays depends on the hardware: on what a step of several rows costs beside one of a
single row, which `StepCosts` measures while it runs. How often guesses come true is counted for
every token, computed ahead or not, so that finding out costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

LOOKED_AT = (5, 3)
"""Tokens that must have stood together before: a longer match counts before a shorter one."""
MOST_GUESSED = 7
_BREAK = -1
"""Stands where what comes before and after never stood together. No token's id."""
_HOPED = 0.8
"""How often guesses are taken to come true before any has been seen to."""
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

    def __init__(
        self, prompt: Sequence[int], costs: StepCosts, usual: Iterable[Sequence[int]] = ()
    ) -> None:
        """`usual`: how replies to this prompt often begin; what the prompt says counts more."""
        self._costs = costs
        self._tokens: list[int] = []
        self._after: dict[tuple[int, ...], int] = {}
        self._at: int | None = None
        self._right = _HOPED
        for beginning in usual:
            for token in (*prompt[-max(LOOKED_AT) :], *beginning, _BREAK):
                self._append(token)
        for token in prompt:
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
        known = known[: known.index(_BREAK)] if _BREAK in known else known
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
        keys = [tuple(self._tokens[-length:]) for length in LOOKED_AT]
        places = (self._after.get(key) for key in keys)
        self._at = next((at for at in places if at and self._tokens[at] != _BREAK), None)
        self._after.update(dict.fromkeys(keys, len(self._tokens)))
