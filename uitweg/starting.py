"""Everything at once: two model servers as processes, the page in this one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import typer
from rich.console import Console

from harness.telemetry import exported
from harness.tool import Tool
from local import folders
from uitweg.carry import rules_path
from uitweg.config import Held, Ports
from uitweg.hosting import ServerFailed, health, hosted, local_url, wait_until_ready

_LOOK_SECONDS = 1.0


def start_all(
    held: Held, ports: Ports, workspace: Path | None, model: str | None, own: Mapping[str, Tool]
) -> int:
    """Start what does not listen yet, say where, and stay until Ctrl-C or SIGTERM.

    Args:
        held: The person's settings.
        ports: Where to listen.
        workspace: The folder of a new task, instead of the one in the settings.
        model: The model to host; `None` is the default.
        own: Tools that runs of the page may use besides the bundled ones.

    Whatever was started has ended when this returns. Raises what keeps it from starting.
    """
    # Imported here: `start --task` needs no page.
    import web
    from models import ensure
    from models.progress import Lines

    stopped = threading.Event()
    before = {
        n: signal.signal(n, lambda *_: stopped.set()) for n in (signal.SIGINT, signal.SIGTERM)
    }
    console = Console()
    try:
        with ExitStack() as stack:
            servers = _servers(stack, ports, ensure(model, Lines()).name)
            data = folders.make(folders.data())
            endpoint = held.endpoint
            spans = stack.enter_context(exported())
            page = web.serve(
                web.PageConfig(
                    store=data / "runs.db",
                    workspace=workspace or held.config.workspace,
                    base_url=local_url(ports.model),
                    scripted_url=local_url(ports.scripted),
                    named_url=endpoint.base_url if endpoint.named else None,
                    api_key=endpoint.api_key,
                    port=ports.page,
                    rules=rules_path(),
                    limits=held.config.limits,
                    prices=held.config.prices,
                    profile=held.config.profile,
                    tools=own,
                    observer=None if spans is None else spans.on_event,
                ),
                on_url=lambda url: typer.echo(f"For another browser: {url}"),
            )
            stack.callback(page.stop)
            _say_where(ports, page.url)
            wait_until_ready(local_url(ports.model), console, servers.get("model"), stopped)
            if not stopped.is_set():
                typer.echo("The model is ready. Ctrl-C ends everything.")
            _stay(stopped, servers)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


def _servers(stack: ExitStack, ports: Ports, model: str) -> dict[str, subprocess.Popen[bytes]]:
    """Start the servers that do not listen yet."""
    wanted = {
        "model": (ports.model, ("--model", model)),
        "scripted": (ports.scripted, ("--scripted",)),
    }
    started = {}
    for name, (port, arguments) in wanted.items():
        if health(local_url(port)) is None:
            process = hosted("serve", "--port", str(port), *arguments)
            started[name] = stack.enter_context(process)
    return started


def _say_where(ports: Ports, url: str) -> None:
    typer.echo(f"Page:            {url}")
    typer.echo(f"Model:           {local_url(ports.model)}")
    typer.echo(f"Scripted models: {local_url(ports.scripted)}")
    has_screen = sys.platform == "darwin" or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    if has_screen and sys.stdout.isatty():
        webbrowser.open(url)


def _stay(stopped: threading.Event, servers: dict[str, subprocess.Popen[bytes]]) -> None:
    """Return when told to stop. Raises `ServerFailed` when a server that was started ends."""
    while not stopped.wait(_LOOK_SECONDS):
        for name, process in servers.items():
            if process.poll() is not None:
                raise ServerFailed(
                    f"The {name} server ended with code {process.returncode}; "
                    "what it said is above."
                )
