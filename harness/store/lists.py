"""The list of runs, without their transcripts."""

from __future__ import annotations

import sqlite3
from decimal import Decimal
from typing import Any

from harness.state import Value

COLUMNS = (
    "run", "run_id", "parent_run_id", "created_at", "model", "task", "status", "reason",
    "answer", "turns", "tool_runs", "prompt_tokens", "completion_tokens", "cost_usd",
    "seconds", "last_seq",
)  # fmt: skip


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
) -> list[RunSummary]:
    """See `harness.store.Store.runs`."""
    wanted: list[tuple[str, Any]] = [
        ("status = ?", status),
        ("model = ?", model),
        ("run < ?", before),
        ("(instr(lower(task), lower(?1)) OR instr(lower(answer), lower(?1)))", text),
        ("parent_run_id = ?", parent),
    ]
    # The text is used twice, so it is the first, numbered parameter.
    wanted.sort(key=lambda pair: "?1" not in pair[0])
    given = [(condition, value) for condition, value in wanted if value is not None]
    conditions = [condition for condition, _ in given]
    if parent is None:
        conditions.append("parent_run_id IS NULL")
    rows = connection.execute(
        f"SELECT {', '.join(COLUMNS)}, json_extract(interruption, '$.kind')"  # noqa: S608 - our own names
        f" FROM runs JOIN heads USING (run) WHERE {' AND '.join(conditions)}"
        " ORDER BY run DESC LIMIT ?",
        (*(value for _, value in given), limit),
    )
    return [_summary(row) for row in rows]


def _summary(row: tuple[Any, ...]) -> RunSummary:
    values = dict(zip(COLUMNS, row, strict=False))
    cost = values.pop("cost_usd")
    return RunSummary(
        number=values.pop("run"),
        interruption_kind=row[-1],
        cost_usd=None if cost is None else Decimal(cost),
        **values,
    )
