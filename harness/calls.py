"""Settle one owed call: the only path to a tool.

In this order: can it run as it was written, may it run (the gate), is its result
known already, else run it. Each call leaves here with exactly one tool message,
or the run is interrupted and the call stays owed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness import approval
from harness.approval import words
from harness.endings import cancelled
from harness.events import ApprovalDecided, ApprovalRequired, Event, ToolProgress, ToolStart
from harness.ports import Executed, OnProgress
from harness.schema import InvalidArguments
from harness.state import ApprovalNeeded, CallRecord, InDoubt, Usage
from harness.stop import Stop
from harness.tool import Tool, ToolContext

if TYPE_CHECKING:
    from harness.carrier import Carrier

VAGUE = "The tool failed."
"""All that the model learns of an error under the policy `vague`."""

CUT_OFF = (
    "This call was not run: the reply was cut off at its length limit inside it. "
    "Write the call again, shorter."
)


async def settle(run: Carrier, record: CallRecord) -> Stop | None:
    """Settle the call, or return why the run has to stop at it."""
    tool = run.tools.get(record.tool_name)
    if tool is None:
        run.settle(record, _unknown(run, record), "invalid")
        return None
    if record.outcome == "invalid":
        run.settle(record, CUT_OFF, "invalid")
        return None
    try:
        verdict = _verdict(run, record, tool)
    except InvalidArguments as error:
        if record.state == "started":  # by a tool that took them then
            run.settle(record, words.UNKNOWN, "unknown")
        else:
            run.settle(record, str(error), "invalid")
        return None
    except Exception as error:  # noqa: BLE001 - a tool's own hook may raise anything
        run.settle(record, f"{tool.name} cannot be run: {error}", "error")
        return None
    match verdict:
        case approval.Refuse():
            run.settle(record, verdict.content, verdict.outcome)
            return None
        case approval.Ask():
            return _ask_person(run, record, tool, verdict)
        case approval.Doubt():
            return _doubt(record, tool, verdict)
        case approval.Run():
            return await _reuse_or_run(run, record, tool, verdict)


def _verdict(run: Carrier, record: CallRecord, tool: Tool) -> approval.Verdict:
    """What the gate says. Raises `InvalidArguments`, or whatever a hook of the tool raises."""
    args = record.ran_args or tool.validate(record.arguments)
    decision = run.state.decisions.get(record.call_id)
    return approval.judge(run.state.run_id, record, tool, args, decision, run.rules, run.workspace)


def _unknown(run: Carrier, record: CallRecord) -> str:
    known = ", ".join(run.tools) or "none"
    return f"There is no tool {record.tool_name or 'without a name'}. The tools are: {known}."


def _ask_person(run: Carrier, record: CallRecord, tool: Tool, ask: approval.Ask) -> Stop:
    run.journal.stage(
        ApprovalRequired(
            run_id=run.state.run_id,
            call_id=record.call_id,
            tool_name=tool.name,
            args=ask.args,
            digest=ask.digest,
            effect=_effect(run, tool, ask.args),
        ),
        # A decision that does not fit what would run now is spent.
        used=record.call_id,
    )
    return Stop(
        "interrupted",
        f"{tool.name} waits for approval.",
        ApprovalNeeded(
            call_id=record.call_id, tool_name=tool.name, args=ask.args, digest=ask.digest
        ),
    )


def _effect(run: Carrier, tool: Tool, args: dict[str, Any]) -> str:
    try:
        return tool.describe_effect(args, run.workspace)
    except Exception as error:  # noqa: BLE001 - a tool's own hook may raise anything
        return f"What it would do cannot be said: {error}"


def _doubt(record: CallRecord, tool: Tool, doubt: approval.Doubt) -> Stop:
    return Stop(
        "interrupted",
        f"{tool.name} had begun when the program ended; whether it took effect is not known.",
        InDoubt(call_id=record.call_id, tool_name=tool.name, args=doubt.args, digest=doubt.digest),
    )


async def _reuse_or_run(
    run: Carrier, record: CallRecord, tool: Tool, verdict: approval.Run
) -> Stop | None:
    remembered = run.memory.find(tool, verdict.args)
    if remembered is not None and record.state != "started":
        run.settle(record, remembered.content, "reused", reused_from=remembered.call_id)
        return None
    started = await _start(run, record, tool, verdict)
    if run.cancel.cancelled and record.state != "started":
        # Stop came while the disk was waited for; nothing has run yet.
        run.journal.stage(tool_runs=run.state.tool_runs - 1)
        run.settle(started, words.skipped(cancelled(run.cancel.reason or "").reason), "skipped")
        return None
    children = run.children(started)
    context = ToolContext(
        run_id=run.state.run_id,
        call_id=record.call_id,
        idempotency_key=_key(run, record),
        fingerprint=verdict.fingerprint,
        workspace=run.workspace,
        cancel=run.cancel,
        report=_reporter(run, record),
        spawn=children.spawn if children.allowed else None,
    )
    executed = await run.execute(tool, verdict.args, context)
    return _take(run, started, executed, await children.ended(), children.run_id)


async def _start(run: Carrier, record: CallRecord, tool: Tool, verdict: approval.Run) -> CallRecord:
    """Record that the call begins. For a write this is on the disk before it does."""
    again = record.state == "started"
    started = record.model_copy(
        update={"state": "started", "ran_args": verdict.args if verdict.edited else record.ran_args}
    )
    events: list[Event] = []
    if verdict.by_rule is not None:
        events.append(
            ApprovalDecided(
                run_id=run.state.run_id,
                call_id=record.call_id,
                tool_name=tool.name,
                action="approve",
                args=verdict.args,
                decided_by=f"rule: {verdict.by_rule}",
            )
        )
    events.append(
        ToolStart(
            run_id=run.state.run_id,
            call_id=record.call_id,
            tool_name=tool.name,
            args=verdict.args,
            idempotency_key=_key(run, record),
        )
    )
    run.journal.stage(
        *events,
        calls=[started],
        used=record.call_id,
        tool_runs=run.state.tool_runs + (not again),
    )
    if tool.effect == "read" or tool.idempotent:
        await run.journal.soon()
    else:
        await run.journal.durable()
    return started


def _key(run: Carrier, record: CallRecord) -> str:
    return f"{run.state.run_id}:{record.call_id}"


def _reporter(run: Carrier, record: CallRecord) -> OnProgress:
    def report(message: str, done: int | None, total: int | None) -> None:
        run.journal.stage(
            ToolProgress(
                run_id=run.state.run_id,
                call_id=record.call_id,
                tool_name=record.tool_name,
                message=message,
                done=done,
                total=total,
            )
        )
        run.journal.later()

    return report


def _take(
    run: Carrier, record: CallRecord, executed: Executed, usage: Usage | None, child: str | None
) -> Stop | None:
    """Record how the call went, as far as the error policy lets the model know."""
    policy = run.state.settings.error_policy
    content = executed.content
    if executed.outcome == "error" and policy == "vague":
        content = VAGUE
    if record.ran_args is not None:
        content = words.edited(record.arguments, record.ran_args, content)
    if executed.outcome == "abandoned":
        run.abandoned.append(record.call_id)
    run.settle(
        record,
        content,
        executed.outcome,
        usage=usage,
        ms=executed.ms,
        left_out_bytes=executed.left_out_bytes,
        child_run_id=child,
    )
    if executed.permanent or (executed.outcome == "error" and policy == "fatal"):
        return Stop("failed", f"{record.tool_name} failed: {executed.content}")
    return None
