"""A tool in a process group of its own, which can be killed.

The child (`harness.child`) gets the call as one JSON line on its standard
input and answers with JSON lines on its standard output; what the tool prints
comes on its standard error. Whatever happens, the group is killed at the end,
and on Linux every other descendant too, so a tool leaves nothing running.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.cancel import CancelledByToken
from harness.output import CappedText
from harness.schema import InvalidArguments
from harness.tool import PermanentToolError, Tool, ToolContext, ToolError

TERM_GRACE = 0.1
"""Seconds between SIGTERM and SIGKILL."""

_LINE_LIMIT = 4 * 1024 * 1024


class KillableWork:
    """One call in a child process. See `harness.execute.Work`."""

    def __init__(self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> None:
        self._context = context
        self._process: asyncio.subprocess.Process | None = None
        call = json.dumps(_call(tool, arguments, context)).encode() + b"\n"
        self._task = asyncio.get_running_loop().create_task(self._run(call))
        self.done: asyncio.Future[CappedText] = self._task

    async def stop(self) -> None:
        process = self._process
        if process is not None and process.returncode is None:
            _signal_group(process.pid, signal.SIGTERM)
            await asyncio.wait((self._task,), timeout=TERM_GRACE)
        self._task.cancel()
        await asyncio.wait((self._task,))

    async def _run(self, call: bytes) -> CappedText:
        self._process = process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "harness.child"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=_LINE_LIMIT,
        )
        output = CappedText()
        printed = asyncio.get_running_loop().create_task(_read_printed(process, output))
        try:
            return await self._converse(process, call, printed, output)
        finally:
            _kill_tree(process.pid)
            printed.cancel()
            await process.wait()

    async def _converse(
        self,
        process: asyncio.subprocess.Process,
        call: bytes,
        printed: asyncio.Task[None],
        output: CappedText,
    ) -> CappedText:
        assert process.stdin is not None  # noqa: S101 - both are pipes, see above
        assert process.stdout is not None  # noqa: S101
        with contextlib.suppress(ConnectionError):
            process.stdin.write(call)
            await process.stdin.drain()
        while True:
            try:
                line = await process.stdout.readline()
                message = json.loads(line) if line else None
            except ValueError:
                raise ToolError("The tool's process answered with something else.") from None
            if message is None:
                # Told to stop before it could listen to that, it ends without a word.
                self._context.cancel.raise_if_cancelled()
                raise ToolError(f"The tool's process ended early. It printed: {output.text()}")
            if "progress" in message:
                self._context.progress(*message["progress"])
                continue
            # What it printed before it ended is on its way already.
            await asyncio.wait((printed,), timeout=0.05)
            return _result(message, output)


def _call(tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
    function = inspect.unwrap(tool.function)
    return {
        "file": str(Path(inspect.getfile(function)).resolve()),
        "module": function.__module__,
        "name": function.__qualname__,
        "arguments": dict(arguments),
        "workspace": str(context.workspace.root),
        "run_id": context.run_id,
        "call_id": context.call_id,
        "idempotency_key": context.idempotency_key,
        "fingerprint": context.fingerprint,
        "path": sys.path,
    }


def _result(message: dict[str, Any], output: CappedText) -> CappedText:
    kind, text = message.get("kind"), str(message.get("text", ""))
    if kind == "ok":
        output.add(text)
        output.left_out += int(message.get("left_out", 0))
        output.more_unread = output.more_unread or bool(message.get("more_unread"))
        return output
    errors: dict[object, type[Exception]] = {
        "permanent": PermanentToolError,
        "invalid": InvalidArguments,
        "cancelled": CancelledByToken,
    }
    raise errors.get(kind, ToolError)(text)


async def _read_printed(process: asyncio.subprocess.Process, output: CappedText) -> None:
    assert process.stderr is not None  # noqa: S101 - a pipe, see above
    while chunk := await process.stderr.read(64 * 1024):
        output.add(chunk)


def _signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _kill_tree(pid: int) -> None:
    """SIGKILL to the group, and to descendants that left it (found through /proc).

    The child collects its orphans (see `harness.child`), so all of them hang
    below it. It is killed last, for the same reason.
    """
    for _ in range(5):  # a descendant may start another one meanwhile
        escaped = _descendants(pid)
        if not escaped:
            break
        for one in escaped:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(one, signal.SIGKILL)
    _signal_group(pid, signal.SIGKILL)


def _descendants(pid: int) -> list[int]:
    """Living descendants of `pid` on Linux; empty elsewhere."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        for listing in Path(f"/proc/{parent}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                waiting += [int(child) for child in listing.read_text().split()]
        if parent != pid and _is_alive(parent):
            found.append(parent)
    return found


def _is_alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state not in ("Z", "X")
    return False
