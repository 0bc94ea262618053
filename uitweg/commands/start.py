"""`uitweg start`: the model, the scripted models and the page, until Ctrl-C; or one task."""

from __future__ import annotations

from typing import Annotated

import typer

from uitweg.commands.options import Tools, Workspace


def start(
    task: Annotated[str | None, typer.Option(help="Carry out this one task and exit.")] = None,
    workspace: Workspace = None,
    model: Annotated[
        str | None, typer.Option(help="Which model: a name from `uitweg models list`.")
    ] = None,
    tools: Tools = None,
    port: Annotated[int | None, typer.Option(help="Of the page: 8000.")] = None,
    model_port: Annotated[int | None, typer.Option(help="Of the model server: 8080.")] = None,
    scripted_port: Annotated[int | None, typer.Option(help="Of the scripted models: 8081.")] = None,
) -> int:
    """Host the model and open the page, until Ctrl-C. With --task, do that one task and exit.

    Example: uitweg start --task "Read notes.txt and tell me what it says."

    With --task the exit code is that of `uitweg run`.
    """
    from harness.provider import Endpoint
    from uitweg.config import read_config
    from uitweg.hosting import local_url
    from uitweg.own import own_tools
    from uitweg.starting import start_all
    from uitweg.task import carry_task

    held = read_config()
    given = {"page": port, "model": model_port, "scripted": scripted_port}
    ports = held.config.ports.model_copy(update={k: v for k, v in given.items() if v is not None})
    if task is None:
        with own_tools(held.config, tools or ()) as own:
            return start_all(held, ports, workspace, model, own)
    # The model of this machine, whatever endpoint the settings name.
    endpoint = Endpoint(local_url(ports.model))
    return carry_task(task, endpoint=endpoint, workspace=workspace, model=model, tools=tools or ())
