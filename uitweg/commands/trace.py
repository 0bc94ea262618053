"""`uitweg trace RUN_ID`: a run's events as JSON, one a line."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from uitweg.commands.options import RunId


def trace(
    run_id: RunId,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the run ends.")
    ] = False,
) -> int:
    """Print a run's trace, one JSON object a line.

    Example: uitweg trace 3f2a91c04b7d --follow
    """
    from uitweg.carry import find_run, open_store
    from uitweg.following import trace_lines

    with open_store() as store:
        for line in trace_lines(store, find_run(store, run_id), follow=follow):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
    return 0
