"""Our server and the peers, each a process of its own, on the same file with as many threads."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import httpx

from uitweg.hosting import free_port

PEERS = Path(__file__).parents[2] / "scripts" / "peers"
READY_S = 180.0


@dataclass(frozen=True, slots=True)
class Setup:
    """What all servers are started with."""

    model: Path
    digest: str
    threads: int
    slots: int = 4
    context: int = 8192


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answers."""

    name: str
    root: str


class PeerError(Exception):
    """A server does not start; says which, and what it wrote."""


@contextlib.contextmanager
def ours(setup: Setup, kept: Path) -> Iterator[Running]:
    """This project's server on any file; `kept` is its folder for prefilled states."""
    command = [sys.executable, "-m", "uitweg.bench.host", str(setup.model), setup.digest]
    with _started("uitweg", [*command, str(setup.context), str(kept)]) as running:
        yield running


@contextlib.contextmanager
def xllamacpp(setup: Setup, python: Path) -> Iterator[Running]:
    """llama.cpp's own server."""
    command = [str(python), str(PEERS / "xllamacpp_server.py"), str(setup.model)]
    command += ["--threads", str(setup.threads), "--slots", str(setup.slots)]
    command += ["--context", str(setup.context)]
    with _started("llama.cpp server (xllamacpp)", command) as running:
        yield running


@contextlib.contextmanager
def llama_cpp_server(setup: Setup, python: Path) -> Iterator[Running]:
    """llama-cpp-python's bundled server."""
    port = free_port()
    command = [str(python), "-m", "llama_cpp.server", "--model", str(setup.model)]
    command += ["--n_ctx", str(setup.context), "--n_threads", str(setup.threads)]
    command += ["--n_threads_batch", str(setup.threads), "--port", str(port)]
    root = f"http://127.0.0.1:{port}"
    with _started("llama_cpp.server", command, root) as running:
        yield running


@contextlib.contextmanager
def _started(name: str, command: list[str], root: str | None = None) -> Iterator[Running]:
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(  # noqa: S603 - the commands above
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if root is None else said,
            stderr=said,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        try:
            if root is None:
                assert process.stdout is not None  # noqa: S101 - it was asked for
                root = process.stdout.readline().strip()
            _wait_ready(name, process, root, said)
            yield Running(name, root)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
            if process.stdin is not None:
                process.stdin.close()


def _wait_ready(name: str, process: subprocess.Popen[str], root: str, said: IO[str]) -> None:
    end = time.monotonic() + READY_S
    while time.monotonic() < end and process.poll() is None and root:
        with contextlib.suppress(httpx.HTTPError):
            status = httpx.get(f"{root}/health", timeout=5).status_code
            if status == httpx.codes.NOT_FOUND:
                status = httpx.get(f"{root}/v1/models", timeout=5).status_code
            if status == httpx.codes.OK:
                return
        time.sleep(0.1)
    said.seek(0)
    raise PeerError(f"{name} did not start: {said.read()[-800:]}")
