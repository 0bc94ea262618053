"""A grammar for a tool call that has begun in free text: its arguments follow their schema.

Nothing is constrained until the model has written a call of an offered tool up to its arguments;
from there the schema of that tool holds, until the call is whole. So free text costs nothing, and
whether and how a call is made stays the model's own choice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from server.errors import BadRequest
from server.gbnf import ROOT, literal
from server.reader import BegunCall
from server.schema import SchemaRules
from server.wire import FunctionTool

_HEAD = re.compile(r'"(?:arguments|parameters)"[ \t\r\n]*:[ \t\r\n]*')
_AFTER = "rest"
_CALL = '{"name": "'


@dataclass(frozen=True, slots=True)
class BegunArguments:
    """A grammar for what follows, and how much of the text so far it takes in."""

    grammar: str
    covered: str
    """The end of the reply so far that is already part of the arguments."""


class CallGrammars:
    """The grammars of one request's tools, each made once, when it is first needed."""

    def __init__(self, tools: Sequence[FunctionTool]) -> None:
        """`tools`: those that the reply may call."""
        self._tools = {tool.name: tool for tool in tools}
        self._made: dict[str, str | None] = {}

    def for_call(self, call: BegunCall) -> BegunArguments | None:
        """The grammar for a call whose arguments begin just here; None anywhere else."""
        if call.name is None or call.text.startswith("["):
            return None
        found = _HEAD.search(call.text)
        if found is None:
            return None
        grammar = self._grammar(call.name)
        return None if grammar is None else BegunArguments(grammar, call.text[found.end() :])

    def _grammar(self, name: str) -> str | None:
        if name not in self._made:
            self._made[name] = _arguments_grammar(self._tools, name)
        return self._made[name]


def usual_calls(tools: Sequence[FunctionTool]) -> list[str]:
    """How replies that call one of these tools begin, as most models write it: up to the first
    value that is theirs to choose.
    """
    calls = [_usual_call(tool) for tool in tools]
    return [_CALL, *[f"<tool_call>\n{call}" for call in calls]] if calls else []


def _usual_call(tool: FunctionTool) -> str:
    head = f'{_CALL}{tool.name}", "arguments": {{'
    properties = tool.parameters.get("properties")
    if not isinstance(properties, dict) or not properties:
        return head + "}}\n</tool_call>"
    required = tool.parameters.get("required")
    names = [name for name in properties if isinstance(required, list) and name in required]
    first = names[0] if names else next(iter(properties))
    schema = properties[first]
    quote = '"' if isinstance(schema, dict) and schema.get("type") == "string" else ""
    return f"{head}{json.dumps(first, ensure_ascii=False)}: {quote}"


def _arguments_grammar(tools: Mapping[str, FunctionTool], name: str) -> str | None:
    """Arguments, the call's brace, then anything; None where the schema cannot be promised."""
    tool = tools[name]
    if tool.parameters.get("type", "object") != "object":
        return None
    writer = SchemaRules(tool.parameters, "tools")
    try:
        arguments = writer.object(tool.parameters, "")
    except BadRequest:
        # Only a required call promises its schema; here the model goes on unconstrained.
        return None
    root = f'{ROOT}" "? {arguments} {literal("}")} {_AFTER}'
    anything = f"{_AFTER} ::= [^\\x00]*"
    return "\n".join([root, anything, *writer.lines(), ""])
