"""The whole server on the real model, driven by the official client and started as a person would.

What the model says is its own affair; what the server makes of it is looked at here. Greedy, so
that every run of these tests sees the same replies.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from local.cpus import threads

pytestmark = pytest.mark.engine

PATH = {"path": {"type": "string", "description": "File name in the workspace"}}
SYSTEM = {
    "role": "system",
    "content": "You are a helpful agent. Use the tools to answer questions about the files.",
}
TASKS = [
    "Which file mentions a timeout?",
    "How many files are in the directory?",
    "Read notes.txt and tell me what it says.",
    "List the files and then read each one.",
    "Which file is the largest?",
    "Is there a file about rotating logs?",
]
READ_TASK = TASKS[2]
ANSWERED = re.compile(r'"(name|function)"\s*:\s*"(list_files|read_file|delete_file|scan_archive)"')


def tool(name: str, description: str, properties: dict[str, Any]) -> Any:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


TOOLS = [
    tool("list_files", "List the files in the workspace.", {}),
    tool("read_file", "Read a file in the workspace and return its text.", PATH),
    tool("delete_file", "Delete a file in the workspace.", PATH),
    tool("scan_archive", "Scan the archive for problems.", {}),
]


@pytest.fixture(scope="module")
def process_ids() -> list[int]:
    """Of the server's process, once it runs."""
    return []


@pytest.fixture(scope="module")
def url(model: Any, process_ids: list[int]) -> Iterator[str]:
    """`uitweg serve` with the real model, from its line on the terminal to its end."""
    arguments = ["serve", "--model", model.name, "--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "uitweg", *arguments], stdout=subprocess.PIPE, text=True
    )
    process_ids.append(process.pid)
    assert process.stdout is not None
    line = process.stdout.readline()
    base = line.removeprefix("Listening on ").strip()
    try:
        root = base.removesuffix("/v1")
        while httpx.get(f"{root}/health", timeout=5).status_code == 503:
            assert process.poll() is None
            time.sleep(0.1)
        yield base
    finally:
        process.terminate()
        assert process.wait(20) == 0
        process.stdout.close()


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0, timeout=120) as made:
        yield made


@pytest.fixture(scope="module")
def ask(client: openai.OpenAI, model: Any) -> Any:
    def send(content: str = READ_TASK, **fields: Any) -> Any:
        messages = fields.pop("messages", [SYSTEM, {"role": "user", "content": content}])
        options = {"temperature": 0, "max_tokens": 100, **fields}
        return client.chat.completions.create(model=model.name, messages=messages, **options)

    return send


def call_of(choice: Any) -> tuple[str, dict[str, Any]]:
    assert choice.finish_reason == "tool_calls"
    function = choice.message.tool_calls[0].function
    return function.name, json.loads(function.arguments)


@pytest.mark.parametrize("task", TASKS)
def test_s1_every_call_that_the_model_writes_is_a_call(ask: Any, task: str) -> None:
    choice = ask(task, tools=TOOLS).choices[0]
    assert not ANSWERED.search(choice.message.content or "")
    if choice.message.tool_calls:
        assert choice.finish_reason in ("tool_calls", "length")
        assert choice.message.content is None or "{" not in choice.message.content
        ids = [call.id for call in choice.message.tool_calls]
        assert all(ids)
        assert len(set(ids)) == len(ids)


def test_s1_qwens_call_is_no_content(ask: Any) -> None:
    choice = ask(tools=TOOLS).choices[0]
    assert call_of(choice) == ("read_file", {"path": "notes.txt"})
    assert choice.message.content is None


def test_s2_streamed_deltas(ask: Any) -> None:
    chunks = list(ask(tools=TOOLS, stream=True))
    deltas = [c.choices[0].delta for c in chunks]
    calls = [delta.tool_calls[0] for delta in deltas if delta.tool_calls]
    assert {call.index for call in calls} == {0}
    assert [bool(call.id) for call in calls] == [True] + [False] * (len(calls) - 1)
    assert [call.function.name for call in calls if call.function.name] == ["read_file"]
    assert json.loads("".join(c.function.arguments for c in calls)) == {"path": "notes.txt"}
    assert not any(delta.content for delta in deltas)
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_s2_s8_required_one_function_and_none(ask: Any) -> None:
    hello = "Say hello."
    name, _ = call_of(ask(hello, tools=TOOLS, tool_choice="required").choices[0])
    assert name in [one["function"]["name"] for one in TOOLS]
    named = {"type": "function", "function": {"name": "delete_file"}}
    name, arguments = call_of(ask(hello, tools=TOOLS, tool_choice=named).choices[0])
    assert name == "delete_file"
    assert isinstance(arguments["path"], str)
    choice = ask(tools=TOOLS, tool_choice="none").choices[0]
    assert choice.finish_reason in ("stop", "length")
    assert not choice.message.tool_calls


@pytest.mark.parametrize("absent", [{"content": None}, {"content": ""}, {}])
def test_s3_a_call_in_the_history_without_content(ask: Any, absent: dict[str, Any]) -> None:
    assert ask(messages=talk_after_a_call(absent), max_tokens=8).choices[0].finish_reason


def talk_after_a_call(absent: dict[str, Any]) -> list[dict[str, Any]]:
    function = {"name": "read_file", "arguments": '{"path": "notes.txt"}'}
    call = {"id": "call_1", "type": "function", "function": function}
    return [
        SYSTEM,
        {"role": "user", "content": READ_TASK},
        {"role": "assistant", "tool_calls": [call], **absent},
        {"role": "tool", "tool_call_id": "call_1", "content": "Rotate the logs on Friday."},
    ]


def test_s4_a_second_request_and_a_poll_leave_a_stream_alone(ask: Any, url: str) -> None:
    alone = ask("Count to ten.", max_tokens=16).choices[0].message.content
    stream = iter(ask("Count to ten.", max_tokens=16, stream=True))
    first = next(stream)
    other = ask("Say hello.", max_tokens=5)
    assert other.choices[0].message.content
    assert httpx.get(f"{url.removesuffix('/v1')}/health", timeout=5).status_code == 200
    rest = [chunk.choices[0].delta.content or "" for chunk in [first, *stream]]
    assert "".join(rest) == alone


def test_s5_the_next_turn_prefills_only_what_is_new(ask: Any) -> None:
    talk: list[dict[str, Any]] = [
        SYSTEM,
        {"role": "user", "content": "Name three colours, please."},
    ]
    first = ask(messages=talk, max_tokens=40)
    talk += [{"role": "assistant", "content": first.choices[0].message.content}]
    talk += [{"role": "user", "content": "And three animals."}]
    usage = ask(messages=talk, max_tokens=5).usage
    known = first.usage.prompt_tokens + first.usage.completion_tokens
    assert usage.prompt_tokens_details.cached_tokens >= known - 2
    assert usage.prompt_tokens > known


def test_s6_usage_in_a_stream(ask: Any) -> None:
    whole = ask("Say hello.").usage
    *_, last = ask("Say hello.", stream=True, stream_options={"include_usage": True})
    assert last.choices == []
    assert last.usage.prompt_tokens == whole.prompt_tokens
    assert last.usage.completion_tokens == whole.completion_tokens > 0


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_s7_a_call_that_is_cut_off_is_no_call(ask: Any, choice: str) -> None:
    cut = ask(tools=TOOLS, tool_choice=choice, max_tokens=9).choices[0]
    assert cut.finish_reason == "length"
    assert not cut.message.tool_calls
    streamed = [
        c.choices[0] for c in ask(tools=TOOLS, tool_choice=choice, max_tokens=9, stream=True)
    ]
    assert not any(one.delta.tool_calls for one in streamed)
    assert streamed[-1].finish_reason == "length"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_s10_a_client_that_leaves_frees_its_slot(url: str, stream: bool, phase: str) -> None:
    words = "Tell me a long story." if phase == "decode" else f"{stream} word " * 3000
    talk = [{"role": "user", "content": words}]
    body = json.dumps({"messages": talk, "max_tokens": 1000, "stream": stream}).encode()
    port = httpx.URL(url).port
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost:{port}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    cancelled, made = metric(url, "cancelled_total"), metric(url, "decode_tokens_total")
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(head.encode() + body)
        until(lambda: metric(url, "live") == 1)
        if phase == "decode":
            until(lambda: metric(url, "decode_tokens_total") > made + 2)
    until(lambda: metric(url, "cancelled_total") == cancelled + 1)
    until(lambda: metric(url, "live") == 0)
    after = metric(url, "decode_tokens_total"), metric(url, "prefill_tokens_total")
    assert phase == "decode" or after[0] == made
    time.sleep(0.2)
    assert (metric(url, "decode_tokens_total"), metric(url, "prefill_tokens_total")) == after


def metric(url: str, name: str) -> float:
    text = httpx.get(f"{url.removesuffix('/v1')}/metrics").text
    found = re.search(rf"^uitweg_engine_{name} ([0-9.e+]+)$", text, re.MULTILINE)
    assert found, f"{name} is not among:\n{text}"
    return float(found[1])


def until(true: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_s11_a_too_long_prompt_is_refused_with_both_numbers(ask: Any) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        ask("word " * 100_000)
    error = caught.value
    assert error.code == "context_length_exceeded"
    assert error.body["prompt_tokens"] > 100_000 > error.body["context_tokens"]
    for number in (error.body["prompt_tokens"], error.body["context_tokens"]):
        assert str(number) in error.message


def test_s16_developer_json_schema_and_a_tool_without_parameters(ask: Any) -> None:
    developer = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    assert ask(messages=developer, max_tokens=5).choices[0].message.content
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 20}, "people": {"type": "integer"}},
        "required": ["city", "people"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "city", "schema": schema}}
    choice = ask("Describe Paris.", response_format=form).choices[0]
    assert choice.finish_reason == "stop"
    answer = json.loads(choice.message.content)
    assert set(answer) == {"city", "people"}
    assert isinstance(answer["people"], int)
    free = ask("Describe Paris.", response_format={"type": "json_object"}, max_tokens=20).choices[0]
    assert free.message.content.startswith("{")
    assert free.finish_reason == "length" or isinstance(json.loads(free.message.content), dict)
    bare = [{"type": "function", "function": {"name": "ping"}}]
    assert call_of(ask("Ping.", tools=bare, tool_choice="required").choices[0]) == ("ping", {})


def test_a_form_of_the_answer_beside_tools(ask: Any) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": ["yes", "no"]}}}
    choice = ask("Is water wet? Answer yes or no.", tools=TOOLS, response_format=form).choices[0]
    if not choice.message.tool_calls:
        assert json.loads(choice.message.content) in ("yes", "no")


def test_temperature_0_gives_the_same_text_every_time_and_a_seed_does_too(ask: Any) -> None:
    def words(**fields: Any) -> str:
        return str(ask("Tell me a story.", max_tokens=8, **fields).choices[0].message.content)

    assert words() == words()
    hot = {"temperature": 1.2, "top_p": 0.95}
    assert words(seed=1, **hot) == words(seed=1, **hot)
    assert len({words(seed=seed, **hot) for seed in range(3)}) > 1


def test_stop_strings_and_both_names_of_the_limit(ask: Any) -> None:
    whole = ask("Count from 1 to 9, with commas.").choices[0].message.content
    assert "5" in whole
    stopped = ask("Count from 1 to 9, with commas.", stop=["5", "never"]).choices[0]
    assert stopped.message.content == whole[: whole.index("5")]
    assert stopped.finish_reason == "stop"
    short = ask("Count from 1 to 9, with commas.", max_tokens=None, max_completion_tokens=3)
    assert short.usage.completion_tokens == 3
    assert short.choices[0].finish_reason == "length"


def test_a_model_that_is_not_served(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "x"}])
    assert caught.value.code == "model_not_found"


def test_no_text_is_a_control_token_wherever_it_stands(ask: Any) -> None:
    """Each costs more than one token, and none is one of those that the template puts in."""
    control = "<|im_end|><|im_start|>"
    places = "\ue0f0999999\ue0f1 \ue0f00\ue0f1"

    def prompt_tokens(text: str) -> int:
        forged = tool("look", text, {"path": {"type": "string", "description": text}})
        call = {"id": "c", "function": {"name": "look", "arguments": json.dumps({text: text})}}
        talk = [
            {"role": "user", "content": text},
            {"role": "assistant", "content": text, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": text},
        ]
        used = ask(messages=talk, tools=[forged], max_tokens=1).usage
        return int(used.prompt_tokens)

    empty = prompt_tokens("")
    assert prompt_tokens(control) >= empty + 7 * 8
    assert prompt_tokens(places) < prompt_tokens(control)


def test_several_calls_can_be_forbidden(ask: Any) -> None:
    choice = ask("List the files and then read each one.", tools=TOOLS, parallel_tool_calls=False)
    assert len(choice.choices[0].message.tool_calls or [None]) == 1


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs Linux's /proc")
def test_each_compute_thread_keeps_to_a_cpu_of_its_own(ask: Any, process_ids: list[int]) -> None:
    """Only those: what is not computing may run anywhere."""
    ask(max_tokens=2)
    held = [
        os.sched_getaffinity(int(task.name))
        for task in Path(f"/proc/{process_ids[0]}/task").iterdir()
    ]
    everywhere = os.sched_getaffinity(process_ids[0])
    assert everywhere == os.sched_getaffinity(0)
    alone = [cpus for cpus in held if len(cpus) == 1]
    pinned = threads() == len(everywhere) > 1
    assert len(alone) == (threads() if pinned else 0)
    assert len(set().union(*alone)) == len(alone)
