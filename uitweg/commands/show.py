"""`uitweg show RUN_ID`: one run, step by step."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from uitweg.commands.options import RunId


def show(
    run_id: RunId,
    json: Annotated[bool, typer.Option("--json", help="The whole run as one object.")] = False,
) -> int:
    """Show a run: its task, every step in full, its answer, what can be done now.

    Example: uitweg show 3f2a91c04b7d
    """
    from rich.console import Console
    from rich.text import Text

    from uitweg.carry import find_run, open_store
    from uitweg.following import stored_events
    from uitweg.render import RunView, show_outcome
    from uitweg.text import safe

    with open_store() as store:
        state = store.load(find_run(store, run_id))
        if json:
            sys.stdout.write(state.model_dump_json() + "\n")
            return 0
        console = Console()
        console.print(Text(safe(state.task), style="bold"), soft_wrap=True, highlight=False)
        view = RunView(console, full=True)
        for event in stored_events(store, state.run_id):
            view.on_event(event)
        if state.status == "running":
            carrier = store.carrier(state.run_id)
            console.print(
                f"running, carried by {carrier}" if carrier
                else f"left behind by a process that ended. uitweg resume {state.run_id}"
            )  # fmt: skip
    show_outcome(console, state)
    return 0
