"""Runs that are in the store already: go on with one, or decide about its call and go on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rich.console import Console

from harness.errors import NothingToDecide
from harness.provider import DEFAULT_BASE_URL, endpoint_from_environment
from harness.state import ApprovalNeeded, Decision, InDoubt, RunState
from harness.store import Store
from uitweg.carry import carry, find_run, new_runner, open_store, tell
from uitweg.hosting import model_server


def go_on(run_id: str, *, limits: Mapping[str, Any] | None = None, as_json: bool = False) -> int:
    """Resume a run and return the exit code of its ending.

    One that is completed already is told again, so that resuming twice is harmless.
    """
    with open_store() as store:
        return _go_on(store, store.load(find_run(store, run_id)), limits or {}, as_json)


def _go_on(store: Store, state: RunState, limits: Mapping[str, Any], as_json: bool) -> int:
    console = Console(stderr=as_json)
    if state.status == "completed":
        console.print(f"Run {state.run_id} is completed already.", highlight=False)
        return tell(console, state, as_json=as_json)
    endpoint = replace(
        endpoint_from_environment(),
        base_url=state.settings.base_url,
        named=state.settings.base_url != DEFAULT_BASE_URL,
    )
    with model_server(endpoint, state.settings.model, console):
        return carry(
            store,
            lambda runner, options: runner.resume(state.run_id, limits=limits, **options),
            as_json=as_json,
        )


def decide(
    run_id: str,
    action: str,
    *,
    args: dict[str, Any] | None = None,
    reason: str | None = None,
    as_json: bool = False,
) -> int:
    """Record what the person said about the call that a run waits for, then go on with the run.

    Args:
        run_id: The run, or the beginning of its id.
        action: As in `Decision`; `approve` and `reject` are told apart by what the run waits for.
        args: Edited arguments.
        reason: Why not; for `happened`, what came of it.
        as_json: See `carry`.

    Returns the exit code of the run's next ending. Raises a `DecisionError`.
    """
    with open_store() as store:
        state = store.load(find_run(store, run_id))
        waiting = state.interruption
        if not isinstance(waiting, (ApprovalNeeded, InDoubt)):
            raise NothingToDecide(
                f"Run {state.run_id} waits for nobody's decision: it is {state.status}"
                + (f" ({waiting.kind})." if waiting else ".")
            )
        decision = Decision(
            call_id=waiting.call_id,
            action=_meant(action, waiting),
            digest=waiting.digest,
            args=args,
            reason=reason,
        )
        asyncio.run(_decide(store, state.run_id, decision))
        return _go_on(store, store.load(state.run_id), {}, as_json)


def _meant(action: str, waiting: ApprovalNeeded | InDoubt) -> str:
    """The action as the kind of interruption knows it."""
    if isinstance(waiting, ApprovalNeeded):
        if action in ("happened", "run_again"):
            raise NothingToDecide(
                f"{waiting.tool_name} has not begun: approve it or reject it, without a flag."
            )
        return action
    if action in ("approve", "edit"):
        raise NothingToDecide(
            f"{waiting.tool_name} had begun when the program ended. Look whether it took effect, "
            "then say --happened or --again, or reject it to leave it as it is."
        )
    return "abandon" if action == "reject" else action


async def _decide(store: Store, run_id: str, decision: Decision) -> None:
    async with new_runner(store) as runner:
        await runner.decide(run_id, decision)
