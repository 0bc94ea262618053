"""Each fault, as the backend hands it out; over HTTP they are shown in test_wire.py."""

import asyncio
import json
from email.utils import parsedate_to_datetime

import pytest

from server.errors import RawReply
from server.parse import parse_request
from server.scripted.faults import FAULTS, HUGE_ARGUMENT_BYTES, RAW, WRONG


def raw(chat, fault, stream, **options):
    more = "".join(f"&{name}={value}" for name, value in options.items())
    with pytest.raises(RawReply) as caught:
        chat(f"plan?fault={fault}{more}", stream=stream)
    return caught.value


def first_arguments(chat, fault):
    return chat(f"plan?fault={fault}").calls[0]["function"]["arguments"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", RAW)
def test_every_raw_fault_gives_bytes(chat, fault, stream):
    reply = raw(chat, fault, stream)
    assert reply.status == 200
    assert reply.body or fault == "empty"
    assert reply.cut == (fault == "half_stream")


@pytest.mark.parametrize("fault", WRONG)
def test_every_wrong_reply_still_ends_with_its_tokens(chat, fault):
    reply = chat(f"plan?fault={fault}")
    assert reply.finish.prompt_tokens > 0
    assert reply.finish.completion_tokens > 0


@pytest.mark.parametrize("fault", WRONG)
def test_every_wrong_reply_works_on_a_closing_answer_too(chat, called, fault):
    settled = (*called(1, "list_files", "[]"), *called(2, "read_file", "", path="errors.log"))
    assert chat(f"plan?fault={fault}", *settled).finish is not None


def test_an_error_status_with_the_time_to_wait(chat):
    reply = raw(chat, "429", False, retry_after=7)
    assert (reply.status, reply.headers["Retry-After"]) == (429, "7")
    assert json.loads(reply.body)["error"]["type"] == "rate_limit_error"
    dated = raw(chat, "503", True, retry_date=60)
    assert parsedate_to_datetime(dated.headers["Retry-After"]).tzinfo is not None
    assert "Retry-After" not in raw(chat, "500", True).headers


def test_a_call_as_plain_text(chat):
    reply = chat("plan?fault=call_as_text")
    assert reply.text == '<tool_call>\n{"name":"list_files","arguments":{}}\n</tool_call>'
    assert (reply.calls, reply.finish.reason) == ([], "stop")


def test_the_token_limit_inside_a_call(chat, called):
    listed = called(1, "list_files", '["errors.log"]')
    reply = chat("plan?fault=length", *listed)
    assert reply.finish.reason == "length"
    assert reply.calls[0]["function"]["arguments"] == '{"path":"e'


def test_ids_that_are_wrong(chat, called):
    twice = chat("plan?fault=duplicate_id").calls
    assert [call["id"] for call in twice] == ["c1", "c1"]
    reused = chat("plan?fault=reused_id", *called(1, "list_files", "[]")).calls
    assert [call["id"] for call in reused] == ["c1"]
    missing = json.loads(raw(chat, "missing_id", False).body)["choices"][0]["message"]
    assert "id" not in missing["tool_calls"][0]


def test_calls_that_are_wrong(chat):
    assert chat("plan?fault=unknown_tool").calls[0]["function"]["name"] == "launch_rocket"
    assert first_arguments(chat, "args_list") == '["errors.log"]'
    assert first_arguments(chat, "args_null") == "null"
    assert first_arguments(chat, "args_text") == "errors.log"
    assert first_arguments(chat, "args_empty") == ""
    assert first_arguments(chat, "args_broken") == "{"


def test_ten_megabytes_of_arguments(chat):
    assert len(first_arguments(chat, "args_huge")) > HUGE_ARGUMENT_BYTES


@pytest.mark.parametrize("fault", ["stall", "stall_midway"])
def test_a_stall_lasts_until_the_client_goes(backend, fault):
    body = {
        "model": f"plan?fault={fault}",
        "messages": [{"role": "user", "content": "x"}],
        "tools": [{"type": "function", "function": {"name": "list_files"}}],
    }
    pieces = []

    async def wait():
        request = parse_request(json.dumps(body).encode())
        async with asyncio.timeout(0.2):
            pieces.extend([piece async for piece in backend.chat(request)])

    with pytest.raises(TimeoutError):
        asyncio.run(wait())


def test_faults_have_distinct_names():
    assert len(set(FAULTS)) == len(FAULTS)
