"""What a whole reply must follow: a required call, or an answer after a JSON schema."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from server.errors import BadRequest
from server.gbnf import ROOT, literal
from server.schema import FREE_DEPTH, SchemaRules
from server.wire import ChatRequest, FunctionTool

CALL_BEGIN = "<tool_call>\n"
CALL_END = "\n</tool_call>"


def request_grammar(request: ChatRequest) -> str | None:
    """The grammar that the whole reply must follow, or None where it is free.

    A required call wins over `response_format`; beside tools that may be called, the reply is
    either a call or an answer of that form. Exactly one call is allowed: where the grammar
    allowed another, small models would go on calling until the token limit.

    Raises:
        BadRequest: for a schema with a part that cannot be promised; names field and part.
    """
    tools = request.callable_tools
    if request.tool_choice.mode == "required":
        return call_grammar(tools)
    form = request.response_format
    if form is None or form.type == "text":
        return None
    if form.type == "json_object":
        answer = object_grammar()
    else:
        answer = schema_grammar(form.schema_object or {}, "response_format.json_schema.schema")
    if not tools:
        return answer
    root, rules = answer.split("\n", 1)
    call, call_rules = call_grammar(tools).split("\n", 1)
    either = f"root ::= ({call.removeprefix(ROOT)}) | ({root.removeprefix(ROOT)})"
    return "\n".join([either, rules + call_rules])


def schema_grammar(schema: dict[str, Any], field: str) -> str:
    """A reply that is one JSON value after `schema`; `field` is its name in the request."""
    writer = SchemaRules(schema, field)
    return writer.text(writer.value(schema, ""))


def object_grammar() -> str:
    """A reply that is some JSON object."""
    writer = SchemaRules({}, "response_format")
    return writer.text(writer.free_object(FREE_DEPTH))


def call_grammar(tools: Sequence[FunctionTool]) -> str:
    """A reply that is one tagged call of one of `tools`, its arguments after their schema."""
    rules: list[str] = []
    roots = []
    for number, tool in enumerate(tools):
        field = f"tools[{tool.name}].function.parameters"
        if tool.parameters.get("type", "object") != "object":
            raise BadRequest(f"{field}: arguments must be an object.", param="tools")
        writer = SchemaRules(tool.parameters, field, prefix=f"t{number}-")
        arguments = writer.object(tool.parameters, "")
        head = literal(f'{{"name": {json.dumps(tool.name)}, "arguments": ')
        roots.append(f'{head} {arguments} "}}"')
        rules.extend(writer.lines())
    root = f"{ROOT}{literal(CALL_BEGIN)} ({' | '.join(roots)}) {literal(CALL_END)}"
    return "\n".join([root, *rules, ""])
