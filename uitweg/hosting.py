"""Servers that a command starts for its own time, and takes down with it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import httpx
from rich.console import Console

from harness.provider import Endpoint

STOP_SECONDS = 10.0
_LOOK_SECONDS = 0.1

Say = Callable[[str], None]


class ServerFailed(Exception):
    """A server that this command needs did not come up; says why and what to do."""


def health(base_url: str) -> dict[str, Any] | None:
    """What `/health` says, or `None` where nobody answers. Knows only our own servers."""
    url = f"{base_url.removesuffix('/v1')}/health"
    try:
        state = httpx.get(url, timeout=5.0, trust_env=False).json()
    except httpx.TransportError:
        return None
    except ValueError:
        return {"status": "unknown", "detail": "it is not a model server of ours"}
    return state if isinstance(state, dict) else {"status": "unknown", "detail": ""}


@contextmanager
def hosted(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """`uitweg ARGUMENTS` as a process that ends with the block, or with this process.

    It has a session of its own, so that Ctrl-C reaches this process alone, which
    then stops its run before it stops the server.
    """
    process = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "uitweg.hosted", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdin is not None:
            process.stdin.close()


def wait_until_ready(
    base_url: str, console: Console, process: subprocess.Popen[bytes] | None = None
) -> None:
    """Wait until the server at `base_url` has loaded its model, and show how far it is.

    Raises `ServerFailed` when it says that it cannot, or `process` has ended.
    """
    with console.status("starting the model server") if console.is_terminal else nullcontext() as s:
        while True:
            state = health(base_url)
            if state is not None and state.get("status") in ("ok", "unknown"):
                return
            if state is not None and state.get("status") == "failed":
                raise ServerFailed(f"The model cannot be loaded: {state.get('detail')}")
            if process is not None and process.poll() is not None:
                raise ServerFailed(
                    f"The model server ended with code {process.returncode}; what it said is above."
                )
            if state is None and process is None:
                raise ServerFailed(f"The model server at {base_url} has gone.")
            if s is not None and state is not None:
                s.update(f"loading the model: {state.get('detail') or state.get('status')}")
            time.sleep(_LOOK_SECONDS)


@contextmanager
def model_server(endpoint: Endpoint, model: str | None, console: Console) -> Iterator[None]:
    """Something that answers at `endpoint`, for the time of the block.

    Where no address was named and nobody listens at the usual one, the bundled
    server is started there with `model`, or with the default model.
    """
    if endpoint.named:
        yield
        return
    if health(endpoint.base_url) is not None:
        wait_until_ready(endpoint.base_url, console)
        yield
        return
    # Imported here: a run on another endpoint needs no model file.
    import models
    from models.progress import Lines

    resolved = models.ensure(model, Lines())
    with hosted("serve", "--model", resolved.name) as process:
        wait_until_ready(endpoint.base_url, console, process)
        yield
