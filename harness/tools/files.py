"""Tools over the files of the workspace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

from harness.output import CappedText
from harness.tool import ToolContext, tool
from harness.workspace import Workspace, WorkspaceError, plain_path

FilePath = Annotated[str, "The name of the file, as listed.", AfterValidator(plain_path)]
"""Written in one way only, so that a standing rule for a name cannot be missed."""

_FIRST_LINES = 3
_LINE_WIDTH = 120


@tool(effect="read")
def list_files(context: ToolContext) -> list[str]:
    """List the names of the files in the folder."""
    return context.workspace.listing()


@tool(effect="read")
def read_file(path: FilePath, context: ToolContext) -> str | CappedText:
    """Read one text file of the folder."""
    output = CappedText()
    with context.workspace.open_read(path) as file:
        data = file.read(output.cap)
    size = max(context.workspace.size(path), len(data))
    if not data:
        return f"{path} is empty."
    if b"\0" in data:
        return f"{path} is not text: it is a binary file of {size:,} bytes."
    output.add(data)
    output.left_out += size - len(data)
    return output


def describe_deletion(arguments: Mapping[str, Any], workspace: Workspace) -> str:
    """Which file would go, how large it is and how it begins."""
    path = arguments["path"]
    try:
        size = workspace.size(path)
        with workspace.open_read(path) as file:
            head = file.read(_FIRST_LINES * _LINE_WIDTH * 4)
    except WorkspaceError as error:
        return f"Would delete {path}, but cannot: {error}"
    lines = head.decode("utf-8", "backslashreplace").splitlines()[:_FIRST_LINES]
    begins = "\n".join(line[:_LINE_WIDTH] for line in lines)
    text = f"Deletes {path} ({size:,} bytes) for good."
    return f"{text} It begins with:\n{begins}" if begins else text


def deletion_fingerprint(arguments: Mapping[str, Any], workspace: Workspace) -> str:
    """Changes with the file, so that an approval holds for the file that was shown."""
    try:
        return workspace.fingerprint(arguments["path"])
    except WorkspaceError:
        return "no such file"


@tool(effect="write", describe=describe_deletion, fingerprint=deletion_fingerprint)
def delete_file(path: FilePath, context: ToolContext) -> str:
    """Delete one file of the folder for good."""
    context.workspace.delete(path, expected=context.fingerprint)
    return f"deleted {path}"
