"""`uitweg start`: a placeholder until the server and the page can be started."""

from __future__ import annotations

import typer


def start(task: str = typer.Option("", help="Carry out this one task and exit.")) -> int:
    """Host the model and open the page."""
    typer.echo(
        f"Everything is set up. There is nothing to start yet.{' Task: ' * bool(task)}{task}"
    )
    return 0
