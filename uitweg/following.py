"""The stored trace of a run, as it is and as it grows."""

from __future__ import annotations

import time
from collections.abc import Iterator

from harness.events import Event
from harness.store import Store

PAGE = 500
LOOK_SECONDS = 0.1


def trace_lines(store: Store, run_id: str, *, follow: bool = False) -> Iterator[str]:
    """The run's events as JSON lines, just as they were written.

    With `follow` it goes on until the run ends, or until nobody carries it.
    """
    seq = 0
    while True:
        # Asked before reading, so that what was written last is not missed.
        over = not follow or _is_over(store, run_id)
        while lines := store.event_lines(run_id, after=seq, limit=PAGE):
            yield from lines
            seq += len(lines)
        if over:
            return
        time.sleep(LOOK_SECONDS)


def stored_events(store: Store, run_id: str) -> Iterator[Event]:
    """The run's events."""
    seq = 0
    while events := store.events(run_id, after=seq, limit=PAGE):
        yield from events
        seq += len(events)


def _is_over(store: Store, run_id: str) -> bool:
    return store.carrier(run_id) is None
