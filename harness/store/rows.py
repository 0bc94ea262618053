"""Between a run as a value and its rows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from harness.errors import NoSuchRun, StoreDamaged
from harness.state import CallRecord, Decision, Message, RunState

HEAD = (
    "state_version", "status", "reason", "interruption", "answer", "answered_from_evidence",
    "unsupported", "turns", "tool_runs", "seconds", "prompt_tokens", "cached_tokens",
    "completion_tokens", "cost_usd", "last_seq",
)  # fmt: skip


def dumps(value: Any) -> str:
    """Compact JSON, key order kept, text left as it is."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def head_of(state: RunState) -> tuple[Any, ...]:
    """The values of `HEAD`, in that order."""
    interruption = state.interruption
    cost = state.usage.cost_usd
    return (
        state.version,
        state.status,
        state.reason,
        None if interruption is None else interruption.model_dump_json(),
        state.answer,
        state.answered_from_evidence,
        dumps(state.unsupported),
        state.turns,
        state.tool_runs,
        state.seconds,
        state.usage.prompt_tokens,
        state.usage.cached_tokens,
        state.usage.completion_tokens,
        None if cost is None else str(cost),
        state.last_seq,
    )


def at(run: int, number: int) -> int:
    """The key of a row: `number` counts within the run. See `harness.store.schema`."""
    return run << 32 | number


def call_row(key: int, record: CallRecord) -> tuple[Any, ...]:
    """The values of one row of `journal`, in the order of its columns."""
    return (
        key,
        record.call_id,
        record.turn,
        record.tool_name,
        record.state,
        None if record.ran_args is None else dumps(record.ran_args),
        record.outcome,
        record.child_run_id,
    )


def number_of(connection: sqlite3.Connection, run_id: str) -> int:
    """The run's number in the store; raises `NoSuchRun`."""
    row = connection.execute("SELECT run FROM runs WHERE run_id = ?", (run_id,)).fetchone()
    if row is None:
        raise NoSuchRun(f"There is no run {run_id}. `uitweg runs` lists those there are.")
    return int(row[0])


UNREADABLE = (
    ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError,
)  # fmt: skip
"""What comes of rows that hold something else than what was written."""


def damaged(run_id: str, error: Exception) -> StoreDamaged:
    """The error for one run whose rows cannot be read."""
    return StoreDamaged(
        f"Run {run_id} cannot be read ({type(error).__name__}): the store is damaged there. "
        "It has been left as it is. Other runs may be whole."
    )


def load_state(connection: sqlite3.Connection, run_id: str) -> RunState:
    """The run as it is in the store. The caller holds a transaction open.

    Raises `NoSuchRun`, or `StoreDamaged` for this run alone.
    """
    try:
        return _load(connection, run_id)
    except UNREADABLE as error:
        raise damaged(run_id, error) from error


def _load(connection: sqlite3.Connection, run_id: str) -> RunState:
    run = number_of(connection, run_id)
    kept = connection.execute(
        "SELECT parent_run_id, created_at, task, settings FROM runs WHERE run = ?", (run,)
    ).fetchone()
    head = connection.execute(
        f"SELECT {', '.join(HEAD)} FROM heads WHERE run = ?",  # noqa: S608 - our own names
        (run,),
    ).fetchone()
    messages = [
        json.loads(body)
        for (body,) in connection.execute(
            "SELECT body FROM messages WHERE at BETWEEN ? AND ? ORDER BY at",
            (at(run, 0), at(run + 1, 0) - 1),
        )
    ]
    decisions = connection.execute(
        "SELECT body FROM decisions WHERE run = ? AND NOT used", (run,)
    ).fetchall()
    parent_run_id, created_at, task, settings = kept
    return RunState.model_validate(
        {
            "run_id": run_id,
            "parent_run_id": parent_run_id,
            "created_at": created_at,
            "task": task,
            "settings": json.loads(settings),
            "messages": messages,
            "calls": _calls(connection, run, messages),
            "decisions": {
                decision.call_id: decision
                for decision in (Decision.model_validate_json(body) for (body,) in decisions)
            },
            **_head(dict(zip(HEAD, head, strict=True))),
        }
    )


def _head(row: Mapping[str, Any]) -> dict[str, Any]:
    cost = row["cost_usd"]
    return {
        "version": row["state_version"],
        "status": row["status"],
        "reason": row["reason"],
        "interruption": None if row["interruption"] is None else json.loads(row["interruption"]),
        "answer": row["answer"],
        "answered_from_evidence": bool(row["answered_from_evidence"]),
        "unsupported": json.loads(row["unsupported"]),
        "turns": row["turns"],
        "tool_runs": row["tool_runs"],
        "seconds": row["seconds"],
        "last_seq": row["last_seq"],
        "usage": {
            "prompt_tokens": row["prompt_tokens"],
            "cached_tokens": row["cached_tokens"],
            "completion_tokens": row["completion_tokens"],
            "cost_usd": None if cost is None else Decimal(cost),
        },
    }


def _calls(
    connection: sqlite3.Connection, run: int, messages: list[Message]
) -> dict[str, dict[str, Any]]:
    """The calls in the transcript's order. What the model wrote is not kept twice."""
    rows = connection.execute(
        "SELECT call_id, turn, tool_name, state, ran_args, outcome, child_run_id"
        " FROM journal WHERE at BETWEEN ? AND ? ORDER BY at",
        (at(run, 0), at(run + 1, 0) - 1),
    )
    # The latest entry of a call says how it stands.
    found = {row[0]: row for row in rows}
    calls: dict[str, dict[str, Any]] = {}
    for message in messages:
        for written in message.get("tool_calls") or ():
            call_id, turn, tool_name, state, ran_args, outcome, child = found[written["id"]]
            calls[call_id] = {
                "call_id": call_id,
                "turn": turn,
                "tool_name": tool_name,
                "arguments": written["function"]["arguments"],
                "state": state,
                "ran_args": None if ran_args is None else json.loads(ran_args),
                "outcome": outcome,
                "child_run_id": child,
            }
    return calls
