"""Runs that are in the store already: go on with one, or decide about its call and go on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console

from harness.errors import NothingToDecide
from harness.provider import Endpoint
from harness.runner import Runner
from harness.state import ApprovalNeeded, Decision, InDoubt, RunState
from harness.store import Store
from harness.tool import Tool
from harness.tools import bundled_tools
from uitweg.carry import carry, find_run, new_runner, open_store, tell
from uitweg.config import Held, read_config
from uitweg.hosting import local_url, model_server
from uitweg.own import flags, own_tools


def go_on(
    run_id: str,
    *,
    limits: Mapping[str, Any] | None = None,
    as_json: bool = False,
    given: Sequence[str] = (),
) -> int:
    """Resume a run and return the exit code of its ending.

    One that is completed already is told again, so that resuming twice is harmless.

    Args:
        run_id: The run, or the beginning of its id.
        limits: New values for some of its limits.
        as_json: See `carry`.
        given: Places of the person's own tools, besides those of the settings.
    """
    with open_store() as store:
        state = store.load(find_run(store, run_id))
        if state.status == "completed":
            console = Console(stderr=as_json)
            console.print(f"Run {state.run_id} is completed already.", highlight=False)
            return tell(console, state, as_json=as_json)
        held = read_config()
        with _tools_for(state, held, given) as own:
            return _go_on(store, held, own, state, limits or {}, as_json, given)


@contextmanager
def _tools_for(state: RunState, held: Held, given: Sequence[str]) -> Iterator[Mapping[str, Tool]]:
    """The person's own tools, where the run has any besides the bundled ones.

    A run keeps no place to load code from: what is in the store is data. So they come from the
    settings and `--tools` each time.
    """
    if given or set(state.settings.tools) - bundled_tools().keys():
        with own_tools(held.config, given) as own:
            yield own
    else:
        yield {}


def _go_on(
    store: Store,
    held: Held,
    own: Mapping[str, Tool],
    state: RunState,
    limits: Mapping[str, Any],
    as_json: bool,
    given: Sequence[str],
) -> int:
    # The bundled server is started again where the run had it and nobody listens there now.
    base_url = state.settings.base_url
    endpoint = Endpoint(base_url, named=base_url != local_url(held.config.ports.model))
    with model_server(endpoint, state.settings.model, Console(stderr=as_json)):
        return carry(
            new_runner(store, held.endpoint, own),
            lambda runner, options: runner.resume(state.run_id, limits=limits, **options),
            as_json=as_json,
            flags=flags(given),
        )


def decide(
    run_id: str,
    action: str,
    *,
    args: dict[str, Any] | None = None,
    reason: str | None = None,
    as_json: bool = False,
    given: Sequence[str] = (),
) -> int:
    """Record what the person said about the call that a run waits for, then go on with the run.

    Args:
        run_id: The run, or the beginning of its id.
        action: As in `Decision`; `approve` and `reject` are told apart by what the run waits for.
        args: Edited arguments.
        reason: Why not; for `happened`, what came of it.
        as_json: See `carry`.
        given: As for `go_on`.

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
        held = read_config()
        with _tools_for(state, held, given) as own:
            asyncio.run(_decide(new_runner(store, held.endpoint, own), state.run_id, decision))
            state = store.load(state.run_id)
            return _go_on(store, held, own, state, {}, as_json, given)


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


async def _decide(runner: Runner, run_id: str, decision: Decision) -> None:
    async with runner:
        await runner.decide(run_id, decision)
