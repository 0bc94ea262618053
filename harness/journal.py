"""The run being carried: its state, and the steps on their way to the store.

What happens is staged: the state changes at once, and the change waits together
with the events that describe it. `soon` has what is staged handed to the store as
one step within `LINGER`, and goes on; `durable` hands it over at once and waits
until it, and all before it, is on the disk. The harness waits exactly where
something outside rests on the record: before a write runs, at the run's ending,
and before anybody is told of an event. A model is asked and a read runs meanwhile,
since both can be done again.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from harness.events import Event
from harness.state import CallRecord, Message, RunState
from harness.store import Lease, Step, Store

LINGER = 0.005
"""Seconds that a step waits for more: a quick read and its reply share one transaction."""

MOST_BEHIND = 32
"""Steps of one run that may be on their way at once."""

OnEvent = Callable[[Event], None]


class Journal:
    """See the module's docstring. To be used in one event loop's thread.

    Args:
        store: Where the steps go.
        lease: The right to write to the run.
        state: The run as it is in the store, or as it is to be.
        on_event: Called with each event once it is on the disk, in order.
        new: The run is not in the store yet: its first step makes it.
    """

    def __init__(
        self,
        store: Store,
        lease: Lease,
        state: RunState,
        on_event: OnEvent | None = None,
        *,
        new: bool = False,
    ) -> None:
        self.state = state
        self._store = store
        self._lease = lease
        self._on_event = on_event
        self._since = time.monotonic() - state.seconds
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._clear(new=new)

    def _clear(self, *, new: bool = False) -> None:
        self._new = new
        self._events: list[Event] = []
        self._calls: dict[str, CallRecord] = {}
        self._used: list[str] = []
        self._first_message = 0 if new else len(self.state.messages)
        self._after_seq = self.state.last_seq
        self._new_settings = False
        self._release = False

    def stage(
        self,
        *events: Event,
        messages: Iterable[Message] = (),
        calls: Iterable[CallRecord] = (),
        used: str | None = None,
        release: bool = False,
        **head: Any,
    ) -> None:
        """Change the state, to be written with the next step.

        Args:
            events: What happened; they get their number and time here.
            messages: To be added to the transcript.
            calls: Journal entries that are new or have changed.
            used: The call id whose decision is now used up.
            release: Nobody carries the run after this.
            head: Other fields of `RunState` with their new values.
        """
        state = self.state
        seq = state.last_seq
        stamp = now()
        for event in events:
            seq += 1
            self._events.append(event.model_copy(update={"seq": seq, "time": stamp}))
        changed = {record.call_id: record for record in calls}
        self._calls.update(changed)
        decisions = state.decisions
        if used is not None and used in decisions:
            self._used.append(used)
            decisions = {key: value for key, value in decisions.items() if key != used}
        self._new_settings = self._new_settings or "settings" in head
        self._release = self._release or release
        self.state = state.model_copy(
            update={
                "last_seq": seq,
                "seconds": time.monotonic() - self._since,
                "messages": (*state.messages, *messages),
                "calls": {**state.calls, **changed} if changed else state.calls,
                "decisions": decisions,
                **head,
            }
        )

    def tick(self) -> None:
        """Bring `state.seconds` up to now."""
        self.state = self.state.model_copy(update={"seconds": time.monotonic() - self._since})

    def take(self) -> Step | None:
        """What is staged, as a step that the caller has to commit; `None` if nothing is."""
        if not self._events and not self._release:
            return None
        step = Step(
            lease=self._lease,
            state=self.state,
            after_seq=self._after_seq,
            new=self._new,
            first_message=self._first_message,
            messages=self.state.messages[self._first_message :],
            calls=tuple(self._calls.values()),
            used=tuple(self._used),
            events=tuple(self._events),
            new_settings=self._new_settings,
            release=self._release,
        )
        self._clear()
        return step

    def submit(self) -> None:
        """Hand what is staged to the store now, if anything is."""
        self.close()
        if step := self.take():
            written = asyncio.wrap_future(self._store.commit(step))
            written.add_done_callback(lambda done: self._tell(done, step.events))
            self._waiting.append(written)

    def later(self) -> None:
        """Have what is staged handed over within `LINGER`."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LINGER, self.submit)

    def close(self) -> None:
        """Leave what is staged and has not been handed over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def soon(self) -> None:
        """Have what is staged handed over and go on. Raises what an earlier step failed with."""
        self.later()
        while self._waiting and (self._waiting[0].done() or len(self._waiting) > MOST_BEHIND):
            await asyncio.wait((self._waiting[0],))
            self._waiting.popleft().result()

    async def durable(self) -> None:
        """Hand over what is staged and wait until all is on the disk, or raise why not."""
        self.submit()
        if self._waiting:
            # `wait` leaves the futures alone when this task is cancelled.
            await asyncio.wait(self._waiting)
        while self._waiting:
            self._waiting.popleft().result()

    def _tell(self, done: asyncio.Future[None], events: tuple[Event, ...]) -> None:
        if done.exception() is None and self._on_event is not None:
            for event in events:
                self._on_event(event)


def now() -> str:
    """UTC with milliseconds, for people to read."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
