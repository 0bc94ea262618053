"""The list of runs, without their transcripts."""

from __future__ import annotations

import sqlite3
from decimal import Decimal
from typing import Any

from harness.state import Value
from harness.store.rows import UNREADABLE

COLUMNS = (
    "run", "run_id", "parent_run_id", "created_at", "model", "task", "status", "reason",
    "answer", "turns", "tool_runs", "prompt_tokens", "completion_tokens", "cost_usd",
    "seconds", "last_seq",
)  # fmt: skip


_WAITING = """
    status = 'interrupted' AND json_valid(interruption)
    AND json_extract(interruption, '$.kind') IN ('approval', 'in_doubt')
    AND NOT EXISTS (
        SELECT 1 FROM decisions WHERE decisions.run = heads.run AND NOT used
        AND call_id = json_extract(interruption, '$.call_id'))
"""
"""A person is asked and has not said anything yet."""


class RunSummary(Value):
    """One line of the list."""

    number: int
    """Counts up in the order in which runs were made."""
    run_id: str
    parent_run_id: str | None
    created_at: str
    model: str
    task: str
    status: str
    reason: str
    interruption_kind: str | None
    answer: str
    turns: int
    tool_runs: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: Decimal | None
    seconds: float
    last_seq: int


def runs(
    connection: sqlite3.Connection,
    status: str | None,
    model: str | None,
    text: str | None,
    parent: str | None,
    limit: int,
    before: int | None,
    *,
    waiting: bool,
) -> list[RunSummary]:
    """See `harness.store.Store.runs`."""
    wanted: list[tuple[str, Any]] = [
        ("status = ?", status),
        ("model = ?", model),
        ("run < ?", before),
        ("parent_run_id = ?", parent),
        # Both in one text, with a sign between that neither has.
        ("instr(lower(task || char(0x1f) || answer), lower(?))", text),
    ]
    given = [(condition, value) for condition, value in wanted if value is not None]
    conditions = [condition for condition, _ in given]
    if parent is None:
        conditions.append("parent_run_id IS NULL")
    if waiting:
        conditions.append(_WAITING)
    strict = connection.text_factory
    connection.text_factory = _text
    try:
        rows = connection.execute(
            f"SELECT {', '.join(COLUMNS)}, CASE WHEN json_valid(interruption)"  # noqa: S608 - our own names
            " THEN json_extract(interruption, '$.kind') END"
            f" FROM runs JOIN heads USING (run) WHERE {' AND '.join(conditions)}"
            " ORDER BY run DESC LIMIT ?",
            (*(value for _, value in given), limit),
        ).fetchall()
    finally:
        connection.text_factory = strict
    return [_summary(row) for row in rows]


def _text(data: bytes) -> str:
    """Text of a list that is whole but for this: one damaged byte must not hide all runs."""
    return data.decode("utf-8", "replace")


def _summary(row: tuple[Any, ...]) -> RunSummary:
    values = dict(zip(COLUMNS, row, strict=False))
    try:
        cost = values["cost_usd"]
        kept = {name: value for name, value in values.items() if name not in ("run", "cost_usd")}
        return RunSummary(
            number=values["run"],
            interruption_kind=row[-1],
            cost_usd=None if cost is None else Decimal(cost),
            **kept,
        )
    except UNREADABLE:
        return _damaged(values)


def _damaged(values: dict[str, Any]) -> RunSummary:
    """A line for a run that cannot be read, so that the others still can be."""
    return RunSummary(
        number=values["run"],
        run_id=str(values["run_id"]),
        parent_run_id=None,
        created_at=str(values["created_at"]),
        model=str(values["model"]),
        task=str(values["task"]),
        status="failed",
        reason="This run cannot be read: the store is damaged there.",
        interruption_kind=None,
        answer="",
        turns=0,
        tool_runs=0,
        prompt_tokens=0,
        completion_tokens=0,
        cost_usd=None,
        seconds=0.0,
        last_seq=0,
    )
