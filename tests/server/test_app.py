"""The HTTP surface over a real socket, with the official client and without any."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from typing import Any

import httpx
import openai
import pytest

from server import app as app_module
from server import reply as reply_module
from server.backend import CallPiece, Finish, TextPiece
from server.errors import Busy, ContextLengthExceeded, RawReply

USER = {"role": "user", "content": "hi"}
BODY = {"messages": [USER]}


def chat(served: Any, **fields: Any) -> Any:
    options = {"model": "fake", "messages": [USER], **fields}
    return served.openai().chat.completions.create(**options)


def test_s1_a_reply_with_calls_has_null_content(serving, fake, call_pieces) -> None:
    with serving(fake(call_pieces)) as served:
        choice = chat(served).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    assert choice.message.tool_calls[0].id == "call_1"
    assert choice.message.tool_calls[0].function.name == "read_file"
    assert json.loads(choice.message.tool_calls[0].function.arguments) == {"path": "notes.txt"}


def test_s2_a_streamed_call_has_its_id_and_name_once(serving, fake, call_pieces) -> None:
    with serving(fake(call_pieces)) as served:
        chunks = list(chat(served, stream=True))
    deltas = [c.choices[0].delta.tool_calls[0] for c in chunks if c.choices[0].delta.tool_calls]
    assert [delta.index for delta in deltas] == [0, 0, 0]
    assert [delta.id for delta in deltas] == ["call_1", None, None]
    assert [delta.function.name for delta in deltas] == ["read_file", None, None]
    assert "".join(delta.function.arguments for delta in deltas) == '{"path":"notes.txt"}'
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    assert chunks[0].choices[0].delta.role == "assistant"


def test_several_calls_and_text(serving, fake, stop) -> None:
    pieces = [
        TextPiece("I "),
        TextPiece("look."),
        CallPiece(0, id="a", name="f"),
        CallPiece(0, "{}"),
    ]
    pieces += [CallPiece(1, "{}", id="b", name="g"), stop]
    with serving(fake(pieces)) as served:
        message = chat(served).choices[0].message
        with served.openai().chat.completions.stream(model="fake", messages=[USER]) as stream:
            streamed = stream.get_final_completion().choices[0].message
    for one in (message, streamed):
        assert one.content == "I look."
        calls = [(call.id, call.function.name, call.function.arguments) for call in one.tool_calls]
        assert calls == [("a", "f", "{}"), ("b", "g", "{}")]


def test_s6_usage_whole_and_in_a_stream(serving, fake) -> None:
    with serving(fake()) as served:
        whole = chat(served).usage
        last = list(chat(served, stream=True, stream_options={"include_usage": True}))[-1]
        without = list(chat(served, stream=True))
    for usage in (whole, last.usage):
        assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (7, 2, 9)
        assert usage.prompt_tokens_details.cached_tokens == 3
    assert last.choices == []
    assert all(chunk.usage is None for chunk in without)


def test_s7_length_is_length_even_beside_calls(serving, fake, call_pieces) -> None:
    cut = Finish("length", 1, 0, 1)
    with serving(fake([*call_pieces[:-1], cut])) as served:
        assert chat(served).choices[0].finish_reason == "length"
        assert list(chat(served, stream=True))[-1].choices[0].finish_reason == "length"


def test_a_backends_timings_go_out(serving, fake) -> None:
    finish = Finish("stop", 1, 0, 1, timings={"prefill_ms": 1.5})
    with serving(fake([TextPiece("x"), finish])) as served:
        assert chat(served).timings == {"prefill_ms": 1.5}
        assert list(chat(served, stream=True))[-1].timings == {"prefill_ms": 1.5}


@pytest.mark.parametrize("stream", [False, True])
def test_s11_an_error_before_the_first_piece_is_a_status(serving, fake, stream: bool) -> None:
    backend = fake([ContextLengthExceeded(5000, 4096)])
    with serving(backend) as served, pytest.raises(openai.BadRequestError) as caught:
        chat(served, stream=stream)
    assert caught.value.code == "context_length_exceeded"
    assert "5000" in caught.value.message
    assert "4096" in caught.value.message


@pytest.mark.parametrize("stream", [False, True])
def test_busy_says_when_to_come_again(serving, fake, stream: bool) -> None:
    backend = fake([Busy("full", retry_after_s=7)])
    with serving(backend) as served, pytest.raises(openai.RateLimitError) as caught:
        chat(served, stream=stream)
    assert caught.value.response.headers["retry-after"] == "7"


def test_a_later_error_is_an_object_in_the_stream(serving, fake) -> None:
    with serving(fake([TextPiece("so far"), Busy("full")])) as served:
        stream = chat(served, stream=True)
        with pytest.raises(openai.APIError, match="full"):
            list(stream)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("pieces", [[RuntimeError("a secret")], [], [TextPiece("x")]])
def test_a_backend_that_fails_is_told_without_its_innards(
    serving, fake, stream: bool, pieces, caplog
) -> None:
    with serving(fake(pieces)) as served, pytest.raises(openai.APIError) as caught:
        list(chat(served, stream=stream))
    assert "secret" not in caught.value.message


def test_s16_every_bad_request_names_its_field(serving, fake) -> None:
    backend = fake()
    with serving(backend) as served:
        for field, value in [("temperature", 9), ("messages", []), ("n", 3), ("seed", "x")]:
            with pytest.raises(openai.BadRequestError) as caught:
                chat(served, **{field: value})
            assert caught.value.param == field
            assert caught.value.type == "invalid_request_error"
    assert backend.requests == []


@pytest.mark.parametrize("stream", [False, True])
def test_s10_a_client_that_leaves_closes_the_iterator(serving, fake, stream: bool) -> None:
    async def scenario() -> None:
        first = [TextPiece("x")] if stream else []
        backend = fake([*first, asyncio.Event()])
        with serving(backend) as served:
            body = json.dumps({**BODY, "stream": stream}).encode()
            with socket.create_connection(("127.0.0.1", served.port)) as connection:
                connection.sendall(request_bytes(served.port, body))
                if stream:
                    assert connection.recv(1000)
                else:
                    while not backend.requests:
                        time.sleep(0.01)
                assert not backend.closed_early.is_set()
            assert backend.closed_early.wait(5)

    asyncio.run(scenario())


def test_s10_the_openai_client_that_closes_its_stream(serving, fake) -> None:
    backend = fake([TextPiece("x"), asyncio.Event()])
    with serving(backend) as served:
        stream = chat(served, stream=True)
        next(iter(stream))
        stream.close()
        assert backend.closed_early.wait(5)


def test_s10_a_client_that_leaves_while_the_backend_talks_on(serving, fake, stop) -> None:
    backend = fake([TextPiece("x" * 1000)] * 100_000 + [stop])
    with serving(backend) as served:
        with socket.create_connection(("127.0.0.1", served.port)) as connection:
            connection.sendall(
                request_bytes(
                    served.port, b'{"messages":[{"role":"user","content":"x"}],"stream":true}'
                )
            )
            connection.recv(1000)
        assert backend.closed_early.wait(20)


def test_s4_requests_run_side_by_side_and_health_never_waits(serving, fake) -> None:
    backend = fake([TextPiece("x"), asyncio.Event()])
    with serving(backend) as served:
        streams = [chat(served, stream=True) for _ in range(5)]
        for stream in streams:
            next(iter(stream))
        assert httpx.get(f"{served.root}/health", timeout=5).json()["status"] == "ok"
        assert not backend.closed_early.is_set()
        for stream in streams:
            stream.close()


def test_a_silent_stream_gets_comments(serving, fake, monkeypatch, stop) -> None:
    monkeypatch.setattr(reply_module, "SILENCE_S", 0.05)
    with serving(fake([asyncio.Event()])) as served:
        body = {**BODY, "stream": True}
        with httpx.stream("POST", f"{served.root}/v1/chat/completions", json=body) as response:
            lines = response.iter_lines()
            assert next(lines) == ": still working"


def test_loading_failed_and_ready(serving, fake) -> None:
    backend = fake(status="loading")
    with serving(backend) as served:
        assert httpx.get(f"{served.root}/health").status_code == 503
        with pytest.raises(openai.APIStatusError) as caught:
            chat(served)
        assert (caught.value.status_code, caught.value.code) == (503, "model_loading")
        assert caught.value.response.headers["retry-after"]
        backend.status = "failed"
        assert httpx.get(f"{served.root}/health").status_code == 503
        with pytest.raises(openai.APIStatusError, match="a fake that is failed"):
            chat(served)
        backend.status = "ok"
        assert httpx.get(f"{served.root}/health").status_code == 200
        assert chat(served).choices[0].message.content == "hello"


def test_models_and_metrics(serving, fake) -> None:
    with serving(fake()) as served:
        assert [model.id for model in served.openai().models.list()] == ["fake"]
        assert served.openai().models.retrieve("fake").owned_by == "tests"
        with pytest.raises(openai.NotFoundError) as caught:
            served.openai().models.retrieve("gpt/5")
        assert caught.value.code == "model_not_found"
        metrics = httpx.get(f"{served.root}/metrics")
        assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert metrics.text.endswith("fake_total 1\n")


def test_the_model_that_answers_is_named(serving, fake) -> None:
    with serving(fake()) as served:
        url = f"{served.root}/v1/chat/completions"
        assert httpx.post(url, json=BODY).json()["model"] == "fake"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "localhost.evil.example"},
        {"Host": "localhost:1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:3000"},
    ],
)
def test_s14_a_web_page_cannot_ask(serving, fake, headers: dict[str, str]) -> None:
    backend = fake()
    with serving(backend) as served:
        for method, path in [
            ("GET", "/health"),
            ("POST", "/v1/chat/completions"),
            ("OPTIONS", "/"),
        ]:
            answer = httpx.request(method, served.root + path, headers=headers, json=BODY)
            assert answer.status_code == 403
            assert answer.json()["error"]["code"] == "forbidden"
            assert not [name for name in answer.headers if name.startswith("access-control")]
    assert backend.requests == []


def test_s14_only_json_is_taken(serving, fake) -> None:
    """A page can send text/plain to a foreign server without asking it first."""
    backend = fake()
    with serving(backend) as served:
        url = f"{served.root}/v1/chat/completions"
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            answer = httpx.post(url, content=json.dumps(BODY), headers={"Content-Type": kind})
            assert answer.status_code == 415
            assert answer.json()["error"]["type"] == "invalid_request_error"
        kind = "application/json; charset=utf-8"
        answer = httpx.post(url, content=json.dumps(BODY), headers={"Content-Type": kind})
        assert answer.status_code == 200
    assert len(backend.requests) == 1


def test_with_a_token_only_health_is_open(serving, fake) -> None:
    with serving(fake(), token="secret") as served:
        assert httpx.get(f"{served.root}/health").status_code == 200
        for wrong in ("none", "secre", "secret2", "sécret"):
            header = {"Authorization": f"Bearer {wrong}".encode()}
            answer = httpx.get(f"{served.root}/v1/models", headers=header)
            assert answer.status_code == 401
            assert answer.json()["error"]["code"] == "invalid_api_key"
        assert served.openai(api_key="secret").models.list().data


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v1", 404),
        ("GET", "/v1/chat/completions", 405),
        ("POST", "/health", 405),
        ("DELETE", "/v1/models", 405),
        ("POST", "/v1/chat/completions/", 404),
        ("POST", "/v1/completions", 404),
    ],
)
def test_wrong_paths_and_methods_in_openais_shape(
    serving, fake, method: str, path: str, status: int
) -> None:
    with serving(fake()) as served:
        answer = httpx.request(method, served.root + path)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]
    if status == 405:
        assert answer.headers["allow"]


def test_a_body_is_bounded_in_size_and_time(serving, fake, monkeypatch) -> None:
    monkeypatch.setattr(app_module, "MOST_BODY_BYTES", 1000)
    monkeypatch.setattr(app_module, "BODY_SECONDS", 0.2)
    backend = fake()
    with serving(backend) as served:
        url = f"{served.root}/v1/chat/completions"
        kind = {"Content-Type": "application/json"}
        assert httpx.post(url, content=b" " * 1001, headers=kind).status_code == 413
        chunks = (b" " * 100 for _ in range(100))
        assert httpx.post(url, content=chunks, headers=kind).status_code == 413
        with socket.create_connection(("127.0.0.1", served.port)) as connection:
            connection.sendall(request_bytes(served.port, b"{", declared=50))
            assert b" 408 " in connection.recv(1000)
    assert backend.requests == []


def test_a_raw_reply_goes_out_as_it_is(serving, fake) -> None:
    html = RawReply(b"<html>", status=502, headers={"Content-Type": "text/html"})
    with serving(fake([html])) as served:
        answer = httpx.post(f"{served.root}/v1/chat/completions", json=BODY)
        assert (answer.status_code, answer.content) == (502, b"<html>")
        assert answer.headers["content-type"] == "text/html"


def test_a_raw_reply_that_is_cut_breaks_the_connection(serving, fake) -> None:
    cut = RawReply(b"data: {", headers={"Content-Type": "text/event-stream"}, cut=True)
    with serving(fake([cut])) as served, pytest.raises(httpx.RemoteProtocolError):
        httpx.post(f"{served.root}/v1/chat/completions", json=BODY)


@pytest.mark.parametrize("stream", [False, True])
def test_the_servers_end_breaks_replies_off_with_a_word(serving, fake, stream: bool) -> None:
    first = [TextPiece("x")] if stream else []
    backend = fake([*first, asyncio.Event()])
    caught: list[BaseException] = []

    def ask(served: Any) -> None:
        try:
            list(chat(served, stream=stream))
        except openai.APIError as error:
            caught.append(error)

    with serving(backend) as served:
        asking = threading.Thread(target=ask, args=[served])
        asking.start()
        while not backend.requests:
            time.sleep(0.01)
        served.server.should_exit = True
        asking.join(10)
    assert backend.closed_early.is_set()
    assert "The server is ending" in str(caught[0])


def request_bytes(port: int, body: bytes, declared: int | None = None) -> bytes:
    """A chat request as it goes over the wire."""
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost:{port}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {declared or len(body)}\r\n\r\n"
    return head.encode() + body
