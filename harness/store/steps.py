"""What writes to a run, each inside the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Container
from dataclasses import dataclass

from harness.errors import LeaseLost, NotResumable, RunExists
from harness.events import Event
from harness.state import CallRecord, Message, RunState
from harness.store.lease import Lease
from harness.store.rows import HEAD, at, call_row, dumps, head_of, load_state, number_of


@dataclass(frozen=True, slots=True)
class Step:
    """What one step of a run adds. Of `state` only the head is written."""

    lease: Lease
    state: RunState
    after_seq: int
    """The last event before this step's; a step whose forerunner failed fails, too."""
    new: bool = False
    """It makes the run."""
    first_message: int = 0
    messages: tuple[Message, ...] = ()
    calls: tuple[CallRecord, ...] = ()
    used: tuple[str, ...] = ()
    """Call ids whose decision this step uses up."""
    events: tuple[Event, ...] = ()
    new_settings: bool = False
    """A resume has raised the limits, so `state.settings` is written too."""
    release: bool = False
    """The run is carried no longer."""


def _create(connection: sqlite3.Connection, step: Step) -> int:
    """Write a new run without its transcript, owned by the step's owner."""
    state, lease = step.state, step.lease
    row = (
        state.run_id, state.parent_run_id, state.created_at, state.settings.model,
        state.task, state.settings.model_dump_json(),
    )  # fmt: skip
    try:
        run = connection.execute(
            "INSERT INTO runs (run_id, parent_run_id, created_at, model, task, settings)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            row,
        ).lastrowid
    except sqlite3.IntegrityError:
        raise RunExists(f"There is a run {state.run_id} already.") from None
    columns = ("run", "owner", "epoch", *HEAD)
    connection.execute(
        f"INSERT INTO heads ({', '.join(columns)})"  # noqa: S608 - our own names
        f" VALUES ({', '.join('?' * len(columns))})",
        (run, None if step.release else lease.owner, lease.epoch, *head_of(state)),
    )
    return int(run or 0)


def owner(connection: sqlite3.Connection, run_id: str) -> str | None:
    """The name of the run's owner, alive or not."""
    row = connection.execute(
        "SELECT owner FROM heads WHERE run = ?", (number_of(connection, run_id),)
    ).fetchone()
    name: str | None = row[0]
    return name


def take_over(
    connection: sqlite3.Connection, run_id: str, owner: str, among: Container[str]
) -> tuple[Lease, RunState]:
    """Make `owner` the run's owner. Raises `NotResumable` for a status not `among` these."""
    run = number_of(connection, run_id)
    state = load_state(connection, run_id)
    if state.status not in among:
        raise NotResumable(
            f"Run {run_id} has ended: {state.status}. It cannot go on; start a new one."
        )
    connection.execute("UPDATE heads SET owner = ?, epoch = epoch + 1 WHERE run = ?", (owner, run))
    epoch = connection.execute("SELECT epoch FROM heads WHERE run = ?", (run,)).fetchone()[0]
    connection.execute("DELETE FROM cancel_requests WHERE run = ?", (run,))
    return Lease(run_id, owner, epoch), state


def abandon(connection: sqlite3.Connection, lease: Lease) -> None:
    """Leave the run without an owner, if the lease is still good."""
    connection.execute(
        "UPDATE heads SET owner = NULL WHERE owner = ? AND epoch = ? AND run ="
        " (SELECT run FROM runs WHERE run_id = ?)",
        (lease.owner, lease.epoch, lease.run_id),
    )


def request_cancel(connection: sqlite3.Connection, run_id: str, reason: str) -> None:
    """Leave word for the run's owner; the first reason stands."""
    connection.execute(
        "INSERT INTO cancel_requests (run, reason) VALUES (?, ?) ON CONFLICT (run) DO NOTHING",
        (number_of(connection, run_id), reason),
    )


def write(connection: sqlite3.Connection, step: Step) -> None:
    """Write the step.

    Raises `RunExists` for a new run whose id is taken, and `LeaseLost` for one that
    has another owner by now.
    """
    run = _create(connection, step) if step.new else _update(connection, step)
    _append(connection, run, step)


def _update(connection: sqlite3.Connection, step: Step) -> int:
    """Write the head, if the step's owner is the run's."""
    lease = step.lease
    run = number_of(connection, lease.run_id)
    changed = connection.execute(
        f"UPDATE heads SET {', '.join(f'{name} = ?' for name in HEAD)}, owner = ?"  # noqa: S608 - our own names
        " WHERE run = ? AND owner = ? AND epoch = ? AND last_seq = ?",
        (
            *head_of(step.state),
            None if step.release else lease.owner,
            run,
            lease.owner,
            lease.epoch,
            step.after_seq,
        ),
    )
    if changed.rowcount == 0:
        raise LeaseLost(
            f"Run {lease.run_id} has changed in the store since it was read here: it was taken "
            "over or decided on elsewhere, or an earlier step could not be written. "
            "Nothing more was written; look at it, and resume it if it waits."
        )
    return run


def _append(connection: sqlite3.Connection, run: int, step: Step) -> None:
    connection.executemany(
        "INSERT INTO messages VALUES (?, ?)",
        [
            (at(run, number), dumps(message))
            for number, message in enumerate(step.messages, step.first_message)
        ],
    )
    if step.calls:
        last = connection.execute(
            "SELECT max(at) FROM journal WHERE at BETWEEN ? AND ?",
            (at(run, 0), at(run + 1, 0) - 1),
        ).fetchone()[0]
        connection.executemany(
            "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                call_row(key, record)
                for key, record in enumerate(step.calls, (last or at(run, 0)) + 1)
            ],
        )
    connection.executemany(
        "UPDATE decisions SET used = 1 WHERE run = ? AND call_id = ?",
        [(run, call_id) for call_id in step.used],
    )
    connection.executemany(
        "INSERT INTO events VALUES (?, ?)",
        [(at(run, event.seq), event.model_dump_json(by_alias=True)) for event in step.events],
    )
    if step.new_settings:
        settings = step.state.settings.model_dump_json()
        connection.execute("UPDATE runs SET settings = ? WHERE run = ?", (settings, run))
    if step.release:
        connection.execute("DELETE FROM cancel_requests WHERE run = ?", (run,))
