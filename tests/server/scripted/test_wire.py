"""The scripted provider over real HTTP: plain, streamed, broken."""

import json

import httpx
import pytest

BODY = {
    "messages": [{"role": "user", "content": "Which file mentions a timeout?"}],
    "tools": [{"type": "function", "function": {"name": "list_files"}}],
}


@pytest.fixture
def post(scripted_url):
    def send(model, attempt=None, timeout=20, **more):
        headers = {} if attempt is None else {"X-Attempt": str(attempt)}
        body = {**BODY, "model": model, **more}
        return httpx.post(
            f"{scripted_url}/chat/completions", json=body, headers=headers, timeout=timeout
        )

    return send


def test_a_whole_reply_and_a_stream_say_the_same(post):
    whole = post("plan").json()
    stream = post("plan", stream=True, stream_options={"include_usage": True})
    lines = [line for line in stream.text.split("\n\n") if line]
    assert lines.pop() == "data: [DONE]"
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines]
    assert chunks[-1]["usage"] == whole["usage"]
    call = whole["choices"][0]["message"]["tool_calls"][0]
    assert call == {"id": "c1", "type": "function", "function": call["function"]}
    assert whole["choices"][0]["finish_reason"] == "tool_calls"


def test_a_fault_goes_away_with_the_clients_own_count(post):
    model = "plan?fault=429&times=2&retry_after=1"
    assert [post(model, attempt).status_code for attempt in (None, 0, 1, 2)] == [429, 429, 429, 200]
    assert post(model).headers["retry-after"] == "1"


def test_an_unknown_model(post):
    reply = post("gpt-9")
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "model_not_found")


def test_a_wrong_fault(post):
    reply = post("plan?fault=nonsense")
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "model")


@pytest.mark.parametrize("stream", [False, True])
def test_a_connection_that_breaks(post, stream):
    with pytest.raises(httpx.RemoteProtocolError):
        post("plan?fault=half_stream", stream=stream)


@pytest.mark.parametrize("stream", [False, True])
def test_a_wrong_content_type(post, stream):
    reply = post("plan?fault=content_type", stream=stream)
    assert reply.headers["content-type"] == "text/plain"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", ["stall", "stall_midway"])
def test_a_stall(post, fault, stream):
    with pytest.raises(httpx.ReadTimeout):
        post(f"plan?fault={fault}", stream=stream, timeout=0.5)


def test_an_empty_body(post):
    reply = post("plan?fault=empty")
    assert (reply.status_code, reply.content) == (200, b"")


def test_the_models(scripted_url):
    data = httpx.get(f"{scripted_url}/models").json()["data"]
    assert data[0]["id"] == "plan"
    assert data[0]["uitweg"]["scripted"] is True
