"""`uitweg start`: three servers that come up together and leave nothing behind."""

from __future__ import annotations

import re
import signal
import time

import httpx
import pytest

from uitweg.hosting import health, local_url

pytestmark = pytest.mark.engine


@pytest.fixture
def ports(port):
    return [str(port()) for _ in range(3)]


@pytest.fixture
def started(process, small_model, ports):
    """`uitweg start` with the small model, once it says that all is ready."""
    page, model, scripted = ports
    running = process(
        "start", "--model", small_model.name,
        "--port", page, "--model-port", model, "--scripted-port", scripted,
    )  # fmt: skip
    told = ""
    for line in running.stdout:
        told += line
        if "Ctrl-C ends everything" in line:
            break
    running.told = told
    return running


def _all_gone(ports) -> bool:
    for _ in range(1000):
        if all(health(local_url(int(port))) is None for port in ports):
            return True
        time.sleep(0.02)
    return False


def test_everything_listens_and_ctrl_c_leaves_nothing_behind(started, ports):
    _, model, scripted = ports
    url = re.search(r"Page: +(\S+)", started.told)[1]
    with httpx.Client(follow_redirects=True, trust_env=False) as browser:
        assert "Uitweg" in browser.get(url).text
    assert health(local_url(int(model)))["status"] == "ok"
    assert health(local_url(int(scripted)))["scripted"] is True
    started.send_signal(signal.SIGINT)
    assert started.wait(30) == 0
    assert _all_gone(ports)


def test_killed_it_leaves_nothing_behind(started, ports):
    started.kill()
    started.wait(30)
    assert _all_gone(ports)


def test_a_port_that_is_taken_is_said_and_nothing_is_left(
    process, small_model, ports, scripted_url
):
    taken = scripted_url.rpartition(":")[2].partition("/")[0]
    running = process(
        "start", "--model", small_model.name,
        "--port", taken, "--model-port", ports[1], "--scripted-port", ports[2],
    )  # fmt: skip
    told = running.stdout.read()
    assert running.wait(30) == 1
    assert f"127.0.0.1:{taken}" in told
    assert _all_gone(ports)


def test_one_task_on_the_model_of_this_machine(process, small_model, ports):
    running = process(
        "start", "--task", "Say hello.", "--model", small_model.name, "--model-port", ports[1]
    )
    told = running.stdout.read()
    assert running.wait(60) in (0, 3, 6), told
    assert f"· {small_model.name} ·" in told
    assert _all_gone(ports)
