"""The server as a process: where it listens, what it says, how it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from server.run import CannotListen, bind, url_of


@contextmanager
def command(*args: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """`uitweg serve` with these arguments, killed at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "uitweg", "serve", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "LLM_API_KEY": "", **environment},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def listening(process: subprocess.Popen[str]) -> str:
    """The base URL out of the one line that it prints."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("Listening on http://"), line + process.communicate()[1]
    return line.removeprefix("Listening on ").strip()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_listens_and_ends_on_a_signal(number: signal.Signals) -> None:
    with command("--scripted", "--port", "0") as process:
        url = listening(process)
        body = {
            "model": "plan?first_token_ms=60000",
            "messages": [{"role": "user", "content": "x"}],
        }
        assert httpx.get(f"{url}/models").status_code == 200
        with socket.create_connection(("127.0.0.1", httpx.URL(url).port or 0)) as waiting:
            request = httpx.Request("POST", f"{url}/chat/completions", json=body)
            head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
            waiting.sendall(
                f"POST /v1/chat/completions HTTP/1.1\r\n{head}\r\n".encode() + request.read()
            )
            process.send_signal(number)
            assert process.wait(10) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_taken_port_says_by_whom_and_what_to_do() -> None:
    with command("--scripted", "--port", "0") as first:
        port = str(httpx.URL(listening(first)).port)
        with command("--scripted", "--port", port) as second:
            _, told = second.communicate(timeout=30)
            assert second.returncode == 1
    assert f"127.0.0.1:{port} is taken by a model server that is running already" in told
    assert "--port" in told
    assert len(told.splitlines()) == 1


def test_a_port_that_another_program_has() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(CannotListen, match="another program"):
            bind("127.0.0.1", port)


def test_an_address_that_is_not_ours() -> None:
    with pytest.raises(CannotListen, match=r"Cannot listen on 192\.0\.2\.1"):
        bind("192.0.2.1", 0)


def test_loopback_only_unless_told_otherwise_and_then_with_a_token() -> None:
    with command("--scripted", "--port", "0", "--host", "0.0.0.0") as process:
        _, told = process.communicate(timeout=30)
        assert process.returncode == 2
        assert "LLM_API_KEY" in told
    with command("--scripted", "--port", "0", "--host", "0.0.0.0", LLM_API_KEY="s3") as process:
        port = httpx.URL(listening(process)).port
        url = f"http://127.0.0.1:{port}/v1/models"
        assert httpx.get(url).status_code == 401
        assert httpx.get(url, headers={"Authorization": "Bearer s3"}).status_code == 200


def test_ipv6_loopback_where_there_is_one() -> None:
    try:
        bound = bind("::1", 0)
    except CannotListen:
        pytest.skip("no IPv6 here")
    with bound:
        assert url_of(bound, "::1") == f"http://[::1]:{bound.getsockname()[1]}/v1"


def test_recordings_need_scripted() -> None:
    with command("a.toml") as process:
        assert "--scripted" in process.communicate(timeout=30)[1]
        assert process.returncode == 2
