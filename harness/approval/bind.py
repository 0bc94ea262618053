"""From what a person said to a decision that is bound to what may run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.errors import DecisionIncomplete
from harness.schema import InvalidArguments
from harness.state import Decision, RunState, call_digest
from harness.tool import Tool
from harness.workspace import Workspace


def bound(
    decision: Decision, state: RunState, tools: Mapping[str, Tool]
) -> tuple[Decision, dict[str, Any]]:
    """The decision as it is kept, and the arguments that may run now, or would have.

    `decision.digest` is the one of what was shown; an edited call gets the digest
    of its edited arguments. Raises `DecisionIncomplete`.
    """
    if decision.action == "reject" and not (decision.reason or "").strip():
        raise DecisionIncomplete(
            "A refusal needs a reason: without one the model reports what did not happen."
        )
    if decision.action != "edit":
        return decision, dict(getattr(state.interruption, "args", {}))
    record = state.calls.get(decision.call_id)
    tool = tools.get(record.tool_name) if record else None
    if record is None or tool is None:
        raise DecisionIncomplete(f"Run {state.run_id} has no call {decision.call_id} to edit.")
    try:
        args = tool.check(decision.args or {})
    except InvalidArguments as error:
        raise DecisionIncomplete(str(error)) from None
    fingerprint = tool.fingerprint(args, Workspace(state.settings.workspace))
    digest = call_digest(state.run_id, record.call_id, tool.name, args, fingerprint)
    return decision.model_copy(update={"args": args, "digest": digest}), args
