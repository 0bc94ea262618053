"""All runs in one SQLite file: their heads, messages, calls, decisions, events.

One step of a run is one `Step`: what changed of its state together with the
events that say so, written whole or not at all. Only the owner of a run writes
to it, and every step proves that in its own transaction. Anybody reads, at any
time, from any process.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Container, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.errors import AlreadyCarried, StoreClosed
from harness.events import EVENT, Event
from harness.state import Decision, RunState
from harness.store import decisions, lists, steps
from harness.store.files import connect, typed_errors
from harness.store.lease import Lease, Owner, alive, process_of, sweep
from harness.store.lists import RunSummary
from harness.store.rows import at, damaged, load_state, number_of
from harness.store.schema import MIGRATIONS, migrate, version
from harness.store.steps import Step
from harness.store.writer import Writer


class Store:
    """See the module's docstring. Open it with `Store.open`; safe for threads.

    Whatever writes returns a future that is done when it is on the disk. Every
    method raises a typed `StoreError` where the file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._owners = path.parent / "owners"
        self._owner: Owner | None = None
        self._lock = threading.Lock()
        self._carried: set[str] = set()
        self._idle: list[sqlite3.Connection] = []
        self._writer = Writer(path)
        self._process = os.getpid()
        self._closed = False
        # Runs when a store is forgotten, and when the program ends.
        self._finalizer = weakref.finalize(self, self._writer.close)

    @classmethod
    def open(cls, path: Path | str) -> Store:
        """The store in the file `path`, made or brought up to date where needed."""
        path = Path(path)
        with typed_errors(path):
            if _version_at(path) < len(MIGRATIONS):
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                connection = connect(path, writing=True)
                try:
                    migrate(connection)
                finally:
                    connection.close()
        return cls(path)

    def close(self) -> None:
        """Wait until all is written, then let go of every file."""
        self._closed = True
        self._finalizer()
        with self._lock:
            for connection in self._idle:
                connection.close()
            self._idle.clear()
            if self._owner is not None:
                self._owner.close()

    def flush(self) -> None:
        """Wait until all that was handed over before is on the disk, or has failed."""
        self._writer.flush()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Reading

    def load(self, run_id: str) -> RunState:
        """The run as it is now. Raises `NoSuchRun`, or `StoreDamaged` for this run alone."""
        with self._reading() as connection:
            return load_state(connection, run_id)

    def exists(self, run_id: str) -> bool:
        """Whether there is such a run."""
        with self._reading() as connection:
            rows = connection.execute("SELECT 1 FROM runs WHERE run_id = ?", (run_id,))
            return rows.fetchone() is not None

    def ids_beginning(self, text: str, limit: int = 2) -> list[str]:
        """The ids of runs, at most `limit`, that begin with `text`."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT run_id FROM runs WHERE substr(run_id, 1, length(?1)) = ?1 LIMIT ?2",
                (text, limit),
            )
            return [run_id for (run_id,) in rows]

    def events(self, run_id: str, after: int = 0, limit: int = 1000) -> list[Event]:
        """The run's events with a sequence number above `after`, in order, at most `limit`."""
        lines = self.event_lines(run_id, after, limit)
        try:
            return [EVENT.validate_json(line) for line in lines]
        except ValueError as error:
            raise damaged(run_id, error) from error

    def event_lines(self, run_id: str, after: int = 0, limit: int = 1000) -> list[str]:
        """The same as lines of JSON, just as they were written."""
        with self._reading() as connection:
            run = number_of(connection, run_id)
            rows = connection.execute(
                "SELECT body FROM events WHERE at BETWEEN ? AND ? ORDER BY at LIMIT ?",
                (at(run, after + 1), at(run + 1, 0) - 1, limit),
            )
            lines = [body for (body,) in rows]
        if not all(isinstance(line, str) for line in lines):
            raise damaged(run_id, TypeError())
        return lines

    def runs(
        self,
        *,
        status: str | None = None,
        model: str | None = None,
        text: str | None = None,
        parent: str | None = None,
        limit: int = 100,
        before: int | None = None,
        waiting: bool = False,
    ) -> list[RunSummary]:
        """Runs, the newest first.

        Args:
            status: Only runs with it.
            model: Only runs of it.
            text: Only runs whose task or answer holds it, whatever its case.
            parent: Only the subagents of this run; without it, only runs that
                nobody's run started.
            limit: At most so many.
            before: Only runs with a lower `RunSummary.number`, for the next page.
            waiting: Only runs that wait for a person who has not decided yet.
        """
        with self._reading() as connection:
            return lists.runs(
                connection, status, model, text, parent, limit, before, waiting=waiting
            )

    def carrier(self, run_id: str) -> str | None:
        """Who carries the run just now, in words, or `None`."""
        with self._reading() as connection:
            head = connection.execute(
                "SELECT owner FROM heads WHERE run = ?", (number_of(connection, run_id),)
            ).fetchone()
        # A head that is missing or holds no name names nobody who lives.
        owner = head[0] if head is not None and isinstance(head[0], str) else None
        return self._alive(owner, run_id)

    # Writing

    @contextmanager
    def claim(self, run_id: str) -> Iterator[None]:
        """Hold the run within this process, around `lease` or `acquire` and all that follows.

        Raises `AlreadyCarried`, where it is held here already.
        """
        with self._lock:
            if run_id in self._carried:
                raise AlreadyCarried(
                    f"Run {run_id} is already being carried by this process. "
                    "Cancel it, or wait for its ending."
                )
            self._carried.add(run_id)
        try:
            yield
        finally:
            with self._lock:
                self._carried.discard(run_id)

    def lease(self, run_id: str) -> Lease:
        """The right to write a new run, inside `claim`; its first step makes it."""
        return Lease(run_id, self._own(), 1)

    def acquire(self, run_id: str, among: Container[str]) -> Future[tuple[Lease, RunState]]:
        """Become the run's owner, inside `claim`; a dead owner is taken over.

        The future raises `AlreadyCarried` while somebody carries it, and
        `NotResumable` where its status is not `among` these.
        """
        owner = self._own()

        def work(connection: sqlite3.Connection) -> tuple[Lease, RunState]:
            holder = steps.owner(connection, run_id)
            if holder != owner and (who := self._alive(holder, run_id)):
                raise AlreadyCarried(
                    f"Run {run_id} is already being carried by {who}. Cancel it there, or wait."
                )
            return steps.take_over(connection, run_id, owner, among)

        return self._writer.submit(work)

    def commit(self, step: Step) -> Future[None]:
        """Write one step. The future raises `RunExists` or `LeaseLost`."""
        return self._writer.submit(lambda connection: steps.write(connection, step))

    def abandon(self, lease: Lease) -> Future[None]:
        """Give the run up where its steps can no longer be written."""
        return self._writer.submit(lambda connection: steps.abandon(connection, lease))

    def decide(
        self, run_id: str, decision: Decision, shown: str, args: dict[str, Any], at: str
    ) -> Future[None]:
        """Record a decision for a run that waits for it: `harness.store.decisions.record`."""
        return self._writer.submit(
            lambda connection: decisions.record(connection, run_id, decision, shown, args, at)
        )

    def request_cancel(self, run_id: str, reason: str) -> Future[None]:
        """Ask whoever carries the run to stop it."""
        return self._writer.submit(
            lambda connection: steps.request_cancel(connection, run_id, reason)
        )

    # Within

    def _own(self) -> str:
        with self._lock:
            self._usable()
            if self._owner is None:
                with typed_errors(self.path):
                    sweep(self._owners)
                    self._owner = Owner(self._owners)
            return self._owner.name

    def _alive(self, owner: str | None, run_id: str) -> str | None:
        if owner is None:
            return None
        if self._owner is not None and owner == self._owner.name:
            return "this process" if run_id in self._carried else None
        return process_of(self._owners, owner) if alive(self._owners, owner) else None

    def _usable(self) -> None:
        if self._closed:
            raise StoreClosed("The store is closed.")
        if os.getpid() != self._process:
            raise StoreClosed("The store was opened before a fork. Open it again in this process.")

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """A connection inside one read transaction."""
        self._usable()
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        with typed_errors(self.path):
            connection = connection or connect(self.path, writing=False)
            try:
                connection.execute("BEGIN")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                connection.close()
                raise
        with self._lock:
            self._idle.append(connection)


def _version_at(path: Path) -> int:
    if not path.exists():
        return 0
    connection = connect(path, writing=False)
    try:
        return version(connection)
    finally:
        connection.close()
