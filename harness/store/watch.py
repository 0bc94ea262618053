"""Hears when another process asks for a run of this one to be stopped."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path

from harness.cancel import CancelToken
from harness.errors import StoreError
from harness.store.files import connect, typed_errors

EVERY_SECONDS = 0.05
"""Asking costs some microseconds where nobody has written since."""

LINGER = 20
"""Times that nothing was to be watched before the thread ends."""


class CancelWatch:
    """Sets the token of a run when its cancellation is asked for in the store.

    One thread, that lives while runs are watched and a second longer.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._tokens: dict[str, CancelToken] = {}
        self._thread: threading.Thread | None = None
        self._idle = 0
        self._stop = threading.Event()

    def add(self, run_id: str, token: CancelToken) -> None:
        """Watch for a request to cancel `run_id`."""
        with self._lock:
            self._tokens[run_id] = token
            self._idle = 0
            self._stop.clear()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="cancels", daemon=True)
                self._thread.start()

    def remove(self, run_id: str) -> None:
        """Watch it no longer."""
        with self._lock:
            self._tokens.pop(run_id, None)

    def token(self, run_id: str) -> CancelToken | None:
        """The token of a run that is watched."""
        with self._lock:
            return self._tokens.get(run_id)

    def close(self) -> None:
        """End the thread now, unless a run is watched; it begins again with the next one."""
        with self._lock:
            thread = self._thread
            if thread is None or self._tokens:
                return
            self._idle = LINGER
            self._stop.set()
        thread.join()

    def _run(self) -> None:
        seen = -1
        while self._wanted():
            # A store that cannot be read just now is asked again: what is wrong
            # with it, the run's own steps say.
            with (
                contextlib.suppress(StoreError),
                contextlib.closing(connect(self._path, writing=False)) as connection,
            ):
                while self._wanted():
                    with typed_errors(self._path):
                        seen = self._look(connection, seen)
                    self._stop.wait(EVERY_SECONDS)
                return
            self._stop.wait(EVERY_SECONDS)

    def _wanted(self) -> bool:
        with self._lock:
            self._idle = 0 if self._tokens else self._idle + 1
            if self._idle > LINGER:
                self._thread = None
            return self._thread is not None

    def _look(self, connection: sqlite3.Connection, seen: int) -> int:
        """Cancel what is asked for, if anything was written since version `seen`."""
        version = int(connection.execute("PRAGMA data_version").fetchone()[0])
        if version != seen:
            rows = connection.execute(
                "SELECT run_id, reason FROM cancel_requests JOIN runs USING (run)"
            ).fetchall()
            for run_id, reason in rows:
                if token := self.token(run_id):
                    token.cancel(reason)
        return version
