"""Opening the file, and what its errors mean in words."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import StoreBusy, StoreDamaged, StoreError, StoreFull, StoreReadOnly

BUSY_SECONDS = 30.0
"""How long a step waits for another process that holds the file."""

# Measured with three tables, a row each a transaction: on a fast disk DELETE 0.38,
# TRUNCATE 0.32, PERSIST 0.28 ms; where a flush takes 4 ms 16, 20 and 20 ms. DELETE
# leaves out the flush after the journal's end, so a power cut can bring the journal
# back and undo a committed step: a write's `started` among them. TRUNCATE does not,
# and unlike PERSIST leaves nothing behind that looks like a hot journal.
PRAGMAS = ("PRAGMA journal_mode = TRUNCATE", "PRAGMA synchronous = FULL")


def connect(path: Path, *, writing: bool) -> sqlite3.Connection:
    """A connection in autocommit mode; raises a typed `StoreError`.

    One for reading is opened for writing all the same, where the file allows it: a
    process that was killed inside a transaction leaves a journal that whoever comes
    next has to roll back, reader or not.
    """
    mode = "rwc" if writing else "rw"
    uri = f"{path.resolve().as_uri()}?mode={mode}"
    with typed_errors(path):
        connection = sqlite3.connect(
            uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        for pragma in PRAGMAS if writing else ("PRAGMA query_only = ON",):
            connection.execute(pragma)
    return connection


@contextmanager
def typed_errors(path: Path) -> Iterator[None]:
    """Turn what sqlite3 and the file system raise into a `StoreError` that says what to do."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise typed(error, path) from error


def typed(error: sqlite3.Error | OSError, path: Path) -> StoreError:
    """The `StoreError` for an error of sqlite3 or of the file system."""
    if isinstance(error, OSError):
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        primary = sqlite3.SQLITE_FULL if full else sqlite3.SQLITE_CANTOPEN
    else:
        primary = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreDamaged(
            f"The store {path} is damaged ({error}). It has been left as it is: "
            "move it away to start with an empty one, or bring back a copy."
        )
    if primary == sqlite3.SQLITE_FULL:
        return StoreFull(f"The disk that holds {path} is full. Free some space, then resume.")
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StoreReadOnly(
            f"The store {path} cannot be written ({error}). Check the rights of the file "
            "and of its folder, or set UITWEG_DATA to another folder."
        )
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(
            f"Another process has held the store {path} for {BUSY_SECONDS:g} seconds. "
            "End that process, then resume."
        )
    return StoreError(f"The store {path} failed: {error}. Nothing of this step was written.")
