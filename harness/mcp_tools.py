"""Tools of MCP servers, through the official `mcp` package (https://modelcontextprotocol.io).

A server's tool `x` becomes the tool `NAME_x`. What it does is known only from the server's own
words, so it counts as a write and needs approval unless the person has listed it in `reads`.
The server's hints can only make that stricter: a tool that says it is no read, or destructive,
needs approval whatever the list says; no hint ever makes one a read, or lets it run twice.

The connections live in an event loop of their own, in a thread, so that runs of any loop may use
them and a broken server ends nothing but its own calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from pydantic import ConfigDict, create_model

from harness.errors import SettingsError
from harness.mcp_server import McpServer
from harness.schema import InvalidArguments, shape
from harness.tool import DEFAULT_TIMEOUT, Effect, Tool, ToolContext, ToolError
from harness.workspace import Workspace

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal
    from mcp import Client
    from mcp.types import CallToolResult
    from mcp.types import Tool as Offered

START_SECONDS = 60.0
"""A server that has not answered by then cannot be used."""
MOST_TOOLS = 128
MOST_DESCRIPTION = 1024
"""Characters of a description that the model gets: the server may say anything there."""
MOST_SCHEMA = 32 * 1024
_LAST_WORDS = 2000
"""Characters kept of what a server prints."""

NEEDS_PACKAGE = (
    "MCP servers need the package mcp, which is not installed. "
    f"Get it with: {sys.executable} -m pip install 'mcp>=2.3,<3'"
)


@contextmanager
def mcp_tools(servers: Mapping[str, McpServer]) -> Iterator[dict[str, Tool]]:
    """Start or reach every server, and give all their tools; every server ends with the block.

    Raises `SettingsError` for a server that cannot be used.
    """
    try:
        import mcp  # noqa: F401 - asked for here, so that its absence is said in words
        from anyio.from_thread import start_blocking_portal
    except ImportError:
        raise SettingsError(NEEDS_PACKAGE) from None
    tools: dict[str, Tool] = {}
    with start_blocking_portal() as portal, ExitStack() as stack:
        for name, server in servers.items():
            for tool in stack.enter_context(_tools_of(portal, name, server)):
                if tool.name in tools:
                    raise SettingsError(f"Two tools of MCP servers are called {tool.name}.")
                tools[tool.name] = tool
        yield tools


@dataclass(frozen=True, kw_only=True)
class McpTool(Tool):
    """A tool whose schema is the server's, which checks the arguments itself."""

    def validate(self, arguments: str | None) -> dict[str, Any]:
        """See `Tool.validate`; besides JSON only the names are checked here."""
        return self._named_rightly(super().validate(arguments))

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """See `Tool.check`."""
        return self._named_rightly(super().check(arguments))

    def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        """Ask the server."""
        return self.function(dict(arguments), context)

    def _named_rightly(self, arguments: dict[str, Any]) -> dict[str, Any]:
        known, required = self.parameters["properties"], self.parameters["required"]
        problems = [f"`{name}` is missing" for name in required if name not in arguments]
        if not self.parameters.get("additionalProperties"):
            extra = [name for name in arguments if name not in known]
            problems += [f"`{name}` is not an argument of this tool" for name in extra]
        if problems:
            raise InvalidArguments(
                f"{self.name} did not run, its arguments are wrong: {'; '.join(problems[:5])}. "
                f"Call it again with arguments of this shape: {shape(dict(self.parameters))}"
            )
        return arguments


@contextmanager
def _tools_of(portal: BlockingPortal, name: str, server: McpServer) -> Iterator[list[McpTool]]:
    """One server's tools, while it runs."""
    with ExitStack() as stack:
        words = stack.enter_context(_LastWords())
        try:
            connection = portal.wrap_async_context_manager(_connected(server, words.file))
            client, offered = connection.__enter__()
        except Exception as error:
            said = words.text()
            raise SettingsError(
                f"The MCP server {name} cannot be used: {_reason(error)}."
                + (f" It printed: {said}" if said else "")
            ) from error
        # Without the block's error: the connection would wrap it in a group of its own.
        stack.callback(connection.__exit__, None, None, None)
        missing = set(server.reads) - {one.name for one in offered}
        if missing:
            known = ", ".join(one.name for one in offered)
            raise SettingsError(
                f"The MCP server {name} has no tool {min(missing)} to list in reads. "
                f"It has: {known}."
            )
        yield [_tool(portal, client, name, server, one) for one in offered]


@asynccontextmanager
async def _connected(
    server: McpServer, errlog: TextIO
) -> AsyncIterator[tuple[Client, list[Offered]]]:
    from mcp import Client, StdioServerParameters, stdio_client

    transport: Any = server.url
    if server.command is not None:
        parameters = StdioServerParameters(
            command=server.command, args=list(server.args), env=server.env, cwd=server.folder
        )
        transport = stdio_client(parameters, errlog)
    async with Client(transport, read_timeout_seconds=START_SECONDS) as client:
        yield client, await _offered(client)


async def _offered(client: Client) -> list[Offered]:
    """All its tools, page by page."""
    found: list[Offered] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        if len(found) > MOST_TOOLS:
            raise SettingsError(f"it has more than {MOST_TOOLS} tools")
        cursor = page.next_cursor
        if not (cursor and page.tools):
            return found


def _tool(
    portal: BlockingPortal, client: Client, server_name: str, server: McpServer, offered: Offered
) -> McpTool:
    name = re.sub(r"[^A-Za-z0-9_-]", "_", f"{server_name}_{offered.name}")[:64]
    effect, why = _effect(offered, server)

    async def call(arguments: dict[str, Any], context: ToolContext) -> str:
        return await _call(portal, client, server_name, offered.name, arguments, context)

    def describe(arguments: Mapping[str, Any], _workspace: Workspace) -> str:
        shown = json.dumps(arguments, ensure_ascii=False)
        text = f"Runs {offered.name} of the MCP server {server_name} with {shown}. "
        return f"{text}What it changes is not known{why}."

    return McpTool(
        name=name,
        description=" ".join((offered.description or offered.name).split())[:MOST_DESCRIPTION],
        parameters=_parameters(name, offered.input_schema),
        function=call,
        model=create_model(name, __config__=ConfigDict(extra="allow")),
        context_name=None,
        effect=effect,
        timeout=DEFAULT_TIMEOUT,
        describe=describe,
    )


def _effect(offered: Offered, server: McpServer) -> tuple[Effect, str]:
    """What the tool counts as, and what to add for the person who is asked."""
    hints = offered.annotations
    if offered.name not in server.reads:
        return "write", ""
    if hints is not None and (hints.read_only_hint is False or hints.destructive_hint):
        return "write", "; the server itself says that it is no mere read"
    return "read", ""


def _parameters(name: str, schema: Any) -> dict[str, Any]:
    """The server's schema with all that a schema of ours has. Raises `SettingsError`."""
    kept = dict(schema) if isinstance(schema, Mapping) else {}
    size = len(json.dumps(kept))
    if size > MOST_SCHEMA:
        raise SettingsError(f"The arguments of {name} take {size:,} bytes to describe: too many.")
    properties, required = kept.get("properties"), kept.get("required")
    kept["type"] = "object"
    kept["properties"] = properties if isinstance(properties, dict) else {}
    kept["required"] = [str(one) for one in required] if isinstance(required, list) else []
    return {key: value for key, value in kept.items() if key not in ("$schema", "title")}


async def _call(
    portal: BlockingPortal,
    client: Client,
    server_name: str,
    name: str,
    arguments: dict[str, Any],
    context: ToolContext,
) -> str:
    """One call, in the connections' loop. Cancelling this tells the server so, too."""

    async def told(progress: float, total: float | None, message: str | None) -> None:
        context.progress(message or name, int(progress), None if total is None else int(total))

    async def ask() -> CallToolResult:
        # Longer than the tool's own limit, which is the one that counts.
        limit = DEFAULT_TIMEOUT + START_SECONDS
        return await client.call_tool(name, arguments, limit, told)

    try:
        result = await asyncio.wrap_future(portal.start_task_soon(ask))
    except Exception as error:
        raise ToolError(f"The MCP server {server_name} did not do it: {_reason(error)}.") from error
    text = _text(result)
    if result.is_error:
        raise ToolError(text or f"{name} failed and did not say why.")
    return text


def _text(result: CallToolResult) -> str:
    """The result's texts; what is no text is named."""
    parts: list[str] = []
    for block in result.content:
        resource = getattr(block, "resource", None)
        text = getattr(block, "text", None) or getattr(resource, "text", None)
        size = len(getattr(block, "data", "") or "")
        parts.append(text or f"[{block.type} left out, {size:,} characters]")
    if not parts and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(parts)


def _reason(error: BaseException) -> str:
    """The innermost error of a group, in one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    said = " ".join(str(error).split())[:300].rstrip(".")
    return said if isinstance(error, SettingsError) else f"{type(error).__name__}: {said}"


class _LastWords:
    """A file for a server to print to, of which only the end is kept."""

    def __init__(self) -> None:
        reading, writing = os.pipe()
        self.file: TextIO = os.fdopen(writing, "w")
        self._kept: deque[str] = deque(maxlen=_LAST_WORDS)
        self._thread = threading.Thread(target=self._read, args=(reading,), daemon=True)

    def __enter__(self) -> _LastWords:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self.file.close()

    def _read(self, reading: int) -> None:
        with os.fdopen(reading, "rb", buffering=0) as file:
            while chunk := file.read(64 * 1024):
                self._kept.extend(chunk.decode("utf-8", "replace"))

    def text(self) -> str:
        """The last lines, once the server has ended."""
        self.__exit__()
        self._thread.join(1.0)
        return "".join(self._kept).strip()
