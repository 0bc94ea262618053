"""The tools of the figures: the bundled ones, and two that stand for a bad day.

Both look to the model exactly like the tool they replace, so that the counts stay the same.
"""

from __future__ import annotations

from dataclasses import replace

from harness.tool import PermanentToolError, Tool, ToolContext, ToolError
from harness.tools import DEFAULT_TOOLS, bundled_tools

LOCKED = "permission denied: {path} is locked"


def plain_tools() -> dict[str, Tool]:
    """The three file tools that the figures were made with, in their order."""
    tools = bundled_tools()
    return {name: tools[name] for name in DEFAULT_TOOLS}


def locked_tools(*, known: bool) -> dict[str, Tool]:
    """A folder whose files can never be read.

    Args:
        known: Whether the tool says that there is no use trying again.
    """
    tools = plain_tools()
    error = PermanentToolError if known else ToolError

    def read_file(path: str, context: ToolContext) -> str:  # noqa: ARG001 - as the tool calls it
        raise error(LOCKED.format(path=path))

    return {**tools, "read_file": replace(tools["read_file"], function=read_file)}


def growing_tools(deleted: list[str]) -> dict[str, Tool]:
    """A folder in which a service goes on writing: a deleted log is soon there again.

    Args:
        deleted: Receives the name of every file that was really deleted.
    """
    tools = plain_tools()
    really = tools["delete_file"].function

    def delete_file(path: str, context: ToolContext) -> str:
        file = context.workspace.root / path
        before = file.read_bytes()
        said: str = really(path, context)
        deleted.append(path)
        file.write_bytes(before)
        return said

    return {**tools, "delete_file": replace(tools["delete_file"], function=delete_file)}
