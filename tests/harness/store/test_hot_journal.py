"""A process that is killed inside a transaction leaves a journal that has to be rolled back."""

import os
import signal
import sqlite3
from pathlib import Path

from harness.store import Store


def killed_while_writing(path: Path) -> None:
    """A transaction too large for memory, so that it reaches the file, and then a SIGKILL."""
    child = os.fork()
    if child == 0:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = TRUNCATE")
        connection.execute("PRAGMA cache_size = 2")
        connection.execute("BEGIN IMMEDIATE")
        rows = [(number, "x" * 500) for number in range(3000)]
        connection.executemany("INSERT INTO events VALUES (?, ?)", rows)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert path.with_name(f"{path.name}-journal").stat().st_size > 0


def test_a_store_opens_after_a_kill_inside_a_transaction(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    Store.open(path).close()
    killed_while_writing(path)
    with Store.open(path) as store:
        assert store.runs() == []


def test_a_reader_that_was_open_before_the_kill_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Store.open(path) as store:
        assert store.runs() == []
        killed_while_writing(path)
        assert store.runs() == []
