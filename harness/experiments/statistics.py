"""The few statistics that the reports need, without a library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Z_95 = 1.959963984540054
"""The 97.5th percentile of the normal distribution."""


@dataclass(frozen=True, slots=True)
class Share:
    """`right` of `n`, with the bounds of its 95% confidence interval (0 to 1)."""

    right: int
    n: int
    low: float
    high: float

    @property
    def value(self) -> float:
        return self.right / self.n if self.n else 0.0

    def __str__(self) -> str:
        return f"{self.right} of {self.n} ({100 * self.low:.0f} to {100 * self.high:.0f}%)"


def wilson(right: int, n: int) -> Share:
    """A share with Wilson's score interval at 95% (E. B. Wilson, 1927, JASA 22).

    It stays within 0 to 1 and is of use for small `n`, where right/n ± 2 standard errors is not.
    With `n` = 0 nothing is known: 0 to 1.
    """
    if n == 0:
        return Share(0, 0, 0.0, 1.0)
    p, z2 = right / n, Z_95**2
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_95 / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    low = 0.0 if right == 0 else max(0.0, centre - half)
    high = 1.0 if right == n else min(1.0, centre + half)
    return Share(right, n, low, high)


def sign_test(better: int, worse: int) -> float:
    """Two-sided exact sign test (McNemar): how likely a split at least this uneven is by chance.

    `better` and `worse` are the pairs that changed; pairs that did not change say nothing.
    """
    n = better + worse
    if n == 0:
        return 1.0
    tail: float = sum(math.comb(n, k) for k in range(min(better, worse) + 1)) / 2**n
    return min(1.0, 2 * tail)


def median(values: Sequence[float]) -> float | None:
    """The middle value, or the mean of the two middle ones; `None` of nothing."""
    return percentile(values, 50)


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Linear between the closest ranks; `None` of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low, high = math.floor(place), math.ceil(place)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
