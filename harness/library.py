"""The harness as a library: one call that carries one task to its ending.

from harness import run_sync, tool

@tool(effect="read")
def weather(city: str) -> str:
    '''Say what the weather is like.'''
    return f"It rains in {city}."

print(run_sync("What is the weather in Delft?", tools=[weather]).answer)
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.budget import Budget
from harness.cancel import CancelToken
from harness.events import Event
from harness.journal import OnEvent
from harness.ports import Provider
from harness.provider.endpoint import endpoint_from_environment
from harness.provider.listing import choose_model
from harness.providers import http_provider
from harness.runner import Runner
from harness.state import Limits, RunState, Settings
from harness.stop import StopCondition
from harness.store import Store
from harness.tool import Tool
from local import folders


async def run(
    task: str,
    *,
    tools: Iterable[Tool] = (),
    model: str | Provider | None = None,
    workspace: str | Path = ".",
    limits: Mapping[str, Any] | None = None,
    store: Store | Path | None = None,
    on_event: OnEvent | None = None,
    cancel: CancelToken | None = None,
    budget: Budget | None = None,
    stop_conditions: Sequence[StopCondition] = (),
    **settings: Any,
) -> RunState:
    """Carry `task` to its ending and return the run.

    Args:
        task: What the model is to do.
        tools: What it may use.
        model: A model's name at the endpoint (`LLM_BASE_URL`; without a name
            `LLM_MODEL`, or else the first that the endpoint has), or a provider of
            your own, such as a `ScriptedModel`.
        workspace: The folder that file tools see.
        limits: Fields of `Limits`, such as `{"max_turns": 5}`.
        store: Where the run is kept: a store, a file, or else the user's own.
        on_event: Called with each event once it is on the disk.
        cancel: Set it to stop the run.
        budget: What this run shares with others.
        stop_conditions: More conditions that end the run; see `StopCondition`.
        settings: Other fields of `Settings`. The model's own prices and guidance
            hold where none are given.

    Raises a `HarnessError` where it could not start or be recorded; whatever
    happens after that is the run's ending.
    """
    known = {tool.name: tool for tool in tools}
    endpoint = endpoint_from_environment()
    provider = None if model is None or isinstance(model, str) else model
    if provider is None:
        named = model if isinstance(model, str) else None
        chosen = await asyncio.to_thread(choose_model, endpoint, named)
        settings = {
            "model": chosen.name,
            "prices": chosen.prices,
            "guidance": chosen.policies(),
            **settings,
        }
    wanted = Settings(
        base_url=endpoint.base_url,
        workspace=str(Path(workspace).resolve()),
        tools=tuple(known),
        limits=Limits.model_validate(limits or {}),
        **{"model": "scripted", **settings},
    )
    factory = (lambda _: provider) if provider else http_provider
    with contextlib.ExitStack() as stack:
        if not isinstance(store, Store):
            store = stack.enter_context(Store.open(store or folders.data() / "runs.db"))
        conditions = (*stop_conditions, *([budget] if budget else []))
        async with Runner(
            store, provider_factory=factory, tools=known, stop_conditions=conditions
        ) as runner:
            state = await runner.start(task, wanted, on_event=on_event, cancel=cancel)
    if budget is not None:
        budget.count(state)
    return state


def run_sync(task: str, **more: Any) -> RunState:
    """`run` for a program without an event loop; the same arguments."""
    return asyncio.run(run(task, **more))


async def stream(task: str, **more: Any) -> AsyncIterator[Event]:
    """Carry `task` as `run` does, and give its events as they are recorded.

    The last one is the run's `RunStopped`. Leaving the iteration early cancels
    the run.
    """
    arrived: asyncio.Queue[Event | None] = asyncio.Queue()
    token = more.pop("cancel", None) or CancelToken()
    going = asyncio.create_task(run(task, on_event=arrived.put_nowait, cancel=token, **more))
    going.add_done_callback(lambda _: arrived.put_nowait(None))
    try:
        while (event := await arrived.get()) is not None:
            yield event
    finally:
        token.cancel("nobody follows it any more")
        await going
