"""What an endpoint may do to a run: no tool runs wrongly, and the run can go on."""

from __future__ import annotations

import asyncio
import json

import pytest

from harness.cancel import CancelToken
from harness.provider import HttpProvider
from harness.provider.retry import RetryPolicy
from harness.runner import Runner

FAST = RetryPolicy(tries=2, first_wait=0.001)


@pytest.fixture
async def runner(store):
    async with Runner(
        store, provider_factory=lambda s: HttpProvider(s.base_url, policy=FAST)
    ) as made:
        yield made


def message(**fields):
    return {"choices": [{"message": {"role": "assistant", **fields}}]}


def asks_for(name, arguments, **more):
    call = {"id": "a", "type": "function", "function": {"name": name, "arguments": arguments}}
    return message(content=None, tool_calls=[{**call, **more}])


LIST = asks_for("list_files", "{}", id="first")
DONE = message(content="Done.")

NO_REPLY = [
    b"",
    b"<html>",
    b"{}",
    b'{"choices":[]}',
    b'{"choices":[{}]}',
    b"[]",
    b"{",
    b"data: x\n\n",
]
NO_CALL = [
    asks_for("delete_everything", "{}"),
    asks_for("", "{}"),
    asks_for("delete_file", ""),
    asks_for("delete_file", None),
    asks_for("delete_file", "access.log"),
    asks_for("delete_file", '["access.log"]'),
    asks_for("delete_file", ["access.log"]),
    asks_for("delete_file", '{"path":"access.log"'),
    asks_for("delete_file", '{"path":null}'),
    asks_for("delete_file", '{"path":"' + "x" * 10_000_000 + '"}'),
    message(tool_calls=[{"id": "a"}]),
]


@pytest.mark.parametrize("later", [False, True], ids=["first turn", "later turn"])
@pytest.mark.parametrize("body", NO_REPLY)
async def test_h23_no_usable_reply_interrupts_and_the_run_goes_on(
    runner, server, settings, wire, body, later
):
    before = [wire.whole(LIST)] if later else []
    server.replies = [*before, wire.http(body), wire.http(body), wire.whole(DONE)]
    state = await runner.start("Go.", settings(base_url=server.base_url))
    if state.status == "interrupted":
        assert state.interruption.kind == "no_reply"
        assert state.tool_runs == len(before)
        server.replies = [wire.whole(DONE)]
        state = await runner.resume(state.run_id)
    assert (state.status, state.answer) == ("completed", "Done.")


@pytest.mark.parametrize("reply", NO_CALL, ids=range(len(NO_CALL)))
async def test_h23_a_call_that_cannot_run_gets_its_message(
    runner, server, settings, workspace, wire, reply
):
    server.replies = [wire.whole(reply), wire.whole(DONE)]
    state = await runner.start("Go.", settings(base_url=server.base_url))
    assert (state.status, state.tool_runs) == ("completed", 0)
    (told,) = (m["content"] for m in state.messages if m["role"] == "tool")
    assert told.strip()
    assert (workspace / "access.log").exists()
    assert len(json.dumps(server.requests[1][1])) < 100_000


async def test_h23_a_call_cut_off_by_the_length_limit_does_not_run(
    runner, server, settings, workspace, wire
):
    cut = asks_for("list_files", "{}")
    cut["choices"][0]["finish_reason"] = "length"
    server.replies = [wire.whole(cut), wire.whole(DONE)]
    state = await runner.start("Go.", settings(base_url=server.base_url))
    assert (state.status, state.tool_runs) == ("completed", 0)


async def test_h23_two_calls_with_one_id_are_two(runner, server, settings, wire):
    twice = asks_for("list_files", "{}")
    calls = twice["choices"][0]["message"]["tool_calls"]
    calls.append(
        {**calls[0], "function": {"name": "read_file", "arguments": '{"path":"notes.txt"}'}}
    )
    server.replies = [wire.whole(twice), wire.whole(DONE)]
    state = await runner.start("Go.", settings(base_url=server.base_url))
    assert (state.status, state.tool_runs) == ("completed", 2)
    ids = [m["tool_call_id"] for m in state.messages if m["role"] == "tool"]
    assert len(set(ids)) == 2


async def test_h16_a_reply_without_sense_is_billed_to_the_run(runner, server, settings, wire):
    usage = {"prompt_tokens": 1000, "completion_tokens": 100}
    server.replies = [wire.whole({"choices": [], "usage": usage})]
    state = await runner.start("Go.", settings(base_url=server.base_url))
    assert (state.usage.prompt_tokens, state.usage.completion_tokens) == (1000, 100)
    assert float(state.usage.cost_usd) == 0.0032


async def test_h17_a_reply_that_nobody_counted_has_no_known_cost(runner, server, settings, wire):
    server.replies = [wire.whole(LIST), wire.whole(DONE)]
    state = await runner.start("Go.", settings(base_url=server.base_url))
    assert (state.status, state.usage.cost_usd) == ("completed", None)
    limited = settings(base_url=server.base_url, limits={"max_cost_usd": 1})
    server.requests.clear()
    state = await runner.start("Go.", limited)
    assert (state.status, state.turns) == ("interrupted", 1)
    assert "counts no tokens" in state.reason


async def test_h15_h19_a_stop_in_mid_reply_ends_the_run_and_counts(runner, server, settings, wire):
    usage = wire.event({"choices": [], "usage": {"prompt_tokens": 40, "completion_tokens": 2}})
    server.replies = [[wire.stream(wire.chunk(content="one two"), usage), 60.0]]
    token, said = CancelToken(), asyncio.Event()
    running = asyncio.ensure_future(
        runner.start(
            "Go.",
            settings(base_url=server.base_url),
            cancel=token,
            on_delta=lambda *_: said.set(),
        )
    )
    await said.wait()
    token.cancel("Stop")
    state = await running
    assert state.interruption.kind == "cancelled"
    assert (state.usage.prompt_tokens, state.usage.completion_tokens) == (40, 2)
