"""How a call is settled and how a run ends, as entries of its journal."""

from __future__ import annotations

import time
from typing import Any

from harness.approval import words
from harness.events import RunStopped, ToolResult
from harness.journal import Journal
from harness.state import CallRecord, Cancelled, Outcome, Usage
from harness.stop import Stop


def settle(
    journal: Journal,
    record: CallRecord,
    content: str,
    outcome: Outcome,
    *,
    usage: Usage | None = None,
    **event: Any,
) -> CallRecord:
    """Give the call its one tool message, in words; the record as it is then.

    Args:
        journal: Of the run.
        record: The call.
        content: The tool message. An empty one would be taken for success.
        outcome: How it went.
        usage: What its subagents used.
        event: More fields of the `ToolResult` event.
    """
    settled = record.model_copy(
        update={
            "state": "settled",
            "outcome": outcome,
            "child_run_id": event.get("child_run_id"),
        }
    )
    head: dict[str, Any] = {} if usage is None else {"usage": journal.state.usage + usage}
    journal.stage(
        ToolResult(
            run_id=journal.state.run_id,
            call_id=record.call_id,
            tool_name=record.tool_name,
            outcome=outcome,
            content=content,
            **event,
        ),
        messages=[
            {
                "role": "tool",
                "tool_call_id": record.call_id,
                "name": record.tool_name,
                "content": content,
            }
        ],
        calls=[settled],
        used=record.call_id,
        **head,
    )
    return settled


def finish(
    journal: Journal,
    stop: Stop,
    answer: str = "",
    *,
    cancelled_at: float | None = None,
    abandoned: tuple[str, ...] = (),
    **head: Any,
) -> None:
    """Stage the run's ending.

    Args:
        journal: Of the run.
        stop: How it ends.
        answer: Where it has one.
        cancelled_at: `time.monotonic()` of the Stop, where there was one.
        abandoned: Calls whose tool did not stop.
        head: More fields of the `RunState`.
    """
    if stop.status == "failed" or isinstance(stop.interruption, Cancelled):
        _skip_owed(journal, stop)
    journal.tick()
    state = journal.state
    journal.stage(
        RunStopped(
            run_id=state.run_id,
            status=stop.status,
            reason=stop.reason,
            interruption=stop.interruption,
            answer=answer,
            turns=state.turns,
            tool_runs=state.tool_runs,
            prompt_tokens=state.usage.prompt_tokens,
            completion_tokens=state.usage.completion_tokens,
            cost_usd=state.usage.cost_usd,
            stop_ms=None if cancelled_at is None else (time.monotonic() - cancelled_at) * 1000,
            abandoned=abandoned,
        ),
        release=True,
        status=stop.status,
        reason=stop.reason,
        interruption=stop.interruption,
        answer=answer,
        **head,
    )


def _skip_owed(journal: Journal, stop: Stop) -> None:
    """No call of a run that ended so stays without its tool message."""
    for record in journal.state.owed():
        if record.state == "started":
            settle(journal, record, words.UNKNOWN, "unknown")
        else:
            settle(journal, record, words.skipped(stop.reason), "skipped")


def cancelled(reason: str) -> Stop:
    """The ending of a run that was cancelled."""
    return Stop("interrupted", f"It was cancelled: {reason.rstrip('.')}.", Cancelled(reason=reason))
