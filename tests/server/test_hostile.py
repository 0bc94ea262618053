"""Nothing that a client sends gives a 5xx, or no answer: broken HTTP, and 3,000 broken bodies."""

from __future__ import annotations

import copy
import http.client
import json
import random
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, suppress
from typing import Any

import pytest

from server.backend import Finish, Piece, TextPiece
from server.grammar import request_grammar
from server.reader import CallReader
from server.template import ChatTemplate
from server.wire import ChatRequest

BODIES = 3000
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": [1]}'}}
SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "array", "items": {"$ref": "#/$defs/n"}, "minItems": 1, "maxItems": 4},
        "b": {"anyOf": [{"type": "string", "maxLength": 9}, {"enum": ["x", 1, None]}]},
        "c": {"type": ["number", "null"], "minimum": 0, "maximum": 5},
    },
    "required": ["a"],
    "additionalProperties": False,
    "$defs": {"n": {"type": "integer", "exclusiveMinimum": 3}},
}
TOOLS = [
    {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}},
    {"type": "function", "function": {"name": "g"}},
]
TALK = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": [{"type": "text", "text": "t"}], "name": "n"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "r"},
]
SAMPLING = {"temperature": 0.5, "top_p": 0.9, "seed": 1, "stop": ["a"], "n": 1, "max_tokens": 5}
STREAMING = {"stream": True, "stream_options": {"include_usage": True}}
FORM = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
NAMED = {"type": "function", "function": {"name": "f"}}
BASES: list[dict[str, Any]] = [
    {"model": "real", "messages": TALK, "tools": TOOLS, "tool_choice": "required", "stream": False},
    {"messages": TALK, **SAMPLING, **STREAMING, "response_format": FORM},
    {"messages": TALK, "tools": TOOLS, "tool_choice": NAMED, "max_completion_tokens": 3},
]
NASTY: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, 10**300, -(10**400), 0.5, -0.0, 1e308),
    *("", "a", "\x00", "\ud800", "😀", "é" * 500, "x" * 20_000, "__class__", "{{ 1 }}", "\u2028"),
    *('{"a": ', "[" * 500, "null", "NaN", "<|im_end|>", "<tool_call>", "#", "#/$defs/n", "$ref"),
    *([], {}, [[]], [None], [{}], {"": None}, {"type": []}, {"$ref": "#"}, {"a": {"b": {}}}),
    *("object", "array", "function", "required", "user", "tool", float("inf"), float("nan")),
]


class RenderingBackend:
    """Everything of a reply but the model: template, grammar and reader are the real ones."""

    def __init__(self, templates: list[ChatTemplate]) -> None:
        self.templates = templates
        self.answered = 0

    def state(self) -> dict[str, Any]:
        return {"status": "ok", "detail": ""}

    def models(self) -> list[dict[str, Any]]:
        return [{"id": "real"}]

    def metrics(self) -> str:
        return ""

    async def chat(self, request: ChatRequest) -> AsyncIterator[Piece]:
        for template in self.templates:
            template.render(request)
        request_grammar(request)
        reader = CallReader([tool.name for tool in request.callable_tools])
        for piece in reader.feed('{"name": "f", "arguments": {}}') + reader.finish():
            yield piece
        yield TextPiece("x")
        self.answered += 1
        yield Finish("stop", 1, 0, 1)

    def close(self) -> None:
        pass


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container inside a JSON value, with a key in it."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


def mutated(rng: random.Random) -> bytes:
    """A valid request with some things wrong, in its structure or in its bytes."""
    body = copy.deepcopy(rng.choice(BASES))
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        change(rng, body)
    text = json.dumps(body, ensure_ascii=rng.random() < 0.5)
    data = bytearray(text, "utf-8", "surrogatepass")
    if rng.random() < 0.2:
        for _ in range(rng.randint(1, 5)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    if rng.random() < 0.05:
        data = data[: rng.randrange(len(data))]
    return bytes(data)


def change(rng: random.Random, body: dict[str, Any]) -> None:
    """One thing wrong in the structure: replaced, gone, from elsewhere, renamed, or deep down."""
    container, key = rng.choice(list(places(body)))
    what = rng.choice(["replace"] * 6 + ["drop", "copy", "rename", "bury"])
    if what == "drop":
        del container[key]
    elif what == "copy":
        other, other_key = rng.choice(list(places(body)))
        container[key] = copy.deepcopy(other[other_key])
    elif what == "rename" and isinstance(container, dict):
        container[str(rng.choice(NASTY))[:50]] = container.pop(key)
    elif what == "bury":
        for _ in range(rng.choice([3, 100, 195])):
            container[key] = rng.choice([[container[key]], {"properties": container[key]}])
    else:
        container[key] = copy.deepcopy(rng.choice(NASTY))


@pytest.fixture
def rendering(template_texts: dict[str, str]) -> RenderingBackend:
    return RenderingBackend([ChatTemplate(text) for text in template_texts.values()])


def test_s16_no_body_gives_a_5xx(
    serving: Callable[..., Any], rendering: RenderingBackend, caplog: pytest.LogCaptureFixture
) -> None:
    rng = random.Random(2026)
    seen: dict[int, int] = {}
    with serving(rendering) as served:
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
        with closing(connection):
            for _ in range(BODIES):
                body = mutated(rng)
                headers = {"Content-Type": "application/json"}
                connection.request("POST", "/v1/chat/completions", body, headers)
                response = connection.getresponse()
                text = response.read()
                seen[response.status] = seen.get(response.status, 0) + 1
                assert response.status in (200, 400, 404), (response.status, text, body[:2000])
                if response.status != 200:
                    error = json.loads(text)["error"]
                    assert error["message"]
                    assert error["type"] == "invalid_request_error"
                assert b"server_error" not in text, body[:2000]
    assert seen[200] > BODIES // 20
    assert seen[400] > BODIES // 4
    assert not caplog.records


GOOD = b'{"messages":[{"role":"user","content":"x"}]}'
POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost:PORT\r\n"
JSON = b"Content-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\r\n\r\n\r\n", None),
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", None),
        (b"GET /health HTTP/9.9\r\nHost: localhost:PORT\r\n\r\n", 200),
        (b"GET /health HTTP/1.1\r\n\r\n", 400),
        (b"GET /health HTTP/1.0\r\n\r\n", 403),
        (b"GET /health HTTP/1.1\r\nHost: localhost:PORT\r\nHost: localhost:PORT\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: \xff\xfe\r\n\r\n", 403),
        (b"GET http://evil.example/health HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n", 404),
        (b"GET /%ff%00%2e%2e/../../etc/passwd HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n", 404),
        (b"GET /v1/models/%ff%00\xc3 HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n", None),
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n", None),
        (b"GET /health HTTP/1.1\r\nHost: localhost:PORT\r\nX: " + b"a" * 200_000, None),
        (b"BREW /health HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n", 405),
        (b"OPTIONS * HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n", 404),
        (POST + JSON + b"Content-Length: -5\r\n\r\n", 400),
        (POST + JSON + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nxxxxxx", 400),
        (POST + JSON + b"Content-Length: 99999999999999999999\r\n\r\n", 413),
        (POST + JSON + b"Content-Length: 9" + b"9" * 50 + b"\r\n\r\n", None),
        (POST + JSON + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (POST + JSON + b"Transfer-Encoding: gzip\r\n\r\n", None),
        (POST + JSON + b"Transfer-Encoding: chunked\r\n\r\n2c\r\n" + GOOD + b"\r\n0\r\n\r\n", 200),
        (POST + JSON + b"Expect: 100-continue\r\nContent-Length: 44\r\n\r\n" + GOOD, 200),
        (POST + JSON + b"Content-Encoding: gzip\r\nContent-Length: 44\r\n\r\n" + GOOD, 200),
        (POST + JSON + b"Upgrade: websocket\r\nContent-Length: 44\r\n\r\n" + GOOD, 200),
        (POST + JSON + b"Content-Length: 0\r\n\r\n", 400),
        (POST + JSON + b"\r\n", 400),
        (POST + b"Content-Type: \xff\r\nContent-Length: 44\r\n\r\n" + GOOD, 415),
    ],
)  # fmt: skip
def test_broken_http_gets_an_answer_or_an_end(
    serving: Callable[..., Any], rendering: RenderingBackend, sent: bytes, status: int | None
) -> None:
    with serving(rendering) as served:
        with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
            # The server may have had enough before everything is sent.
            with suppress(ConnectionResetError, BrokenPipeError):
                connection.sendall(sent.replace(b"PORT", str(served.port).encode()))
                if status is None:
                    connection.shutdown(socket.SHUT_WR)
            codes = status_codes(connection)
        assert all(code < 500 for code in codes)
        if status is not None:
            assert codes
            assert codes[0] == status
        # It still answers others.
        alive = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
        alive.request("GET", "/health")
        assert alive.getresponse().status == 200
        alive.close()


def status_codes(connection: socket.socket) -> list[int]:
    """The statuses that come, up to the first final one; none if the connection just ends."""
    answer = b""
    while True:
        try:
            more = connection.recv(10_000)
        except ConnectionResetError:
            more = b""
        answer += more
        lines = [line for line in answer.split(b"\r\n") if line.startswith(b"HTTP/")]
        codes = [int(line.split()[1]) for line in lines if b" 100 " not in line]
        if codes or not more:
            return codes


def test_a_client_that_says_nothing_keeps_nobody_waiting(
    serving: Callable[..., Any], rendering: RenderingBackend
) -> None:
    with serving(rendering) as served:
        silent = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(50)]
        for number, connection in enumerate(silent):
            connection.sendall((POST + JSON + b"Content-Length: 50\r\n\r\n{")[: number * 3])
        alive = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
        alive.request("POST", "/v1/chat/completions", GOOD, {"Content-Type": "application/json"})
        assert alive.getresponse().status == 200
        alive.close()
        for connection in silent:
            connection.close()


def test_a_client_that_leaves_within_its_body_is_no_fault_of_the_server(
    serving: Callable[..., Any], rendering: RenderingBackend, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(rendering) as served:
        request = POST.replace(b"PORT", str(served.port).encode()) + JSON
        for end in (b"Content-Length: 50\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n5\r\n{"):
            with socket.create_connection(("127.0.0.1", served.port)) as connection:
                connection.sendall(request + end)
        alive = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
        alive.request("GET", "/health")
        assert alive.getresponse().status == 200
        alive.close()
    assert [record.getMessage() for record in caplog.records] == []
