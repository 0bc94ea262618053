"""The process that is killed: `python -m harness.figures.victim STORE RUN_ID TASK`.

Reads the run's settings from standard input and carries it, up to the moment at which its model
is asked for the third time. Then it says so and waits for its end.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from harness.events import Event, ToolResult
from harness.figures.tools import plain_tools
from harness.ports import Provider, Reply
from harness.providers import http_provider
from harness.runner import Runner
from harness.state import Settings
from harness.store import Store

TURNS = 2


class Halting:
    """A provider that gives no reply any more after the second."""

    def __init__(self, inner: Provider) -> None:
        """`inner` gives the first two."""
        self._inner = inner
        self._replies = 0

    async def complete(self, **request: Any) -> Reply:
        """The inner provider's reply, or none for ever."""
        if self._replies == TURNS:
            await asyncio.Event().wait()
        self._replies += 1
        return await self._inner.complete(**request)

    async def aclose(self) -> None:
        """Close the inner one."""
        await self._inner.aclose()


async def carry(store: Path, run_id: str, task: str, settings: Settings) -> None:
    """Carry the run until this process is killed."""
    results = 0

    def watch(event: Event) -> None:
        nonlocal results
        results += isinstance(event, ToolResult)
        if results == TURNS:
            sys.stdout.write("two turns\n")
            sys.stdout.flush()

    runner = Runner(
        Store.open(store),
        provider_factory=lambda settings: Halting(http_provider(settings)),
        tools=plain_tools(),
    )
    await runner.start(task, settings, run_id=run_id, on_event=watch)


if __name__ == "__main__":
    read = Settings.model_validate_json(sys.stdin.readline())
    asyncio.run(carry(Path(sys.argv[1]), sys.argv[2], sys.argv[3], read))
