"""What an endpoint can do: a scripted server, a real engine, and servers that lack things."""

from __future__ import annotations

import json

import pytest
from rich.console import Console

from harness.provider import Endpoint
from uitweg.doctor.endpoint import HUGE, check_endpoint
from uitweg.hosting import hosted, local_url, wait_until_ready


def checks(url: str, model: str | None = None) -> dict[str, tuple[str, str]]:
    found = check_endpoint(Endpoint(url, model=model))
    return {check.name: (check.state, f"{check.found} {check.advice}".strip()) for check in found}


def said(message: dict, usage: bool = True) -> tuple[int, str, str]:
    """A whole reply as one JSON object."""
    reply = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    if usage:
        reply["usage"] = {"prompt_tokens": 9, "completion_tokens": 2}
    return 200, "application/json", json.dumps(reply)


def called(*names: str) -> dict:
    calls = [{"id": n, "function": {"name": n, "arguments": "{}"}} for n in names]
    return {"content": None, "tool_calls": calls}


def test_a_scripted_server(scripted_url):
    found = checks(scripted_url, "plan")
    assert {name: state for name, (state, _) in found.items()} == {
        "endpoint": "ok", "models": "ok", "reply": "ok", "streaming": "ok", "usage": "ok",
        "tools": "ok", "parallel calls": "note", "context": "note",
    }  # fmt: skip


def test_a_model_that_is_not_there(scripted_url):
    found = checks(scripted_url, "nobody")
    assert found["models"][0] == "note"
    assert "nobody is not among them" in found["models"][1]
    assert found["reply"][0] == "wrong"


@pytest.mark.engine
def test_a_real_engine(model, port):
    number = port()
    with hosted("serve", "--model", model.name, "--port", str(number)) as process:
        wait_until_ready(local_url(number), Console(quiet=True), process)
        found = checks(local_url(number))
    assert found["reply"][0] == found["streaming"][0] == found["usage"][0] == "ok", found
    assert found["tools"][0] == "ok", found
    assert "tokens" in found["context"][1], found


def test_nobody_listens():
    found = checks("http://127.0.0.1:1/v1")
    assert list(found) == ["endpoint"]
    assert found["endpoint"][0] == "wrong"


@pytest.mark.parametrize("text", ["not json", "[]", '{"data":3}', '{"data":[{}]}'])
def test_a_list_of_models_that_is_none(server, text):
    server.models = text
    assert checks(server.url)["endpoint"][0] == "wrong"


def test_no_model_at_all(server):
    server.models = '{"data":[]}'
    assert checks(server.url)["models"] == (
        "wrong", "it has none Load one there, or name it in LLM_MODEL."
    )  # fmt: skip


def test_without_streaming_without_usage_without_tools(server):
    server.chat = lambda _: said({"content": "I cannot."}, usage=False)
    found = checks(server.url)
    assert found["streaming"][0] == "note"
    assert found["usage"][0] == "note"
    assert found["tools"][0] == "wrong"
    assert "--enable-auto-tool-choice" in found["tools"][1]
    assert "parallel calls" not in found


def test_parallel_calls(server):
    server.chat = lambda _: said(called("list_files", "read_file"))
    assert checks(server.url)["parallel calls"] == ("ok", "yes, 2 in one reply")


def test_tools_only_without_streaming(server):
    server.chat = lambda body: said(called() if body["stream"] else called("list_files"))
    assert "only without streaming" in checks(server.url)["tools"][1]


@pytest.mark.parametrize(
    "entry", [{"max_model_len": 32768}, {"meta": {"n_ctx_train": 32768}}, {"context": 32768}]
)
def test_the_context_out_of_the_list(server, entry):
    server.models = json.dumps({"data": [{"id": "m", **entry}]})
    server.chat = lambda _: said({"content": "hello"})
    assert checks(server.url)["context"] == ("ok", "32,768 tokens")


def test_the_context_out_of_a_refusal(server):
    refusal = {"error": {"message": "This model's maximum context length is 2048 tokens."}}
    server.chat = lambda body: (
        (400, "application/json", json.dumps(refusal))
        if body["max_tokens"] == HUGE
        else said({"content": "hello"})
    )
    state, text = checks(server.url)["context"]
    assert (state, text.partition(" ")[0]) == ("note", "2,048")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((500, "text/plain", "out of order"), "status 500: out of order"),
        ((401, "application/json", '{"error":"no key"}'), "status 401: no key"),
        ((200, "application/json", "[]"), "not what an OpenAI-compatible server says"),
        ((200, "application/json", "{"), "not what an OpenAI-compatible server says"),
        ((200, "text/event-stream", "data: [DONE]\n\n"), "its stream was empty"),
        ((200, "text/event-stream", 'data: {"error":{"message":"lost"}}\n\n'), "lost"),
        ((200, "text/event-stream", "data: x\n\n"), "not what an OpenAI-compatible server says"),
    ],
)
def test_a_reply_that_is_none(server, answer, told):
    server.chat = lambda _: answer
    found = checks(server.url)
    assert found["reply"][0] == "wrong"
    assert told in found["reply"][1]
    assert "tools" not in found
