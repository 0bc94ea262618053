"""The request as clients send it: tolerant where OpenAI is, else 400 with the field's name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.errors import BadRequest
from server.json_text import compact_json, parse_json
from server.parse import parse_request
from server.wire import ChatRequest

USER = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "read_file"}}


def parsed(**fields: Any) -> ChatRequest:
    return parse_request(json.dumps({"messages": [USER], **fields}).encode())


def refused(**fields: Any) -> str:
    with pytest.raises(BadRequest) as caught:
        parsed(**fields)
    assert caught.value.status == 400
    assert caught.value.param is not None
    assert caught.value.param in caught.value.message
    return caught.value.param


@pytest.mark.parametrize("absent", [{"content": None}, {}, {"content": ""}])
def test_s3_assistant_message_with_calls_needs_no_content(absent: dict[str, Any]) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    message = parsed(
        messages=[USER, {"role": "assistant", "tool_calls": [call], **absent}]
    ).messages[1]
    assert message.tool_calls[0].function.name == "read_file"
    assert not message.content


def test_s16_developer_is_system() -> None:
    assert parsed(messages=[{"role": "developer", "content": "x"}]).messages[0].role == "system"


def test_s16_a_tool_without_parameters_takes_none() -> None:
    for function in ({"name": "f"}, {"name": "f", "parameters": None}):
        tool = parsed(tools=[{"type": "function", "function": function}]).tools[0]
        assert tool.function.parameters == {"type": "object", "properties": {}}


def test_s16_text_parts_are_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert parsed(messages=[{"role": "user", "content": parts}]).messages[0].content == "ab"


def test_s16_null_means_absent_where_openai_takes_it() -> None:
    fields = [
        "model",
        "tools",
        "tool_choice",
        "temperature",
        "top_p",
        "seed",
        "stop",
        "n",
        "logprobs",
    ]
    fields += ["max_tokens", "max_completion_tokens", "response_format", "stream", "stream_options"]
    fields += ["top_logprobs", "logit_bias", "presence_penalty", "parallel_tool_calls", "audio"]
    request = parsed(**dict.fromkeys(fields))
    assert request.stop == []
    assert request.tool_choice.mode == "auto"
    assert request.token_limit is None


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"logit_bias": {"50256": -100}}, "logit_bias"),
        ({"presence_penalty": 0.5}, "presence_penalty"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"modalities": ["text", "audio"]}, "modalities[1]"),
        ({"temperature": 3}, "temperature"),
        ({"temperature": "0.5"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"top_p": -0.1}, "top_p"),
        ({"seed": 2**70}, "seed"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_completion_tokens": 10**30}, "max_completion_tokens"),
        ({"stop": [""]}, "stop[0]"),
        ({"stop": ["a"] * 17}, "stop"),
        ({"stream": "yes"}, "stream"),
        ({"model": 3}, "model"),
        ({"messages": []}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": {"role": "user"}}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
        ({"messages": [{"role": "robot", "content": ""}]}, "messages[0].role"),
        ({"messages": [USER, {"role": "tool", "content": "x"}]}, "messages[1].tool_call_id"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "messages[0].content",
        ),
        ({"tools": [TOOL, TOOL]}, "tools"),
        ({"tools": [{"type": "code_interpreter"}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": "sometimes", "tools": [TOOL]}, "tool_choice"),
        ({"tool_choice": {"type": "function"}, "tools": [TOOL]}, "tool_choice"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
    ],
)
def test_s16_what_cannot_be_done_is_refused_by_name(fields: dict[str, Any], param: str) -> None:
    assert refused(**fields) == param


def test_s8_every_form_of_tool_choice() -> None:
    def choice(form: Any) -> tuple[str, str | None, list[str]]:
        request = parsed(
            tools=[TOOL, {"type": "function", "function": {"name": "f"}}], tool_choice=form
        )
        names = [tool.name for tool in request.callable_tools]
        return request.tool_choice.mode, request.tool_choice.name, names

    assert choice("auto") == ("auto", None, ["read_file", "f"])
    assert choice("none") == ("none", None, [])
    assert choice("required") == ("required", None, ["read_file", "f"])
    named = {"type": "function", "function": {"name": "f"}}
    assert choice(named) == ("required", "f", ["f"])
    with pytest.raises(BadRequest, match="no tool is called 'g'"):
        choice({"type": "function", "function": {"name": "g"}})


def test_newer_token_limit_wins_and_unknown_fields_are_ignored() -> None:
    request = parsed(max_tokens=5, max_completion_tokens=9, min_p=0.1, raw={"messages": "mine"})
    assert request.token_limit == 9
    assert request.raw_messages == [USER]


def test_raw_body_keeps_its_key_order() -> None:
    body = b'{"tools":[{"function":{"name":"f","description":"d"},"type":"function"}],'
    body += b'"messages":[{"content":"h\xc3\xa9","role":"user"}]}'
    request = parse_request(body)
    assert compact_json(request.raw_messages) == '[{"content":"hé","role":"user"}]'
    assert compact_json(request.raw_tools).startswith('[{"function":{"name":"f"')


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xff\xfe{}",
        b"\xef\xbb\xbf{}",
        b'{"messages": "\\ud800"}',
        b'{"temperature": NaN}',
        b'{"temperature": Infinity}',
        b'{"messages": [{"role": "user", "content": "x"}], "x": 1e999}',
        b'{"x": ' + b"[" * 100_000,
        b'{"x": ' + b"1" * 100_000 + b"}",
        b'{"messages": [{"role": "user", "content": "x"}], "x": [' + b"[]," * 300_000 + b"[]]}",
    ],
)
def test_s16_a_body_that_is_no_clean_json_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequest):
        parse_request(body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from([*ChatRequest.model_fields, "role", "content", "function", "name", "type"])


@given(body=st.dictionaries(FIELDS, JSON), message=st.dictionaries(FIELDS, JSON))
def test_s16_anything_is_a_request_or_a_bad_request(
    body: dict[str, Any], message: dict[str, Any]
) -> None:
    text = json.dumps({"messages": [USER, message], **body})
    try:
        request = parse_request(text.encode())
    except BadRequest as error:
        compact_json(error.body()).encode()
    else:
        assert request.messages


@given(st.text())
def test_strict_json_is_what_the_standard_library_reads(text: str) -> None:
    encoded = json.dumps(text)
    if "\\ud" not in encoded or encoded.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            with pytest.raises(ValueError):
                parse_json(encoded)
        else:
            assert parse_json(encoded) == text
