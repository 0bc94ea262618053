"""For tests of one's own tools: carry out one call as a run would.

from harness.testing import call_tool
from my_tools import word_count

def test_word_count(tmp_path):
(tmp_path / "a.txt").write_text("one two")
done = call_tool(word_count, workspace=tmp_path, path="a.txt")
assert done.outcome == "ok"
assert done.content == "2"
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from harness.cancel import CancelToken
from harness.execute import execute
from harness.ports import Executed, OnProgress
from harness.schema import InvalidArguments
from harness.tool import Tool, ToolContext
from harness.workspace import Workspace

__all__ = ["Executed", "call_tool", "call_tool_async"]


def call_tool(
    tool: Tool,
    /,
    *,
    workspace: str | Path | None = None,
    cancel: CancelToken | None = None,
    on_progress: OnProgress | None = None,
    **arguments: Any,
) -> Executed:
    """Carry out one call and give what became of it.

    The arguments go through JSON and the tool's own check, as a model's would; time limit,
    output cap and process are those of a run. Nobody is asked for approval.

    Args:
        tool: What `@tool` made.
        workspace: The folder that it sees; without one, an empty one for this call.
        cancel: Set it to stop the call.
        on_progress: Hears what the tool tells with `context.progress`.
        arguments: The tool's own.

    Returns the outcome (`ok`, `error`, `invalid`, `cancelled` or `abandoned`) and the text that
    the model would read. It does not raise for anything the tool does.
    """
    return asyncio.run(
        call_tool_async(
            tool, workspace=workspace, cancel=cancel, on_progress=on_progress, **arguments
        )
    )


async def call_tool_async(
    tool: Tool,
    /,
    *,
    workspace: str | Path | None = None,
    cancel: CancelToken | None = None,
    on_progress: OnProgress | None = None,
    **arguments: Any,
) -> Executed:
    """`call_tool` within an event loop."""
    with tempfile.TemporaryDirectory() as empty:
        context = ToolContext(
            run_id="test",
            call_id="call_1",
            idempotency_key="test:call_1",
            workspace=Workspace(workspace or empty),
            cancel=cancel or CancelToken(),
            report=on_progress or (lambda *_: None),
        )
        try:
            checked = tool.validate(json.dumps(arguments))
        except InvalidArguments as error:
            return Executed("invalid", str(error))
        return await execute(tool, checked, context)
