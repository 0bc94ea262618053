"""`uitweg start`: the model, the scripted models and the page, until Ctrl-C; or one task."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def start(
    task: Annotated[str | None, typer.Option(help="Carry out this one task and exit.")] = None,
    workspace: Annotated[
        Path | None, typer.Option(help="The folder to work on; without it, the demo's.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Which model: a name from `uitweg models list`.")
    ] = None,
    port: Annotated[int, typer.Option(help="Of the page.")] = 8000,
    model_port: Annotated[int, typer.Option(help="Of the model server.")] = 8080,
    scripted_port: Annotated[int, typer.Option(help="Of the scripted models.")] = 8081,
) -> int:
    """Host the model and open the page, until Ctrl-C. With --task, do that one task and exit.

    Example: uitweg start --task "Read notes.txt and tell me what it says."

    With --task the exit code is that of `uitweg run`.
    """
    from harness.provider import Endpoint
    from uitweg.starting import Ports, start_all
    from uitweg.task import carry_task

    if task is None:
        return start_all(
            Ports(page=port, model=model_port, scripted=scripted_port), workspace, model
        )
    # The model of this machine, whatever endpoint the environment names.
    endpoint = Endpoint(f"http://127.0.0.1:{model_port}/v1")
    return carry_task(task, endpoint=endpoint, workspace=workspace, model=model)
