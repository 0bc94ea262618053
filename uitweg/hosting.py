"""Servers that a command starts for its own time, and takes down with it."""

from __future__ import annotations

import fcntl
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from rich.console import Console

from harness.provider import Endpoint
from local import folders

STOP_SECONDS = 10.0
_LOOK_SECONDS = 0.1


class ServerFailed(Exception):
    """A server that this command needs did not come up; says why and what to do."""


def local_url(port: int) -> str:
    """The base address of a server of ours on this machine."""
    return f"http://127.0.0.1:{port}/v1"


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


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
def hosted(*arguments: str, used_by: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """`uitweg ARGUMENTS` as a process that ends with the block, or with this process.

    It has a session of its own, so that Ctrl-C reaches this process alone, which
    then stops its run before it stops the server. With `used_by` it outlives both
    for as long as somebody is `_using` that file, and then ends by itself.
    """
    more = () if used_by is None else ("--used-by", str(used_by))
    process = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "uitweg.hosted", *more, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if used_by is None or not _is_used(used_by):
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process.stdin is not None:
            process.stdin.close()


@contextmanager
def _using(path: Path) -> Iterator[None]:
    """Hold a server, for the time of the block: whoever started it leaves it running."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


def _is_used(path: Path) -> bool:
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def wait_until_ready(
    base_url: str,
    console: Console,
    process: subprocess.Popen[bytes] | None = None,
    stopped: threading.Event | None = None,
) -> None:
    """Wait until the server at `base_url` has loaded its model, and show how far it is.

    Args:
        base_url: Where it listens, or soon will.
        console: Where to show it.
        process: The server, if this process has started it.
        stopped: Wait no longer once it is set.

    Raises `ServerFailed` when it says that it cannot, or has ended.
    """
    stopped = stopped or threading.Event()
    with _status(console) as show:
        while not _is_ready(health(base_url), base_url, process, show):
            if stopped.wait(_LOOK_SECONDS):
                return


def _is_ready(
    state: dict[str, Any] | None,
    base_url: str,
    process: subprocess.Popen[bytes] | None,
    show: Callable[[str], None],
) -> bool:
    if process is not None and process.poll() is not None:
        raise ServerFailed(
            f"The model server ended with code {process.returncode}; what it said is above."
        )
    if state is None:
        if process is None:
            raise ServerFailed(f"The model server at {base_url} has gone.")
        return False
    if state.get("status") == "failed":
        raise ServerFailed(f"The model cannot be loaded: {state.get('detail')}")
    if state.get("status") in ("ok", "unknown"):
        return True
    show(str(state.get("detail") or "loading the model"))
    return False


@contextmanager
def _status(console: Console) -> Iterator[Callable[[str], None]]:
    """A line that says what is going on; each news once where there is no terminal."""
    if console.is_terminal:
        with console.status("starting the model server") as status:
            yield status.update
        return
    seen: set[str] = set()

    def tell(text: str) -> None:
        if text not in seen:
            seen.add(text)
            console.print(text, highlight=False, soft_wrap=True)

    yield tell


@contextmanager
def model_server(endpoint: Endpoint, model: str | None, console: Console) -> Iterator[None]:
    """Something that answers at `endpoint`, for the time of the block.

    Where no address was named and nobody listens at the usual one, the bundled
    server is started there with `model`, or with the default model. It ends when
    the last run that uses it does, whoever started it.
    """
    if endpoint.named:
        yield
        return
    port = str(urlsplit(endpoint.base_url).port)
    users = folders.make(folders.data()) / f"server-{port}.lock"
    with ExitStack() as started, _using(users):
        if health(endpoint.base_url) is not None:
            running = f"Using the model server that runs already at {endpoint.base_url}."
            console.print(running, highlight=False, soft_wrap=True)
            wait_until_ready(endpoint.base_url, console)
        else:
            name = _fetched(model)
            process = started.enter_context(
                hosted("serve", "--port", port, "--model", name, used_by=users)
            )
            wait_until_ready(endpoint.base_url, console, process)
        yield


def _fetched(model: str | None) -> str:
    """The name of `model`, or of the default one, once its file is here."""
    # Imported here: a run on another endpoint needs no model file.
    import models
    from models.progress import Lines

    return models.ensure(model, Lines()).name
