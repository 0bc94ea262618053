"""`uitweg compare A B`: two runs side by side."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def compare(
    left: Annotated[str, typer.Argument(help="A run, or the beginning of its id.")],
    right: Annotated[str, typer.Argument(help="Another run.")],
    json: Annotated[bool, typer.Option("--json", help="The comparison as one object.")] = False,
) -> None:
    """Show where two runs part, and what each of them took.

    Example: uitweg compare 3f2a91c04b7d 8d01b7aa62f3
    """
    from json import dumps

    from rich.console import Console

    from harness.compare import compare as compared
    from uitweg.carry import find_run, open_store
    from uitweg.comparison import show_comparison
    from uitweg.following import stored_events

    with open_store() as store:
        ids = [find_run(store, wanted) for wanted in (left, right)]
        states = [store.load(run_id) for run_id in ids]
        events = [list(stored_events(store, run_id)) for run_id in ids]
    result = compared(states[0], events[0], states[1], events[1])
    if json:
        sys.stdout.write(dumps(result.to_json(), ensure_ascii=False) + "\n")
        return
    show_comparison(Console(), result)
