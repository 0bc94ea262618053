"""Carry one run in this process, shown on the terminal, until its ending."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from harness.approval import read_rules
from harness.cancel import CancelToken
from harness.events import Event
from harness.provider import Endpoint, HttpProvider
from harness.runner import Runner
from harness.state import RunState
from harness.store import Store
from harness.telemetry import exported
from harness.tool import Tool
from harness.tools import bundled_tools
from local import folders
from uitweg.endings import closing, exit_code
from uitweg.render import RunView, show_outcome
from uitweg.stopping import stopped_by_signals


def open_store() -> Store:
    """The store of this user's runs."""
    return Store.open(folders.make(folders.data()) / "runs.db")


def find_run(store: Store, wanted: str) -> str:
    """The id of the run that `wanted` means: all of the id, or enough of its beginning."""
    if store.exists(wanted):
        return wanted
    found = store.ids_beginning(wanted) if wanted else []
    return found[0] if len(found) == 1 else wanted


def rules_path() -> Path:
    """The file of this user's standing rules."""
    return folders.config() / "rules.toml"


def new_runner(store: Store, endpoint: Endpoint, own: Mapping[str, Tool]) -> Runner:
    """A runner with this user's standing rules and tools, and the endpoint's key for it alone."""
    return Runner(
        store,
        provider_factory=lambda settings: HttpProvider(
            settings.base_url, endpoint.key_for(settings.base_url)
        ),
        tools=bundled_tools() | dict(own),
        rules=read_rules(rules_path()),
    )


def carry(
    runner: Runner,
    work: Callable[[Runner, dict[str, Any]], Awaitable[RunState]],
    *,
    as_json: bool,
    flags: str = "",
) -> int:
    """Carry a run, show it, and return the exit code of its ending.

    Args:
        runner: Carries it, and is closed with it.
        work: Starts or resumes it: gets the runner, and the keyword arguments
            `on_event`, `on_delta` and `cancel` to hand on.
        as_json: The closing object goes to standard output and all else to standard error.
        flags: What a command that goes on with the run needs besides its id.
    """
    console = Console(stderr=as_json)
    token = CancelToken()
    with exported() as spans, RunView(console) as view:

        def on_event(event: Event) -> None:
            view.on_event(event)
            if spans is not None:
                spans.on_event(event)

        options = {"on_event": on_event, "on_delta": view.on_delta, "cancel": token}
        state = asyncio.run(_carried(runner, work, options, token))
    return tell(console, state, as_json=as_json, flags=flags)


def tell(console: Console, state: RunState, *, as_json: bool, flags: str = "") -> int:
    """The outcome of a run that has ended, and its exit code."""
    show_outcome(console, state, flags)
    if as_json:
        sys.stdout.write(json.dumps(closing(state), ensure_ascii=False) + "\n")
    return exit_code(state)


async def _carried(
    runner: Runner,
    work: Callable[[Runner, dict[str, Any]], Awaitable[RunState]],
    options: dict[str, Any],
    token: CancelToken,
) -> RunState:
    with stopped_by_signals(token):
        async with runner:
            return await work(runner, options)
