"""The page as it is really served: waitress, threads, streams that come and go."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from web import ConfigError, PageConfig, serve
from web.app import WATCHERS


@pytest.fixture
def served(config: PageConfig) -> Iterator[Any]:
    made = serve(replace(config, port=0))
    yield made
    made.stop()


@pytest.fixture
def client(served: Any) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.address, trust_env=False, timeout=20) as made:
        assert made.get(served.url).status_code == 303
        yield made


def csrf(client: httpx.Client) -> str:
    return client.get("/model").text.split('name="csrf" content="')[1].split('"')[0]


def start(client: httpx.Client, model: str) -> str:
    form = {"csrf": csrf(client), "task": "A task.", "model": f"scripted|{model}"}
    reply = client.post("/runs", data=form, headers={"Origin": str(client.base_url).rstrip("/")})
    assert reply.status_code == 303, reply.text
    return reply.headers["Location"]


def until(look: Any, seconds: float = 15) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if look():
            return
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")


def updates(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Whole messages of a stream, each with its `id` where it has one."""
    message: dict[str, Any] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "data":
            message |= json.loads(value)
        elif name == "id":
            message["id"] = int(value)
        elif not line and message:
            yield message
            message = {}


def test_w5_a_stream_tells_every_item_and_ends_with_the_answer(client: httpx.Client) -> None:
    path = start(client, "plan")
    keys: dict[str, str] = {}
    with client.stream("GET", f"{path}/live?after=0") as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        for update in updates(stream.iter_lines()):
            for item in update.get("items", ()):
                keys[item["key"]] = item["html"]
            if update.get("title", "").startswith("Completed"):
                break
    page = client.get(path).text
    assert len(keys) == 1 + 3 + 2 + 1
    for key in keys:
        assert page.count(f'id="{key}"') == 1


def test_w5_a_stream_goes_on_after_the_last_event_that_was_seen(client: httpx.Client) -> None:
    path = start(client, "plan")
    until(lambda: client.get(f"{path}/news?after=0").json()["title"].startswith("Completed"))
    with client.stream("GET", f"{path}/live?after=0", headers={"Last-Event-ID": "5"}) as stream:
        first = next(updates(stream.iter_lines()))
    whole = client.get(f"{path}/news?after=0").json()
    assert 0 < len(first["items"]) < len(whole["items"])
    assert first["id"] == whole["seq"]


def test_a_browser_that_goes_away_frees_its_place(served: Any, client: httpx.Client) -> None:
    hub = served._services.hub
    with client.stream("GET", "/live") as stream:
        next(stream.iter_lines())
        assert hub.watched
    until(lambda: not hub.watched)


def test_head_on_a_stream_takes_no_place(served: Any, client: httpx.Client) -> None:
    assert client.head("/live").status_code == 200
    assert not served._services.hub.watched


def test_many_streams_leave_room_for_others(served: Any, client: httpx.Client) -> None:
    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    request = (
        f"GET /live HTTP/1.1\r\nHost: 127.0.0.1:{served.config.port}\r\nCookie: {cookie}\r\n\r\n"
    )
    opened = []
    try:
        for _ in range(WATCHERS + 10):
            one = socket.create_connection(("127.0.0.1", served.config.port))
            one.sendall(request.encode())
            opened.append(one)
        until(lambda: len(served._services.hub._watchers) == WATCHERS)
        refused = client.get("/live")
        assert refused.status_code == 503
        assert "Too many pages" in refused.json()["error"]
        assert client.get("/").status_code == 200
    finally:
        for one in opened:
            one.close()
    until(lambda: not served._services.hub.watched)


def test_slow_senders_do_not_hold_the_page(served: Any, client: httpx.Client) -> None:
    slow = [socket.create_connection(("127.0.0.1", served.config.port)) for _ in range(100)]
    try:
        for one in slow:
            one.sendall(b"GET / HTTP/1.1\r\nHost: 127")
        assert client.get("/").status_code == 200
    finally:
        for one in slow:
            one.close()


def test_a_stop_ends_runs_in_order_and_leaves_no_thread(config: PageConfig) -> None:
    before = set(threading.enumerate())
    made = serve(replace(config, port=0))
    with httpx.Client(base_url=made.address, trust_env=False, timeout=20) as client:
        client.get(made.url)
        run_id = start(client, "scan").rsplit("/", 1)[1]
        with client.stream("GET", f"/runs/{run_id}/live") as stream:
            next(stream.iter_lines())
            made.stop()
    from harness.store import Store

    with Store.open(config.store) as store:
        state = store.load(run_id)
        assert store.carrier(run_id) is None
    assert state.status == "interrupted"
    assert "Uitweg was stopped" in state.reason
    until(lambda: {t for t in threading.enumerate() if t not in before and not t.daemon} == set())
    with pytest.raises(httpx.ConnectError):
        httpx.get(made.address, trust_env=False)


def test_a_taken_port_is_said_with_what_to_do(served: Any, config: PageConfig) -> None:
    with pytest.raises(ConfigError, match="choose another port"):
        serve(replace(config, port=served.config.port))


@pytest.mark.parametrize(
    ("host", "token", "said"),
    [
        ("0.0.0.0", "x" * 20, "listens everywhere"),
        ("192.0.2.1", None, "Give a start-up token"),
        ("127.0.0.1", "short", "too short"),
    ],
)
def test_a_page_that_must_not_be_served_like_this(
    config: PageConfig, host: str, token: str | None, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        serve(replace(config, host=host, token=token))


def test_each_address_opens_one_browser(config: PageConfig) -> None:
    told: list[str] = []
    made = serve(replace(config, port=0, token=None), told.append)
    try:
        first = made.url
        assert httpx.get(first, trust_env=False).status_code == 303
        assert httpx.get(first, trust_env=False).status_code == 401
        assert told == [made.url]
        assert httpx.get(told[0], trust_env=False).status_code == 303
    finally:
        made.stop()


def test_the_run_that_another_process_carries_is_seen(
    client: httpx.Client, config: PageConfig, scripted: str
) -> None:
    import subprocess
    import sys

    command = [sys.executable, "-m", "uitweg", "run", "Which file?", "--model", "plan"]
    environment = {
        "UITWEG_DATA": str(config.store.parent),
        "LLM_BASE_URL": scripted,
        "PATH": "/usr/bin:/bin",
        "HOME": str(config.store.parent),
    }
    with client.stream("GET", "/live") as stream:
        lines = updates(stream.iter_lines())
        next(lines)
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as process:
            for update in lines:
                if "Completed" in update.get("parts", {}).get("runs", ""):
                    break
            process.communicate(timeout=30)
