"""What is heard of model servers, from real ones and from some that misbehave."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from web.choices import default, find, groups
from web.endpoints import Endpoints, Place, ServerState
from web.serverfacts import facts_of


@pytest.fixture
def server() -> Iterator[Callable[[dict[str, tuple[int, str]]], str]]:
    """A server that says what it is told to, by path."""
    made: list[ThreadingHTTPServer] = []

    def make(says: dict[str, tuple[int, str]]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body = says.get(self.path, (404, "{}"))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: Any) -> None:
                pass

        httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        made.append(httpd)
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{httpd.server_address[1]}/v1"

    yield make
    for httpd in made:
        httpd.shutdown()
        httpd.server_close()


def heard(*places: Place) -> tuple[ServerState, ...]:
    endpoints = Endpoints(places)
    try:
        end = time.monotonic() + 10
        while time.monotonic() < end:
            states = endpoints.states()
            if all(state.detail != "Asking it…" for state in states):
                return states
            time.sleep(0.02)
        raise AssertionError("nothing was heard")
    finally:
        endpoints.close()


def test_a_scripted_server_and_one_that_is_not_there(scripted: str) -> None:
    here, gone = heard(
        Place("scripted", "Scripted", scripted), Place("real", "Real", "http://127.0.0.1:9/v1")
    )
    assert here.condition == "ready"
    assert "plan" in [model.name for model in here.models]
    assert gone.condition == "absent"
    assert facts_of(gone).help.startswith("Start it with: uitweg serve.")
    labels = [group.label for group in groups((here, gone))]
    assert labels == ["Scripted · ready", "Real · not running"]
    assert default((gone, here)).startswith("scripted|")
    assert find((here, gone), "real", "") == ""
    assert find((here, gone), "scripted", "scan") == "scripted|scan"


def test_loading_is_shown_with_its_progress(server: Any) -> None:
    says = {
        "/health": (503, '{"status": "loading", "detail": "loading x: 42%"}'),
        "/v1/models": (200, '{"data": [{"id": "x"}]}'),
    }
    (state,) = heard(Place("real", "Real", server(says)))
    assert state.condition == "loading"
    assert facts_of(state).progress == 42


@pytest.mark.parametrize(
    "says",
    [
        {"/v1/models": (200, "<html>")},
        {"/v1/models": (200, "[]"), "/health": (200, "null")},
        {"/v1/models": (200, '{"data": "x"}'), "/health": (200, '{"status": 7}')},
        {"/v1/models": (200, '{"data": [1, {}, {"id": 5}, {"id": "ok", "uitweg": 3}]}')},
        {"/v1/models": (500, ""), "/health": (200, '{"status": "ok"}')},
        {"/v1/models": (200, '{"data": []}'), "/metrics": (200, "a b\n# x\nname{x} nan\nq 1e400")},
    ],
)
def test_a_server_that_says_nonsense_breaks_nothing(server: Any, says: Any) -> None:
    (state,) = heard(Place("real", "Real", server(says)))
    facts_of(state)
    groups((state,))


def test_speeds_come_from_the_metrics(server: Any) -> None:
    metrics = (
        "uitweg_engine_prefill_tokens_total 300\nuitweg_engine_prefill_seconds_total 2\n"
        "uitweg_engine_queue 3\nuitweg_engine_resident_bytes 7.7346e+08\n"
        "uitweg_engine_kv_tokens 100\nuitweg_engine_kv_room 8192\n"
    )
    says = {
        "/health": (200, '{"status": "ok"}'),
        "/v1/models": (
            200,
            '{"data": [{"id": "x", "uitweg": {"sha256": "ab", "context_tokens": 8192}}]}',
        ),
        "/metrics": (200, metrics),
    }
    (state,) = heard(Place("real", "Real", server(says)))
    rows = dict(facts_of(state).rows)
    assert rows["Prefill speed"] == "150.0 tokens per second"
    assert rows["Requests in the queue"] == "3"
    assert rows["Memory"] == "773 MB"
    assert rows["SHA-256"] == "ab"
    assert rows["Context in use, tokens"] == "100 of 8,192"


def test_a_key_goes_to_its_own_place_only(server: Any) -> None:
    seen: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization"))
            self.send_response(404)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{httpd.server_address[1]}/v1"
        heard(Place("a", "A", url))
        assert set(seen) == {None}
        seen.clear()
        heard(Place("b", "B", url, "key"))
        assert set(seen) == {"Bearer key"}
        httpd.shutdown()


def test_a_server_that_hangs_does_not_hold_the_page(server: Any) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            release.wait(10)

        def log_message(self, *_: Any) -> None:
            pass

    release = threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.daemon_threads = True
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{httpd.server_address[1]}/v1"
        endpoints = Endpoints((Place("real", "Real", url),))
        first = endpoints.states()
        assert first[0].condition == "unknown"
        release.set()
        endpoints.close()
        httpd.shutdown()
