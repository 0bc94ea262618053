"""A subagent as a tool."""

from __future__ import annotations

from typing import Annotated

from harness.tool import ToolContext, ToolError, tool

_TOOLS = ("list_files", "read_file")
_MAX_TURNS = 8


@tool(effect="read", timeout=None)
async def research(
    question: Annotated[str, "The whole question, in words."], context: ToolContext
) -> str:
    """Give a question about the files to a helper that can only read. Returns its answer."""
    if context.spawn is None:
        raise ToolError("a helper cannot ask another helper. Use the file tools yourself.")
    result = await context.spawn(question, tools=_TOOLS, max_turns=_MAX_TURNS)
    return result.content
