"""The tables, as migrations that are only ever added to.

Migration n takes a store from version n-1 to n; `PRAGMA user_version` says
which it has. A published migration is never changed.
"""

from __future__ import annotations

import sqlite3

from harness.errors import StoreDamaged, StoreTooNew

APPLICATION_ID = 0x75697477
"""`uitw`: marks the file as ours."""

MIGRATIONS: tuple[str, ...] = (
    # 1: what never changes of a run is apart from its head, which is rewritten
    # at every step and so is kept small. Messages, journal and events are only
    # appended. Their key is one integer, the run's number times 2^32 plus a count
    # within the run: so a row is in one place and touches one page, where a
    # primary key of two columns would take an index of its own.
    """
    CREATE TABLE runs (
        run INTEGER PRIMARY KEY,
        run_id TEXT NOT NULL UNIQUE,
        parent_run_id TEXT,
        created_at TEXT NOT NULL,
        model TEXT NOT NULL,
        task TEXT NOT NULL,
        settings TEXT NOT NULL
    );
    CREATE INDEX runs_by_parent ON runs (parent_run_id) WHERE parent_run_id IS NOT NULL;
    CREATE TABLE heads (
        run INTEGER PRIMARY KEY REFERENCES runs,
        state_version INTEGER NOT NULL,
        status TEXT NOT NULL,
        reason TEXT NOT NULL,
        interruption TEXT,
        answer TEXT NOT NULL,
        answered_from_evidence INTEGER NOT NULL,
        unsupported TEXT NOT NULL,
        turns INTEGER NOT NULL,
        tool_runs INTEGER NOT NULL,
        seconds REAL NOT NULL,
        prompt_tokens INTEGER NOT NULL,
        cached_tokens INTEGER NOT NULL,
        completion_tokens INTEGER NOT NULL,
        cost_usd TEXT,
        last_seq INTEGER NOT NULL,
        owner TEXT,
        epoch INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE messages (
        at INTEGER PRIMARY KEY,
        body TEXT NOT NULL
    );
    CREATE TABLE journal (
        at INTEGER PRIMARY KEY,
        call_id TEXT NOT NULL,
        turn INTEGER NOT NULL,
        tool_name TEXT NOT NULL,
        state TEXT NOT NULL,
        ran_args TEXT,
        outcome TEXT,
        child_run_id TEXT
    );
    CREATE TABLE events (
        at INTEGER PRIMARY KEY,
        body TEXT NOT NULL
    );
    CREATE TABLE decisions (
        run INTEGER NOT NULL REFERENCES runs,
        call_id TEXT NOT NULL,
        used INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (run, call_id)
    ) WITHOUT ROWID;
    CREATE TABLE cancel_requests (
        run INTEGER PRIMARY KEY REFERENCES runs,
        reason TEXT NOT NULL
    );
    """,
)


def version(connection: sqlite3.Connection) -> int:
    """The version of the store behind `connection`; 0 for an empty file.

    Raises `StoreTooNew` where a newer version of the program wrote it, and
    `StoreDamaged` where the file belongs to another program.
    """
    found = int(connection.execute("PRAGMA user_version").fetchone()[0])
    application = int(connection.execute("PRAGMA application_id").fetchone()[0])
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and application != APPLICATION_ID:
        raise StoreDamaged("The file is a database of another program. Choose another path.")
    if found > len(MIGRATIONS):
        raise StoreTooNew(
            f"The store has version {found}; this program knows versions up to "
            f"{len(MIGRATIONS)}. Use the newer program, or another data folder."
        )
    return found


def migrate(connection: sqlite3.Connection, to: int = len(MIGRATIONS)) -> None:
    """Bring the store to version `to`, all in one transaction or not at all."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Asked again inside: another process may have done it meanwhile.
        for number in range(version(connection), to):
            for statement in MIGRATIONS[number].split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {to}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
