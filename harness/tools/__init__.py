"""The tools that come with the harness."""

from __future__ import annotations

from harness.tool import Tool
from harness.tools.archive import scan_archive
from harness.tools.files import delete_file, list_files, read_file
from harness.tools.research import research

DEFAULT_TOOLS = ("list_files", "read_file", "delete_file")
"""What a run may use where nobody says otherwise. Published token counts rest on these three."""

__all__ = [
    "DEFAULT_TOOLS",
    "bundled_tools",
    "delete_file",
    "list_files",
    "read_file",
    "research",
    "scan_archive",
]


def bundled_tools() -> dict[str, Tool]:
    """All of them by name, in the order in which a model is told of them."""
    tools = (list_files, read_file, delete_file, scan_archive, research)
    return {tool.name: tool for tool in tools}
