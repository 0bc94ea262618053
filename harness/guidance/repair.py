"""Repair: wrong arguments go back once; the second time the harness does what it can.

The tool's own message already names the shape. When the same tool is asked for
wrongly a second time, the argument that can be read out of what the model wrote
is taken: fields that the tool does not have are left out. Only reads are called
so; a write that was not written as it should be is never guessed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from harness.guidance.notes import arguments_of
from harness.guidance.protocol import Calls, Guided, Policy
from harness.schema import InvalidArguments
from harness.state import CallRecord

if TYPE_CHECKING:
    from harness.tool import Tool


class Repair(Policy):
    """See the module's docstring."""

    name = "repair"

    async def before_ask(self, run: Guided) -> Calls | None:
        """After a second wrong call of one tool, call it with what can be read of the arguments."""
        wrong = _wrong_twice(run)
        if wrong is None:
            return None
        tool = run.tools[wrong.tool_name]
        args = readable(tool, arguments_of(wrong))
        if args is None or _asked_before(run, tool.name, args):
            return None
        return Calls([(tool.name, args)])


def readable(tool: Tool, written: dict[str, Any]) -> dict[str, Any] | None:
    """What the tool knows of the written arguments, where that is a call; else `None`."""
    known = tool.parameters.get("properties", {})
    kept = {name: value for name, value in written.items() if name in known}
    try:
        return tool.check(kept)
    except InvalidArguments:
        return None


def _wrong_twice(run: Guided) -> CallRecord | None:
    """The last call, where it and an earlier call of the same read could not run."""
    records = list(run.state.calls.values())
    if not records or records[-1].outcome != "invalid":
        return None
    last = records[-1]
    tool = run.tools.get(last.tool_name)
    if tool is None or tool.effect != "read":
        return None
    wrong = [r for r in records if r.tool_name == last.tool_name and r.outcome == "invalid"]
    return last if len(wrong) > 1 else None


def _asked_before(run: Guided, name: str, args: dict[str, Any]) -> bool:
    wanted = json.dumps(args, sort_keys=True)
    return any(
        record.tool_name == name
        and record.outcome != "invalid"
        and json.dumps(arguments_of(record), sort_keys=True) == wanted
        for record in run.state.calls.values()
    )
