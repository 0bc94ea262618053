"""An MCP server that behaves oddly; its argument says which tools it has."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

server = MCPServer("odd")
sys.stderr.write("odd server starts\x1b[2J\n")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look(word: str = "") -> str:
    """Look."""
    return f"looked {word}"


@server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True))
def burn() -> str:
    """Burn it."""
    return "burnt"


@server.tool()
def flood() -> str:
    """Give far too much."""
    return "x" * 1_000_000


@server.tool()
def refuse() -> str:
    """Fail."""
    raise ToolError("not today")


@server.tool()
async def slow(marker: str, context: Context) -> str:
    """Take for ever; write into the file `marker` when told to stop."""
    await context.report_progress(1, 2, "half way")
    try:
        await asyncio.sleep(600)
    finally:
        Path(marker).write_text("told to stop")
    return "done"


@server.tool()
def die() -> str:
    """End the process."""
    os._exit(3)


@server.tool()
def environment() -> str:
    """Tell what it knows of the keys."""
    return ",".join(sorted(name for name in os.environ if "KEY" in name or name == "GIVEN"))


@server.tool()
def process() -> int:
    """Tell the process id."""
    return os.getpid()


if __name__ == "__main__":
    if "http" in sys.argv:
        server.run("streamable-http", port=int(sys.argv[-1]))
    elif "crash" in sys.argv:
        raise SystemExit("odd: no licence found")
    else:
        server.run("stdio")
