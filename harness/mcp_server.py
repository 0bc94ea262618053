"""How a person names an MCP server. The servers themselves are in `harness.mcp_tools`."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from harness.state import Value


class McpServer(Value):
    """One server: a `command` to start, or the `url` of one that runs already."""

    command: str | None = Field(default=None, min_length=1)
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    """Added to the few variables that a server gets anyway, such as PATH and HOME."""
    url: str | None = Field(default=None, pattern=r"^https?://\S+$")
    reads: tuple[str, ...] = ()
    """Its tools that change nothing, by the server's names. All others need approval."""
    folder: Path | None = Field(default=None, exclude=True)
    """Where the command starts. Set to the folder of the file that names the server."""

    @model_validator(mode="after")
    def _one_way_to_reach_it(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("give either command or url")
        if self.url and (self.args or self.env):
            raise ValueError("args and env belong to command, not to url")
        return self
