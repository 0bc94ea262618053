"""`uitweg runs`: the runs of this user, the newest first."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

STATUSES = "running, completed, failed, max_turns_exceeded, budget_exceeded, interrupted"


def runs(
    status: Annotated[str | None, typer.Option(help=f"Only: {STATUSES}.")] = None,
    model: Annotated[str | None, typer.Option(help="Only runs of this model.")] = None,
    text: Annotated[str | None, typer.Option(help="Only where task or answer hold it.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 20,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> int:
    """List runs, the newest first.

    Example: uitweg runs --status interrupted
    """
    from rich.console import Console

    from uitweg.carry import open_store
    from uitweg.tables import runs_table

    if status is not None and status not in STATUSES.split(", "):
        raise typer.BadParameter(f"There is no ending {status!r}. There are: {STATUSES}.")
    with open_store() as store:
        found = store.runs(status=status, model=model, text=text, limit=limit)
    if json:
        for run in found:
            sys.stdout.write(run.model_dump_json() + "\n")
    elif found:
        # Nothing is cut to the terminal's width: an id must be whole to be of use.
        Console(width=10_000).print(runs_table(found))
    else:
        typer.echo('No run yet. Start one: uitweg run "Which file mentions a timeout?"')
    return 0
