"""The tools that a person brings: Python files and modules, and MCP servers."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from harness.errors import SettingsError
from harness.own_tools import load_tools, merge
from harness.tool import Tool
from harness.tools import bundled_tools
from uitweg.config import Config


@contextmanager
def own_tools(config: Config, given: Sequence[str] = ()) -> Iterator[dict[str, Tool]]:
    """Those of the settings and of `--tools`. MCP servers run for the time of the block.

    Raises `SettingsError` for what cannot be loaded or started, and for names that clash.
    """
    own = load_tools([*config.tools, *given])
    with _served(config) as served:
        merge(bundled_tools(), own, served)
        yield own | served


@contextmanager
def _served(config: Config) -> Iterator[dict[str, Tool]]:
    if not config.mcp:
        yield {}
        return
    for name, server in config.mcp.items():
        # One with a folder, or with a PATH of its own, is looked for where it will run.
        command = server.command
        if command is None or "/" in command or "PATH" in server.env:
            continue
        if shutil.which(command) is None:
            raise SettingsError(
                f"There is no program {command} to start the MCP server {name} with. "
                f"Correct mcp.{name}.command in uitweg.toml."
            )
    # Said first: the package takes a second to load, and a server may take longer to start.
    sys.stderr.write(f"Starting the MCP servers: {', '.join(config.mcp)} …\n")
    from harness.mcp_tools import mcp_tools

    with mcp_tools(config.mcp) as tools:
        yield tools


def flags(given: Sequence[str]) -> str:
    """`--tools` as it was given, for the commands that a person is told of."""
    return "".join(f" --tools {shlex.quote(place)}" for place in given)
