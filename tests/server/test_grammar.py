"""Grammars: whatever they allow follows the schema, and ends."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.errors import BadRequest
from server.grammar import call_grammar, object_grammar, request_grammar, schema_grammar
from server.parse import parse_request

TOKEN = re.compile(
    r'\s*(?:("(?:[^"\\]|\\.)*")|(\[(?:[^\]\\]|\\.)*\])|(\{\d+(?:,\d*)?\})|([A-Za-z][A-Za-z0-9-]*)|([()|?]))'
)
CLASS_PART = re.compile(r"\\x[0-9A-F]{2}|\\.|[^\\]")


Part = tuple[Any, int, int]
"""What is repeated (a token, or the alternatives in parentheses), how often at least and most."""


class Writer:
    """Writes a random text that a grammar allows; knows the part of GBNF that we write."""

    def __init__(self, grammar: str, seed: int) -> None:
        lines = (line.split(" ::= ", 1) for line in grammar.splitlines() if line)
        self.rules = {name: self.parsed(self.tokens(body)) for name, body in lines}
        self.random = random.Random(seed)

    @staticmethod
    def tokens(body: str) -> Iterator[str]:
        at = 0
        while at < len(body.rstrip()):
            match = TOKEN.match(body, at)
            assert match, body[at:]
            at = match.end()
            yield match[0].strip()

    def parsed(self, tokens: Iterator[str]) -> list[list[Part]]:
        options: list[list[Part]] = [[]]
        for token in tokens:
            if token == ")":
                break
            if token == "|":
                options.append([])
            elif token == "?":
                options[-1][-1] = (options[-1][-1][0], 0, 1)
            elif token.startswith("{"):
                low, _, high = token.strip("{}").partition(",")
                options[-1][-1] = (options[-1][-1][0], int(low), int(high or low))
            else:
                options[-1].append((self.parsed(tokens) if token == "(" else token, 1, 1))
        return options

    def text(self) -> str:
        return self.choice(self.rules["root"], 0)

    def choice(self, options: list[list[Part]], depth: int) -> str:
        if depth > 20:  # a schema that refers to itself: take the way out
            options = [min(options, key=lambda parts: sum(low for _, low, _ in parts))]
        made = ""
        for what, low, high in self.random.choice(options):
            count = self.random.choice([low, min(high, low + 3)]) if depth < 20 else low
            made += "".join(self.one(what, depth + 1) for _ in range(count))
        return made

    def one(self, what: Any, depth: int) -> str:
        if isinstance(what, list):
            return self.choice(what, depth)
        if what.startswith('"'):
            return str(json.loads(what))
        if what.startswith("["):
            return self.character(what[1:-1])
        return self.choice(self.rules[what], depth)

    def character(self, body: str) -> str:
        if body.startswith("^"):
            return self.random.choice("aZ09 é\u2028😀{}[]<>/'`")
        parts = [part[-1] for part in CLASS_PART.findall(body)]
        if len(parts) == 3 and parts[1] == "-":
            return chr(self.random.randint(ord(parts[0]), ord(parts[2])))
        plain = [part for part in parts if part.isalnum()]
        return self.random.choice(plain or parts)


def written(grammar: str, count: int = 30) -> list[Any]:
    """Some values that the grammar allows."""
    return [json.loads(Writer(grammar, seed).text()) for seed in range(count)]


POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "label": {"type": ["string", "null"], "maxLength": 5}},
    "required": ["x"],
    "additionalProperties": False,
}
TREE = {
    "type": "object",
    "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 2}},
}
EITHER = [{"required": ["a"]}, {"required": ["b"], "properties": {"b": {"type": "null"}}}]
FLAGS = {letter: {"type": "boolean"} for letter in "abcd"}
SCHEMAS: list[dict[str, Any]] = [
    {},
    POINT,
    {"type": "object", "properties": {}},
    {"type": "object", "properties": FLAGS, "required": ["b", "d"]},
    {"type": "object", "properties": FLAGS},
    {"type": "object", "properties": {}, "required": ["anything"]},
    {"type": "object"},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"type": "array", "items": POINT, "minItems": 1, "maxItems": 3},
    {"type": "array", "maxItems": 0},
    {"type": "array", "prefixItems": [{"type": "string"}, {"const": 3}], "items": False},
    {"type": "string", "minLength": 2, "maxLength": 4},
    {"type": "integer", "minimum": -12, "maximum": 1234},
    {"type": "number", "exclusiveMinimum": 0, "maximum": 10},
    {"enum": ['a\n"b\\', "é", 3, None, {"k": [1, True]}, "tab\t"]},
    {"const": {"a": [None]}},
    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "null"}}]},
    {"oneOf": [{"const": 1}, {"const": "one"}], "description": "either"},
    {"type": "object", "properties": {"a": {"const": 1}}, "anyOf": EITHER},
    {"allOf": [POINT, {"required": ["label"]}]},
    {"$ref": "#/$defs/tree", "$defs": {"tree": TREE}},
    {
        "type": "object",
        "properties": {"a~/b": {"$ref": "#/definitions/x~0~1y"}},
        "definitions": {"x~/y": {"type": "null"}},
    },
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:60])
def test_whatever_the_grammar_allows_follows_the_schema(schema: dict[str, Any]) -> None:
    for value in written(schema_grammar(schema, "schema")):
        jsonschema.validate(value, schema, cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: json.dumps(schema)[:60])
def test_s15_nothing_in_a_grammar_repeats_without_end(schema: dict[str, Any]) -> None:
    grammar = re.sub(
        r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]', "", schema_grammar(schema, "schema")
    )
    assert not re.search(r"[*+]|\{\d+,\}", grammar)
    assert all(int(high) <= 2000 for high in re.findall(r"\{\d+,(\d+)\}", grammar))


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"type": "string", "pattern": "^a$"}, "pattern"),
        ({"type": "object", "properties": {"a": {"not": {}}}}, "not at /properties/a"),
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"type": "object", "patternProperties": {}}, "patternProperties"),
        ({"if": {}, "then": {}}, "if"),
        ({"type": "colour"}, "type 'colour'"),
        ({"$ref": "https://example.com/schema"}, "$ref"),
        ({"$ref": "#/$defs/nothing"}, "leads nowhere"),
        ({"$ref": "#"}, "leads to itself"),
        ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "leads to itself"),
        ({"allOf": [{"$ref": "#"}]}, ""),
        ({"allOf": [{"type": "string"}, {"type": "null"}]}, "combination of two type"),
        ({"type": "array", "minItems": 5, "maxItems": 3}, "minItems"),
        ({"type": "array", "minItems": 10**9}, "minItems"),
        ({"type": "string", "minLength": 10**9}, "minLength"),
        ({"type": "string", "maxLength": -1}, "maxLength"),
        ({"type": "string", "maxLength": "5"}, "maxLength"),
        ({"type": "number", "minimum": 0.3, "maximum": 0.7}, "range"),
        ({"type": "integer", "minimum": "1"}, "bound"),
        ({"enum": []}, "enum"),
        ({"enum": "a"}, "enum"),
        ({"anyOf": {}}, "anyOf"),
        ({"properties": []}, "properties"),
        ({"required": "a"}, "required"),
        ({"required": [1]}, "required"),
        ({"type": "object", "properties": {"a": 3}}, "this schema at /properties/a"),
        ({"type": []}, "type"),
        ({"enum": ["x" * 1000 + str(n) for n in range(1000)]}, "this large"),
    ],
)
def test_what_cannot_be_promised_is_refused_by_name(schema: dict[str, Any], named: str) -> None:
    with pytest.raises(BadRequest) as caught:
        schema_grammar(schema, "schema")
    assert named in caught.value.message
    assert caught.value.param == "schema"


def test_a_bottomless_schema_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(150):
        deep = {"type": "array", "items": deep}
    wide: dict[str, Any] = {"type": "null"}
    for _ in range(15):
        wide = {"anyOf": [wide, {"type": "array", "items": wide}]}
    for schema in (deep, wide):
        with pytest.raises(BadRequest, match="this large"):
            schema_grammar(schema, "schema")


def test_s2_a_required_call_is_one_of_the_tools_in_the_models_own_form() -> None:
    tools = [
        {"type": "function", "function": {"name": "list_files"}},
        {"type": "function", "function": {"name": "plot", "parameters": POINT}},
    ]
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "x"}], "tools": tools}

    def calls(choice: Any) -> list[dict[str, Any]]:
        request = parse_request(json.dumps({**body, "tool_choice": choice}).encode())
        grammar = request_grammar(request)
        assert grammar is not None
        texts = [Writer(grammar, seed).text() for seed in range(40)]
        assert all(text.startswith("<tool_call>\n{") for text in texts)
        return [
            json.loads(text.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>"))
            for text in texts
        ]

    assert {call["name"] for call in calls("required")} == {"list_files", "plot"}
    named = calls({"type": "function", "function": {"name": "plot"}})
    assert {call["name"] for call in named} == {"plot"}
    for call in named:
        jsonschema.validate(call["arguments"], POINT)
    for free in ("auto", "none"):
        request = parse_request(json.dumps({**body, "tool_choice": free}).encode())
        assert request_grammar(request) is None


def test_arguments_must_be_an_object() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "string"}}}
    body = {
        "messages": [{"role": "user", "content": "x"}],
        "tools": [tool],
        "tool_choice": "required",
    }
    with pytest.raises(BadRequest, match="must be an object"):
        request_grammar(parse_request(json.dumps(body).encode()))
    assert call_grammar([])


def test_the_answers_form() -> None:
    def grammar(form: Any) -> str | None:
        body = {"messages": [{"role": "user", "content": "x"}], "response_format": form}
        return request_grammar(parse_request(json.dumps(body).encode()))

    assert grammar(None) is None
    assert grammar({"type": "text"}) is None
    assert grammar({"type": "json_object"}) == object_grammar()
    assert all(isinstance(value, dict) for value in written(object_grammar()))
    schema = {"type": "json_schema", "json_schema": {"name": "p", "schema": POINT}}
    assert grammar(schema) == schema_grammar(POINT, "schema")


def test_beside_tools_the_answer_has_its_form_or_is_a_call() -> None:
    tool = {"type": "function", "function": {"name": "plot", "parameters": POINT}}
    form = {"type": "json_schema", "json_schema": {"name": "p", "schema": {"const": "answer"}}}
    body = {"messages": [{"role": "user", "content": "x"}], "tools": [tool]}
    request = parse_request(json.dumps({**body, "response_format": form}).encode())
    grammar = request_grammar(request)
    assert grammar is not None
    texts = [Writer(grammar, seed).text() for seed in range(20)]
    assert {text[:11] for text in texts} == {"<tool_call>", '"answer"'}


KEYS = [
    *(
        "type",
        "enum",
        "const",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "properties",
        "required",
        "items",
    ),
    *("additionalProperties", "prefixItems", "minItems", "maxItems", "minLength", "maxLength"),
    *("minimum", "maximum", "exclusiveMinimum", "$defs", "title", "pattern", "nullable"),
]
TYPES = ["object", "array", "string", "integer", "number", "boolean", "null", "#", "#/$defs"]
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-5, 3000)
    | st.floats(allow_nan=False)
    | st.sampled_from(TYPES)
)


@given(
    st.recursive(
        LEAVES,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
        ),
        max_leaves=12,
    )
)
def test_any_schema_gives_a_grammar_or_a_bad_request(schema: Any) -> None:
    if not isinstance(schema, dict):
        schema = {"type": "object", "properties": {"a": schema}}
    try:
        grammar = schema_grammar(schema, "schema")
    except BadRequest:
        return
    json.loads(Writer(grammar, 1).text())
