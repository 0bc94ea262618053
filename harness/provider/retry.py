"""The one retry policy between the harness and a model.

Tried again: 429, 5xx, a connection that cannot be made or breaks. Never: 4xx,
a reply that makes no sense, a cancelled request. `Retry-After` is obeyed, in
seconds or as a date, up to a cap; otherwise the wait doubles, with jitter so
that many runs do not come back at once.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Waits are in seconds."""

    tries: int = 4
    first_wait: float = 0.5
    max_wait: float = 8.0
    max_retry_after: float = 60.0
    draw: Callable[[], float] = random.random

    def wait(self, failed: int, retry_after: float | None) -> float:
        """How long to wait after the `failed`-th try (from 1)."""
        if retry_after is not None:
            return min(retry_after, self.max_retry_after)
        longest: float = min(self.first_wait * 2 ** (failed - 1), self.max_wait)
        return longest * (0.5 + self.draw() / 2)


def read_retry_after(value: str | None, now: float | None = None) -> float | None:
    """Seconds to wait by a `Retry-After` header (RFC 9110, 10.2.3); `None` for nonsense.

    Args:
        value: The header: whole or broken seconds, or an HTTP date.
        now: Seconds since the epoch, for dates; the clock's where not given.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
            seconds = date.timestamp() - (time.time() if now is None else now)
        except (ValueError, TypeError, OverflowError):
            return None
    # `not >` also catches NaN, which compares with nothing.
    return seconds if seconds > 0 else 0.0 if seconds <= 0 else None
