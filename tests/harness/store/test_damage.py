"""Rows that hold something else than what was written: said clearly, and of that run alone."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import StoreDamaged
from harness.store import Store


@pytest.fixture
async def two_runs(
    tmp_path: Path, store: Store, runner: Callable[..., Any], settings: Callable[..., Any]
) -> Callable[..., None]:
    """Puts values into the rows of the second of two runs."""
    for run_id in ("whole", "damaged"):
        await runner("done").start("A task.", settings(), run_id=run_id)

    def damage(table: str, column: str, value: object) -> None:
        key = "at >> 32" if table in ("messages", "events") else "run"
        with sqlite3.connect(store.path) as connection:
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = 2", (value,))
        connection.close()

    return damage


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("heads", "seconds", "{"),
        ("heads", "cost_usd", "x"),
        ("heads", "interruption", "{"),
        ("heads", "last_seq", b"\xff"),
        ("runs", "settings", "[]"),
        ("messages", "body", "[1]"),
        ("messages", "body", "[" * 100_000),
    ],
)
async def test_one_damaged_run_hides_no_other(
    two_runs: Callable[..., None], store: Store, table: str, column: str, value: object
) -> None:
    two_runs(table, column, value)
    assert {run.run_id for run in store.runs()} == {"whole", "damaged"}
    assert store.load("whole").status == "completed"
    with pytest.raises(StoreDamaged, match="Run damaged cannot be read"):
        store.load("damaged")


def test_a_run_that_cannot_be_acquired_for_damage_says_so(
    two_runs: Callable[..., None], store: Store, runner: Callable[..., Any]
) -> None:
    two_runs("heads", "cost_usd", "x")
    with pytest.raises(StoreDamaged):
        runner().cancel("damaged", "enough of it")


@pytest.mark.parametrize("value", ["{", '{"type": "none such"}', b"\xff"])
def test_damaged_events_are_said(
    two_runs: Callable[..., None], store: Store, value: object
) -> None:
    two_runs("events", "body", value)
    with pytest.raises(StoreDamaged):
        store.events("damaged")
    assert len(store.events("whole")) == 3


def test_a_list_with_text_that_is_none_is_still_a_list(
    two_runs: Callable[..., None], store: Store
) -> None:
    two_runs("runs", "task", "")
    with sqlite3.connect(store.path) as connection:
        connection.execute("UPDATE runs SET task = CAST(x'ff41' AS TEXT) WHERE run = 2")
    connection.close()
    assert [run.task for run in store.runs()] == ["�A", "A task."]
