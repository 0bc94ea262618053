"""Calls begun in free text: their arguments follow the tool's schema."""

from __future__ import annotations

import pytest

from server.engine.calls import CallGrammars, usual_calls
from server.engine.native import native
from server.engine.picker import Grammar
from server.reader import BegunCall, CallReader
from server.wire import FunctionTool

SIZES = {"size": {"type": "string", "enum": ["small", "large"]}}
TOOL = FunctionTool(
    name="order",
    parameters={"type": "object", "properties": SIZES, "required": ["size"]},
)


def begun(text: str) -> BegunCall | None:
    reader = CallReader(["order"])
    reader.feed(text)
    return reader.begun


def test_nothing_holds_before_the_arguments_begin() -> None:
    grammars = CallGrammars([TOOL])
    for text in ('{"name": "order"', '{"name": "order", "arguments"', '[{"name": "order"'):
        call = begun(text)
        assert call is not None
        assert grammars.for_call(call) is None
    assert begun("I order.") is None
    assert grammars.for_call(begun('{"name": "order", "arguments": {"si')).covered == '{"si'
    assert grammars.for_call(begun('{"name": "order", "parameters":')).covered == ""


def test_a_schema_that_cannot_be_promised_leaves_the_call_free() -> None:
    odd = TOOL.model_copy(update={"parameters": {"type": "object", "patternProperties": {}}})
    assert CallGrammars([odd]).for_call(begun('{"name": "order", "arguments":')) is None


@pytest.mark.engine
def test_the_grammar_takes_what_follows_the_schema_and_then_anything(engine) -> None:
    found = CallGrammars([TOOL]).for_call(begun('{"name": "order", "arguments": {"size": "'))
    assert found is not None

    def allowed(text: str) -> bool:
        grammar = Grammar(native(), engine.model, found.grammar)
        try:
            return grammar.begins_with(found.covered + text)
        finally:
            grammar.close()

    assert allowed("small")
    assert allowed('large"}}\n</tool_call> and so on {')
    assert not allowed("medium")
    assert not allowed('small", "more": 1')


@pytest.mark.engine
def test_a_call_in_a_reply_is_held_to_its_schema(ask, collected) -> None:
    """The model's own next words would be another size."""
    grammars = CallGrammars([TOOL])
    head = '{"name": "order", "arguments":'
    example = head + ' {"size": "medium"}}\n'

    class Sink(collected):
        """As if the reply had begun with the head of a call."""

        def __init__(self, constrained):
            super().__init__()
            self.constrained = constrained
            self.reader = CallReader(["order"])
            self.reader.feed(head)

        def text(self, text):
            self.reader.feed(text)
            return super().text(text)

        def begun(self):
            call = self.reader.begun
            return grammars.for_call(call) if self.constrained and call else None

        def in_call(self):
            return self.reader.begun is not None

    prompt = example * 4 + head
    free, held = (ask.reply(prompt, 12, sink=Sink(way)).whole for way in (False, True))
    assert free.startswith(' {"size": "medium"}}')
    assert held.startswith((' {"size": "small"}}', ' {"size": "large"}}'))


def test_usual_calls_are_calls_up_to_their_first_value() -> None:
    count = {"type": "object", "properties": {"a": {}, "n": {"type": "integer"}}, "required": ["n"]}
    tools = [TOOL, FunctionTool(name="now"), FunctionTool(name="wait", parameters=count)]
    tag = '<tool_call>\n{"name": "'
    assert usual_calls([]) == []
    bare, order, now, wait = usual_calls(tools)
    assert bare == '{"name": "'
    assert order == f'{tag}order", "arguments": {{"size": "'
    assert now == f'{tag}now", "arguments": {{}}}}\n</tool_call>'
    assert wait == f'{tag}wait", "arguments": {{"n": '
    reader = CallReader(["now"])
    reader.feed(now)
    assert reader.calls == 1


@pytest.mark.parametrize(
    "parameters",
    [
        {"properties": {"a": None}, "required": [["a"], 1, None]},
        {"properties": {"a": {"type": ["string"]}}, "required": "a"},
        {"properties": {"a": True}, "required": {}},
    ],
)
def test_a_schema_of_any_form_only_makes_a_worse_guess(parameters) -> None:
    (_, call) = usual_calls([FunctionTool(name="odd", parameters=parameters)])
    assert call.endswith('"odd", "arguments": {"a": ')
