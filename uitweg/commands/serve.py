"""`uitweg serve`: a model of this machine, or scripted ones, behind an OpenAI-compatible port."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from server.backend import Backend

OPEN_TO_OTHERS = (
    "--host {host} lets other machines in, so clients need a token: set LLM_API_KEY to a secret "
    "of your choice here and for them. Without --host, only this machine can reach the server."
)


def serve(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Recordings to play, with --scripted.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Which model: a name from `uitweg models list`.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="8080; with --scripted 8081. 0: any.")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    scripted: Annotated[
        bool, typer.Option("--scripted", help="No model: play the scenarios, and recordings.")
    ] = False,
    settings: Annotated[
        Path | None, typer.Option(help="With --scripted: a file with latencies and faults.")
    ] = None,
) -> None:
    """Host a model on this machine, or scripted ones, until Ctrl-C."""
    from local.guard import is_loopback
    from server.run import bind, run
    from uitweg.config import read_config

    if not scripted and (files or settings):
        raise typer.BadParameter("Recordings and --settings need --scripted.")
    if scripted and model:
        raise typer.BadParameter("With --scripted, each request names its scenario as its model.")
    token = None if is_loopback(host) else os.environ.get("LLM_API_KEY") or None
    if token is None and not is_loopback(host):
        raise typer.BadParameter(OPEN_TO_OTHERS.format(host=host))
    ports = read_config().config.ports
    usual = ports.scripted if scripted else ports.model
    bound = bind(host, usual if port is None else port)
    with bound:
        if token is not None:
            typer.echo(f"Other machines can reach {host}: every request needs the token.", err=True)
        if scripted:
            from server.scripted.attempt import AttemptLayer

            backend = _scripted(files or [], settings)
            run(backend, bound, host=host, token=token, say=_say, layer=AttemptLayer)
        else:
            run(_hosted(model), bound, host=host, token=token, say=_say)


def _say(line: str) -> None:
    typer.echo(line)


def _scripted(files: list[Path], settings: Path | None) -> Backend:
    from server.scripted import ScriptedBackend

    return ScriptedBackend.from_files(files, settings)


def _hosted(name: str | None) -> Backend:
    """The engine with a verified model, which it loads while the server already listens."""
    import models
    from models.progress import Lines
    from server.engine.backend import LlamaBackend
    from server.engine.native import pin_threads

    pin_threads()
    model = models.ensure(name, Lines())
    about = {
        "sha256": model.sha256,
        "instead_of": model.instead_of,
        "profile": model.profile,
    }
    return LlamaBackend(model.path, name=model.name, digest=model.sha256, about=about)
