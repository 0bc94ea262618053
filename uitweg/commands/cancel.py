"""`uitweg cancel RUN_ID`: stop a run, whoever carries it."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from uitweg.commands.options import RunId

WAIT_SECONDS = 5.0


def cancel(
    run_id: RunId,
    reason: Annotated[str, typer.Option(help="Kept with the ending.")] = "cancelled by a person",
) -> int:
    """Stop a run. What it did is kept, and it can be resumed.

    Example: uitweg cancel 3f2a91c04b7d
    """
    from harness.runner import Runner
    from uitweg.carry import find_run, open_store

    with open_store() as store:
        found = find_run(store, run_id)
        asked = Runner(store).cancel(found, reason) == "asked"
        until = time.monotonic() + WAIT_SECONDS
        while asked and store.load(found).status == "running" and time.monotonic() < until:
            time.sleep(0.02)
        state = store.load(found)
    if state.status == "running":
        typer.echo(f"Run {found} was asked to stop and has not yet. See: uitweg show {found}")
        return 1
    typer.echo(f"Run {found} is {state.status}: {state.reason}")
    return 0
