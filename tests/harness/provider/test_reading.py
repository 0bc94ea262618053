"""A reply put together from its pieces."""

from __future__ import annotations

import pytest

from harness.provider.errors import ReplyUnreadable
from harness.provider.reading import Assembly


def read(*chunks, taken=()):
    assembly = Assembly()
    for chunk in chunks:
        assembly.feed(chunk)
    return assembly.finish(taken)


def calls(*items, reason="tool_calls"):
    message = {"role": "assistant", "content": None, "tool_calls": list(items)}
    return {"choices": [{"message": message, "finish_reason": reason}]}


def call(arguments="{}", **rest):
    return {
        "id": "a",
        "type": "function",
        "function": {"name": "f", "arguments": arguments},
        **rest,
    }


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("[1]", "[1]"),
        ([1], "[1]"),
        (None, ""),
        ({"path": "ä"}, '{"path":"ä"}'),
        ('{"path": "x', '{"path": "x'),
        (7, "7"),
    ],
)
def test_h23_arguments_stay_text_that_nobody_believes(arguments, text):
    assert read(calls(call(arguments))).tool_calls[0].arguments == text


def test_h23_length_inside_a_call_is_said():
    assert read(calls(call('{"path'), reason="length")).finish_reason == "length"


def test_h23_missing_and_double_ids_become_unique():
    reply = read(calls(call(), call(), call(id=None), call(id=""), call(id=5)), taken=["b"])
    ids = [one.id for one in reply.tool_calls]
    assert len(set(ids)) == 5
    assert ids[0] == "a"
    assert all(ids)


def test_h23_an_id_of_an_earlier_turn_is_replaced():
    assert read(calls(call()), taken=["a"]).tool_calls[0].id != "a"


def test_h23_a_call_without_a_function_names_no_tool():
    assert read(calls({"id": "a"}, {"id": "b", "function": None})).tool_calls[1].name == ""


def test_h23_calls_without_bound_are_refused():
    with pytest.raises(ReplyUnreadable, match="128"):
        read(calls(*[call(id=str(n)) for n in range(200)]))


def delta(*items):
    return {"choices": [{"delta": {"tool_calls": list(items)}}]}


def test_pieces_without_an_index_belong_to_the_last_call():
    reply = read(
        delta({"id": "a", "function": {"name": "f", "arguments": ""}}),
        delta({"function": {"arguments": "{}"}}),
        delta({"id": "b", "function": {"name": "g", "arguments": "[]"}}),
    )
    assert [tuple(one) for one in reply.tool_calls] == [("a", "f", "{}"), ("b", "g", "[]")]


def test_two_calls_that_share_an_index_are_two():
    reply = read(
        delta({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}),
        delta({"index": 0, "id": "b", "function": {"name": "g", "arguments": "{}"}}),
    )
    assert [one.name for one in reply.tool_calls] == ["f", "g"]


def test_a_name_that_comes_with_every_piece_is_one_name():
    piece = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}}
    reply = read(delta(piece), delta({**piece, "function": {"name": "f", "arguments": "}"}}))
    assert tuple(reply.tool_calls[0]) == ("a", "f", "{}")


@pytest.mark.parametrize(
    "usage",
    [None, [], {}, {"prompt_tokens": None}, {"prompt_tokens": -5}, {"prompt_tokens": "9"},
     {"prompt_tokens": True}, {"prompt_tokens_details": 3}],
)  # fmt: skip
def test_usage_that_makes_no_sense_is_none(usage):
    chunk = {"choices": [{"message": {"content": "x"}}], "usage": usage}
    assert tuple(read(chunk).usage)[:3] == (0, 0, 0)


def test_cached_tokens_are_read():
    usage = {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 8}}
    assert read({"choices": [{"message": {"content": "x"}}], "usage": usage}).usage.cached == 8


def test_half_a_surrogate_cannot_be_stored_and_is_replaced():
    chunk = {"choices": [{"message": {"content": "a\ud800b"}}]}
    read(chunk).content.encode()  # type: ignore[union-attr]
    both = [{"choices": [{"delta": {"content": half}}]} for half in ("\ud83d", "\ude42")]
    assert read(*both).content == "\N{SLIGHTLY SMILING FACE}"


def test_content_in_parts_is_joined():
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]
    assert read({"choices": [{"message": {"content": parts}}]}).content == "ab"


def test_an_empty_reply_is_a_reply():
    reply = read({"choices": [{"message": {"role": "assistant", "content": None}}]})
    assert (reply.content, reply.tool_calls, reply.finish_reason) == ("", (), "stop")


def test_h23_nonsense_beside_the_message_can_be_stored_all_the_same():
    assembly = Assembly()
    assembly.feed(
        {
            "model": "a\ud800b",
            "choices": [{"delta": {"content": "x"}, "finish_reason": "\ud800"}],
            "usage": {"prompt_tokens": 10**300, "completion_tokens": 2**63},
        }
    )
    reply = assembly.finish()
    assert (reply.usage.prompt, reply.usage.completion) == (0, 0)
    for text in (reply.model, reply.finish_reason):
        assert text.encode("utf-8")
