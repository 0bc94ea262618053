"""Notices what other processes write to the store.

SQLite's `data_version` changes when another connection has committed; asking
costs microseconds, and nobody is asked while no page watches.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading

from harness.errors import StoreError
from harness.store import Store
from harness.store.files import connect, typed_errors
from web.hub import Hub

EVERY_SECONDS = 0.1


class StoreWatch:
    """One thread that wakes the hub's watchers when the store has changed."""

    def __init__(self, store: Store, hub: Hub) -> None:
        self._store = store
        self._hub = hub
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="store-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(EVERY_SECONDS):
            # A store that cannot be read now is opened again a moment later.
            with contextlib.suppress(StoreError), typed_errors(self._store.path):
                self._look()

    def _look(self) -> None:
        with contextlib.closing(connect(self._store.path, writing=False)) as connection:
            seen = _version(connection)
            while not self._stop.wait(EVERY_SECONDS):
                if not self._hub.watched:
                    continue
                version = _version(connection)
                if version != seen:
                    seen = version
                    self._hub.changed()


def _version(connection: sqlite3.Connection) -> int:
    """A number that is another one once somebody else has written."""
    return int(connection.execute("PRAGMA data_version").fetchone()[0])
