"""The provider client against real sockets."""

from __future__ import annotations

import asyncio
import time
from email.utils import formatdate

import pytest

from harness.cancel import CancelToken
from harness.errors import ProviderFailed
from harness.ports import BrokenOff
from harness.provider import HttpProvider
from harness.provider.errors import (
    ContextTooLong,
    EndpointBusy,
    EndpointUnreachable,
    ReplyBroken,
    ReplyUnreadable,
    RequestRefused,
)
from harness.provider.retry import RetryPolicy, read_retry_after

TOOLS = [{"type": "function", "function": {"name": "read_file"}}]


async def test_a_stream_becomes_one_reply(server, ask, wire):
    server.replies = [
        wire.stream(
            wire.chunk(role="assistant"),
            wire.chunk(content="Hel"),
            wire.chunk(content="lo"),
            wire.finish(prompt=7, completion=2),
        )
    ]
    pieces: list[str] = []
    reply = await ask(on_delta=pieces.append)
    assert (reply.content, reply.finish_reason) == ("Hello", "stop")
    assert (reply.usage.prompt, reply.usage.completion) == (7, 2)
    assert pieces == ["Hel", "lo"]
    assert 0 <= reply.first_token_ms <= reply.ms


async def test_the_request_carries_what_the_figures_rest_on(server, ask, wire):
    server.replies = [wire.stream(wire.chunk(content="x"), wire.finish())]
    await ask(tools=TOOLS, tool_choice="none", extra={"seed": 1})
    headers, body = server.requests[0]
    assert headers["x-attempt"] == "0"
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert (body["tools"], body["tool_choice"], body["seed"]) == (TOOLS, "none", 1)
    assert list(body)[:3] == ["model", "messages", "tools"]


async def test_no_tools_are_not_an_empty_list(server, ask, wire):
    server.replies = [wire.stream(wire.chunk(content="x"), wire.finish())]
    await ask(tool_choice="auto")
    assert not {"tools", "tool_choice"} & set(server.requests[0][1])


async def test_calls_are_put_together_from_their_pieces(server, ask, wire):
    def piece(index, **rest):
        return wire.chunk(tool_calls=[{"index": index, **rest}])

    server.replies = [
        wire.stream(
            piece(0, id="a", type="function", function={"name": "read_file", "arguments": ""}),
            piece(0, function={"arguments": '{"path":'}),
            piece(1, id="b", type="function", function={"name": "list_files", "arguments": "{}"}),
            piece(0, function={"arguments": '"x"}'}),
            wire.finish("tool_calls"),
        )
    ]
    reply = await ask()
    assert reply.content is None
    assert [tuple(call) for call in reply.tool_calls] == [
        ("a", "read_file", '{"path":"x"}'),
        ("b", "list_files", "{}"),
    ]


async def test_whole_json_instead_of_a_stream_is_understood(server, ask, wire):
    message = {"role": "assistant", "content": "Hello"}
    server.replies = [
        wire.whole(
            {
                "choices": [{"message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 1},
            }
        )
    ]
    reply = await ask()
    assert (reply.content, reply.usage.prompt) == ("Hello", 3)


@pytest.mark.parametrize("size", [1, 2, 7])
async def test_bytes_may_be_cut_anywhere(server, ask, wire, size):
    text = "Größe: 文字 🙂"
    body = wire.stream(wire.chunk(content=text), b": comment\r\n\r\n", wire.finish())
    head, _, rest = body.partition(b"\r\n\r\n")
    pieces = [rest[i : i + size] for i in range(0, len(rest), size)]
    server.replies = [[head + b"\r\n\r\n", *pieces]]
    assert (await ask()).content == text


async def test_one_connection_serves_many_turns(server, ask, wire):
    body = wire.chunk(content="x") + wire.finish()
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    server.replies = [head + body]
    for _ in range(3):
        await ask()
    assert (len(server.requests), server.connections) == (3, 1)


# H22: one retry policy


@pytest.mark.parametrize("status", ["429 Too Many Requests", "500 Oh", "503 Busy"])
async def test_h22_busy_is_tried_again(server, ask, wire, status):
    server.replies = [
        wire.http(b"", status, Retry_After="0"),
        wire.stream(wire.chunk(content="well"), wire.finish()),
    ]
    seen = []
    reply = await ask(on_retry=lambda *item: seen.append(item))
    assert reply.content == "well"
    assert [headers["x-attempt"] for headers, _ in server.requests] == ["0", "1"]
    assert [(attempt, wait) for attempt, _, wait in seen] == [(1, 0.0)]


@pytest.mark.parametrize("status", ["400 Bad", "401 No", "403 No", "404 No", "408 Slow", "422 Bad"])
async def test_h22_other_4xx_never(server, ask, wire, status):
    server.replies = [wire.http(b'{"error":{"message":"the field x"}}', status)]
    with pytest.raises(RequestRefused, match="the field x"):
        await ask()
    assert len(server.requests) == 1


async def test_h22_the_number_of_tries_is_ours_alone(server, ask, wire):
    server.replies = [wire.http(b"busy", "503 Busy")]
    with pytest.raises(EndpointBusy, match="503"):
        await ask()
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\ndata: {",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"not http at all\r\n\r\n",
    ],
)
async def test_h22_a_broken_connection_is_tried_again(server, ask, wire, reply):
    server.replies = [reply, wire.stream(wire.chunk(content="well"), wire.finish())]
    assert (await ask()).content == "well"


async def test_h22_half_a_stream_is_tried_again_and_its_tokens_count(server, ask, wire):
    usage = wire.event({"choices": [], "usage": {"prompt_tokens": 40, "completion_tokens": 2}})
    server.replies = [
        wire.stream(wire.chunk(content="ha"), usage),
        wire.stream(wire.chunk(content="well"), wire.finish(prompt=40, completion=3)),
    ]
    reply = await ask()
    assert reply.content == "well"
    assert (reply.usage.prompt, reply.usage.completion) == (80, 5)


async def test_h22_nobody_listens():
    provider = HttpProvider("http://127.0.0.1:1/v1", policy=RetryPolicy(tries=2, first_wait=0.001))
    with pytest.raises(EndpointUnreachable, match="uitweg serve"):
        await provider.complete(
            messages=[], tools=[], model="m", temperature=0, max_tokens=1, cancel=CancelToken()
        )
    await provider.aclose()


def test_h22_retry_after_in_seconds_or_as_a_date():
    now = 1_800_000_000.0
    assert read_retry_after("2.5") == 2.5
    assert read_retry_after(formatdate(now + 30, usegmt=True), now) == 30
    assert read_retry_after(formatdate(now - 30, usegmt=True), now) == 0
    assert [read_retry_after(v) for v in (None, "", "soon", "nan", "-3")] == [None] * 4 + [0.0]


def test_h22_waits_grow_are_capped_and_differ():
    policy = RetryPolicy(draw=lambda: 1.0)
    assert [policy.wait(n, None) for n in (1, 2, 3, 9)] == [0.5, 1.0, 2.0, 8.0]
    assert RetryPolicy(draw=lambda: 0.0).wait(1, None) == 0.25
    assert (policy.wait(1, 3.0), policy.wait(1, 86_400.0)) == (3.0, 60.0)
    assert policy.wait(1, float("inf")) == 60.0


# H15, H19: cancelling


async def _cancel_when(condition, token):
    while not condition():
        await asyncio.sleep(0.001)
    token.cancel("Stop")


async def test_h15_cancel_reaches_a_silent_server_at_once(server, ask):
    server.replies = [[60.0]]
    token = CancelToken()
    canceller = asyncio.ensure_future(_cancel_when(lambda: server.requests, token))
    started = time.monotonic()
    with pytest.raises(BrokenOff):
        await ask(cancel=token)
    await asyncio.wait_for(server.gone.wait(), 10)
    assert time.monotonic() - started < 30
    await canceller


async def test_h19_what_came_before_the_cancel_counts(server, ask, wire):
    pieces: list[str] = []
    server.replies = [
        [wire.stream(wire.chunk(content="one "), wire.chunk(content="two"), b": on\n\n"), 60.0]
    ]
    token = CancelToken()
    canceller = asyncio.ensure_future(_cancel_when(lambda: len(pieces) == 2, token))
    with pytest.raises(BrokenOff) as caught:
        await ask(cancel=token, on_delta=pieces.append)
    assert caught.value.reply.content == "one two"
    assert caught.value.reply.usage.completion == 2
    await canceller


async def test_h19_a_half_call_is_not_handed_out(server, ask, wire):
    call = {"index": 0, "id": "a", "function": {"name": "delete_file", "arguments": "{}"}}
    server.replies = [[wire.stream(wire.chunk(tool_calls=[call])), 60.0]]
    token = CancelToken()
    asyncio.get_running_loop().call_later(0.2, token.cancel, "Stop")
    with pytest.raises(BrokenOff) as caught:
        await ask(cancel=token)
    assert caught.value.reply.tool_calls == ()


async def test_h15_cancel_ends_the_wait_between_tries(server, ask, wire):
    server.replies = [wire.http(b"", "503 Busy", Retry_After="30")]
    provider = HttpProvider(server.base_url)
    token = CancelToken()
    with pytest.raises(BrokenOff):
        await provider.complete(
            messages=[], tools=[], model="m", temperature=0, max_tokens=1, cancel=token,
            on_retry=lambda *_: token.cancel("Stop"),
        )  # fmt: skip
    await provider.aclose()


async def test_h15_a_token_that_is_set_already_sends_nothing(server, ask):
    token = CancelToken()
    token.cancel("Stop")
    with pytest.raises(BrokenOff):
        await ask(cancel=token)
    assert server.requests == []


async def test_cancelling_the_callers_task_is_not_a_broken_off_turn(server, ask):
    server.replies = [[60.0]]
    task = asyncio.ensure_future(ask())
    while not server.requests:
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# H16, H23: replies that are none


async def test_h16_a_reply_that_makes_no_sense_still_counts(server, ask, wire):
    server.replies = [
        wire.whole({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}})
    ]
    with pytest.raises(ReplyUnreadable) as caught:
        await ask()
    assert (caught.value.reply.usage.prompt, caught.value.reply.usage.completion) == (9, 4)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"   \n",
        b"<html><body>Login</body></html>",
        b"{}",
        b"[]",
        b"null",
        b"{broken",
        b'"text"',
        b'{"choices":[]}',
        b'{"choices":null}',
        b'{"choices":[null]}',
        b'{"choices":{}}',
        b'{"choices":"x"}',
        b'{"choices":[{}]}',
        b'{"choices":[{"message":null}]}',
        b'{"choices":[{"message":[]}]}',
        b'{"choices":[{"message":{"content":7}}]}',
        b'{"choices":[{"message":{"tool_calls":"x"}}]}',
        b'{"choices":[{"message":{"tool_calls":[1]}}]}',
        b"[" * 100_000,
        b"data: {broken\n\n",
        b"data: []\n\n",
        b"data: [DONE]\n\n",
        b'data: {"choices":[{"delta":"x"}]}\n\n',
        b'data: {"choices":"x"}\n\n',
    ],
)
async def test_h23_what_is_no_completion_is_a_typed_error(server, ask, wire, body):
    server.replies = [wire.http(body)]
    with pytest.raises(ReplyUnreadable):
        await ask()
    assert len(server.requests) == 1


async def test_h23_a_reply_without_end_is_refused(server, ask, wire):
    server.replies = [[wire.http(b"data: "), *[b"x" * 1_000_000] * 40]]
    with pytest.raises(ReplyUnreadable, match="longer"):
        await ask()


async def test_h23_an_error_in_mid_stream_is_typed(server, ask, wire):
    error = {"error": {"message": "too many", "code": "context_length_exceeded"}}
    server.replies = [wire.stream(wire.chunk(content="x"), wire.event(error))]
    with pytest.raises(ContextTooLong, match="too many"):
        await ask()
    server.replies = [
        wire.stream(wire.event({"error": {"message": "gone", "type": "server_error"}}))
    ]
    with pytest.raises(ReplyBroken, match="gone"):
        await ask()


async def test_h23_too_long_a_prompt_has_its_own_type(server, ask, wire):
    body = b'{"error":{"message":"5000 over 4096","code":"context_length_exceeded"}}'
    server.replies = [wire.http(body, "400 Bad")]
    with pytest.raises(ContextTooLong, match="5000 over 4096"):
        await ask()


@pytest.mark.parametrize("content_type", ["text/html", "text/plain", "application/json", ""])
async def test_h23_a_wrong_content_type_does_not_matter(server, ask, wire, content_type):
    body = wire.chunk(content="x") + wire.finish()
    server.replies = [wire.http(body, Content_Type=content_type)]
    assert (await ask()).content == "x"


async def test_h23_every_failure_is_one_tree(server, ask, wire):
    server.replies = [wire.http(b"", "302 Found", Location="http://elsewhere/")]
    with pytest.raises(ProviderFailed, match="elsewhere"):
        await ask()
