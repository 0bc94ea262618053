"""The command line against a real scripted server, in a folder of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from uitweg import main
from uitweg.hosting import hosted, local_url, wait_until_ready


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def port() -> Callable[[], int]:
    return free_port


@pytest.fixture(scope="session")
def scripted_url() -> Iterator[str]:
    """A scripted server as a process, for all tests."""
    number = free_port()
    with hosted("serve", "--scripted", "--port", str(number)) as process:
        wait_until_ready(local_url(number), Console(quiet=True), process)
        yield local_url(number)


@pytest.fixture
def home(tmp_path: Path, scripted_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of its own, and the scripted models as the endpoint."""
    for name in list(os.environ):
        if name.startswith(("LLM_", "OPENAI_", "UITWEG_DATA")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("UITWEG_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LLM_BASE_URL", scripted_url)
    return tmp_path / "data"


class Said:
    """What a command printed, and its exit code."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def closing(self) -> dict[str, Any]:
        """The one object of `--json`."""
        (line,) = self.out.splitlines()
        value: dict[str, Any] = json.loads(line)
        return value


@pytest.fixture
def uitweg(home: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Carry out one command line in this process."""

    def call(*arguments: str) -> Said:
        capsys.readouterr()
        code = main.run(arguments)
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return call


@pytest.fixture
def process(home: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a command line as a process; killed at the end."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:
        one = subprocess.Popen(
            [sys.executable, "-m", "uitweg", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options,
        )  # fmt: skip
        started.append(one)
        return one

    yield start
    for one in started:
        one.kill()
        one.wait()
        if one.stdout is not None:
            one.stdout.close()
