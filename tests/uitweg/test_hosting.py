"""Servers that live and die with the command that started them."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import time

import pytest
from rich.console import Console

from harness.provider import Endpoint
from uitweg.hosting import ServerFailed, health, hosted, local_url, model_server, wait_until_ready

QUIET = Console(quiet=True)

HOLDS = """
import sys, time
from rich.console import Console
from uitweg.hosting import hosted, local_url, wait_until_ready
port = sys.argv[1]
with hosted("serve", "--scripted", "--port", port) as process:
    wait_until_ready(local_url(int(port)), Console(quiet=True), process)
    print("ready", flush=True)
    time.sleep(3600)
"""


def test_a_server_ends_with_its_block(port):
    number = port()
    with hosted("serve", "--scripted", "--port", str(number)) as process:
        wait_until_ready(local_url(number), QUIET, process)
        assert health(local_url(number))["status"] == "ok"
    assert process.poll() is not None
    assert health(local_url(number)) is None


def test_a_server_ends_when_its_parent_is_killed(port):
    number = port()
    parent = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(number)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout.readline() == "ready\n"
    parent.kill()
    parent.wait()
    parent.stdout.close()
    for _ in range(1000):
        if health(local_url(number)) is None:
            break
        time.sleep(0.02)
    assert health(local_url(number)) is None


def test_a_server_that_another_run_uses_ends_with_the_last_of_them(port, tmp_path):
    users, number = tmp_path / "server.lock", port()
    with users.open("a") as another:
        fcntl.flock(another, fcntl.LOCK_SH)
        with hosted("serve", "--scripted", "--port", str(number), used_by=users) as process:
            wait_until_ready(local_url(number), QUIET, process)
        assert health(local_url(number))["status"] == "ok"
        assert process.poll() is None
    assert process.wait(20) is not None
    assert health(local_url(number)) is None


def test_a_server_that_nobody_else_uses_ends_at_once(port, tmp_path):
    number = port()
    with hosted(
        "serve", "--scripted", "--port", str(number), used_by=tmp_path / "server.lock"
    ) as process:
        wait_until_ready(local_url(number), QUIET, process)
    assert process.poll() is not None


def test_a_server_that_cannot_come_up_is_said(port, scripted_url):
    taken = scripted_url.rpartition(":")[2].partition("/")[0]
    with (
        hosted("serve", "--scripted", "--port", taken, "--host", "no.such.host") as process,
        pytest.raises(ServerFailed, match="ended with code"),
    ):
        wait_until_ready(local_url(port()), QUIET, process)


def test_a_server_that_has_gone_is_said(port):
    with pytest.raises(ServerFailed, match="has gone"):
        wait_until_ready(local_url(port()), QUIET)


def test_a_server_that_listens_already_is_used(scripted_url):
    with model_server(Endpoint(scripted_url), None, QUIET):
        assert health(scripted_url)["status"] == "ok"
    assert health(scripted_url)["status"] == "ok"
