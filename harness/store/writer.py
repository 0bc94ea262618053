"""One thread that writes, and lets many steps share a flush of the disk.

Whatever waits when a transaction begins goes into it, each piece under a
savepoint of its own, so that one that fails, fails alone. A future is done when
its piece is on the disk.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from harness.errors import StoreBusy, StoreClosed, StoreError
from harness.store.files import connect, typed_errors

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

MOST_PER_TRANSACTION = 256


class Writer:
    """See the module's docstring. The thread starts with the first piece of work."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._queue: deque[tuple[Work[Any], Future[Any]]] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None
        self._process = os.getpid()
        self._latest: Future[Any] | None = None
        self._connection: sqlite3.Connection | None = None

    def submit(self, work: Work[T]) -> Future[T]:
        """Have `work` done inside a transaction; in the order of submission.

        It may be called twice, when the first transaction had to be undone. The
        future raises what `work` raised, or a `StoreError`. It cannot be
        cancelled, since later pieces rest on this one.
        """
        if os.getpid() != self._process:
            raise StoreClosed("The store was opened before a fork. Open it again in this process.")
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        with self._wake:
            if self._closing:
                raise StoreClosed("The store is closed.")
            if self._thread is None:
                # A daemon, so that a forgotten store keeps no program from
                # ending; the store's finalizer writes what waits before that.
                self._thread = threading.Thread(target=self._run, name="store", daemon=True)
                self._thread.start()
            self._queue.append((work, future))
            self._latest = future
            self._wake.notify()
        return future

    def flush(self) -> None:
        """Wait until everything submitted before is on the disk, or has failed."""
        latest = self._latest
        if latest is not None and os.getpid() == self._process:
            latest.exception()

    def close(self) -> None:
        """Write what waits, then end the thread."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread is not None and os.getpid() == self._process:
            self._thread.join()

    def _run(self) -> None:
        while batch := self._take():
            self._carry_out(batch)
        self._disconnect()

    def _take(self) -> list[tuple[Work[Any], Future[Any]]]:
        with self._wake:
            while not self._queue and not self._closing:
                self._wake.wait()
            count = min(len(self._queue), MOST_PER_TRANSACTION)
            return [self._queue.popleft() for _ in range(count)]

    def _carry_out(self, batch: list[tuple[Work[Any], Future[Any]]]) -> None:
        try:
            results = self._transaction([work for work, _ in batch])
        except StoreError as error:
            # What a connection is worth after a failed flush is not known.
            self._disconnect()
            if len(batch) == 1 or isinstance(error, StoreBusy):
                for _, future in batch:
                    future.set_exception(error)
            else:
                for piece in batch:
                    self._carry_out([piece])
            return
        for (_, future), result in zip(batch, results, strict=True):
            if isinstance(result, _Failed):
                future.set_exception(result.error)
            else:
                future.set_result(result)

    def _transaction(self, pieces: list[Work[Any]]) -> list[Any]:
        if self._connection is None:
            self._connection = connect(self._path, writing=True)
        with typed_errors(self._path):
            self._connection.execute("BEGIN IMMEDIATE")
            results = [_attempt(self._connection, piece) for piece in pieces]
            self._connection.execute("COMMIT")
        return results

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class _Failed:
    def __init__(self, error: Exception) -> None:
        self.error = error


def _attempt(connection: sqlite3.Connection, work: Work[Any]) -> Any:
    """The result of `work`, or `_Failed`; an error of the database goes up."""
    connection.execute("SAVEPOINT piece")
    try:
        result = work(connection)
    except sqlite3.Error:
        raise
    except Exception as error:  # noqa: BLE001 - handed on to whoever waits for the piece
        connection.execute("ROLLBACK TO piece")
        result = _Failed(error)
    connection.execute("RELEASE piece")
    return result
