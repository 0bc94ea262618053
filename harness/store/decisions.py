"""Recording what a person said about a call: the first one wins."""

from __future__ import annotations

import sqlite3
from typing import Any

from harness.errors import AlreadyDecided, DigestMismatch, NothingToDecide
from harness.events import ApprovalDecided
from harness.state import ApprovalNeeded, Decision, InDoubt, RunState
from harness.store.rows import at as key
from harness.store.rows import load_state, number_of

ANSWERS = {
    "approval": ("approve", "edit", "reject"),
    "in_doubt": ("happened", "run_again", "abandon"),
}


def record(
    connection: sqlite3.Connection,
    run_id: str,
    decision: Decision,
    shown: str,
    args: dict[str, Any],
    at: str,
) -> None:
    """Write `decision` and its event, inside the caller's transaction.

    Args:
        connection: Inside a write transaction, so nobody comes between.
        run_id: The run that waits.
        decision: What was said.
        shown: The digest of what the person saw when they said it.
        args: The arguments that may run now, or would have.
        at: The time, for people.

    Raises `AlreadyDecided`, `NothingToDecide` or `DigestMismatch`; then nothing
    was written.
    """
    run = number_of(connection, run_id)
    state = load_state(connection, run_id)
    _refuse_second(connection, run, state, decision.call_id)
    waiting = _waiting_for(state, decision)
    if waiting.digest != shown:
        raise DigestMismatch(
            f"What was shown of call {decision.call_id} is not what would run now. "
            "Look at the run again, then decide."
        )
    connection.execute(
        "INSERT OR REPLACE INTO decisions (run, call_id, used, body) VALUES (?, ?, 0, ?)",
        (run, decision.call_id, decision.model_dump_json()),
    )
    event = ApprovalDecided(
        run_id=run_id,
        seq=state.last_seq + 1,
        time=at,
        call_id=decision.call_id,
        tool_name=waiting.tool_name,
        action=decision.action,
        args=args,
        reason=decision.reason,
        decided_by=decision.decided_by,
    )
    connection.execute(
        "INSERT INTO events VALUES (?, ?)",
        (key(run, event.seq), event.model_dump_json(by_alias=True)),
    )
    connection.execute("UPDATE heads SET last_seq = ? WHERE run = ?", (event.seq, run))


def _refuse_second(connection: sqlite3.Connection, run: int, state: RunState, call_id: str) -> None:
    """A decision that waits to be used stands, and so does one for a settled call."""
    row = connection.execute(
        "SELECT body FROM decisions WHERE run = ? AND call_id = ?", (run, call_id)
    ).fetchone()
    record = state.calls.get(call_id)
    settled = record is not None and record.state == "settled"
    if row is not None and (settled or call_id in state.decisions):
        first = Decision.model_validate_json(row[0])
        raise AlreadyDecided(
            f"{first.decided_by} was first: call {call_id} has been decided already "
            f"({first.action}). Nothing was changed."
        )


def _waiting_for(state: RunState, decision: Decision) -> ApprovalNeeded | InDoubt:
    waiting = state.interruption
    if state.status != "interrupted" or not isinstance(waiting, ApprovalNeeded | InDoubt):
        raise NothingToDecide(
            f"Run {state.run_id} does not wait for a decision: it is {state.status}"
            f"{f' ({waiting.kind})' if waiting else ''}. Nothing was changed."
        )
    if waiting.call_id != decision.call_id:
        raise NothingToDecide(
            f"Run {state.run_id} waits for a decision on call {waiting.call_id}, "
            f"not on {decision.call_id}. Nothing was changed."
        )
    if decision.action not in ANSWERS[waiting.kind]:
        raise NothingToDecide(
            f"Call {waiting.call_id} waits for one of {', '.join(ANSWERS[waiting.kind])}; "
            f"{decision.action} is none of them. Nothing was changed."
        )
    return waiting
