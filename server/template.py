"""A model's own chat template: messages and tools in, the prompt's text out.

The template comes out of the GGUF file, so it is foreign code: it runs in Jinja's sandbox,
with its loops, its output and its strings bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from server.errors import BadRequest
from server.json_text import compact_json, parse_json
from server.wire import ChatRequest, Message

MOST_OUTPUT = 64 * 1024 * 1024
MOST_LOOP_STEPS = 200_000
MOST_TOGETHER = 32 * 1024 * 1024
"""Characters or items that one operation may put together."""
MOST_ITEMS = 1_000_000
"""Values inside one value that is written out."""
_WIDE_FORMAT = re.compile(r"%[^A-Za-z%]*(\d{5}|\*)")
_PROBE_NAME = "tool_probe_7f3a"
_PROBE_TOOL = {
    "type": "function",
    "function": {
        "name": _PROBE_NAME,
        "description": "probe",
        "parameters": {"type": "object", "properties": {}},
    },
}

TOOLS_INTRODUCTION = """\
You may call one or more of these functions to help with the user's request:
{tools}

To call a function, write a JSON object with its name and its arguments, and nothing else:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>
Its result comes back to you between <tool_response> and </tool_response>."""


class ChatTemplate:
    """One compiled template; safe to use from several threads."""

    def __init__(
        self,
        source: str,
        *,
        bos: str = "",
        eos: str = "",
        guard: Callable[[str], str] | None = None,
    ) -> None:
        """Compile the template and find out what it can do.

        Args:
            source: the template as it stands in the GGUF file.
            bos: the model's begin token as text.
            eos: its end token as text.
            guard: is given every text of a message or a tool before anything is put around it,
                and takes out of it what would count as a control token in the prompt.

        Raises:
            ValueError: if the source is no template that Jinja can compile.
        """
        self._guard = guard
        try:
            self._template = _environment().from_string(source)
        except TemplateError as error:
            raise ValueError(f"the chat template does not compile: {error}") from None
        self._fixed = {"bos_token": bos, "eos_token": eos}
        hello = {"role": "user", "content": "hello"}
        self.takes_tools = _PROBE_NAME in self._probe([hello], [_PROBE_TOOL])
        system = {"role": "system", "content": _PROBE_NAME}
        self.takes_system = _PROBE_NAME in self._probe([system, hello], None)

    def render(self, request: ChatRequest) -> str:
        """The whole prompt, ready for the assistant's words to follow.

        Raises:
            BadRequest: if the template refuses these messages, with its reason.
        """
        offered = [] if request.tool_choice.mode == "none" else _tool_objects(request)
        tools = self._guarded(offered)
        messages = [self._message(message) for message in request.messages]
        if tools and not self.takes_tools:
            messages, tools = _with_tools_described(messages, tools), []
        if not self.takes_system:
            messages = _system_in_first_user_message(messages)
        try:
            return self._run(messages, tools or None)
        except BadRequest:
            raise
        except Exception as error:  # the template is foreign code: it can raise anything
            raise BadRequest(
                f"The model's chat template cannot render these messages: {error}.",
                param="messages",
                code="template_error",
            ) from error

    def _guarded(self, value: Any) -> Any:
        """The value with every text in it guarded."""
        if self._guard is None:
            return value
        if isinstance(value, str):
            return self._guard(value)
        if isinstance(value, list):
            return [self._guarded(item) for item in value]
        if isinstance(value, dict):
            return {self._guarded(key): self._guarded(item) for key, item in value.items()}
        return value

    def _message(self, message: Message) -> dict[str, Any]:
        """A message as templates expect it: arguments as objects, never a null content."""
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": self._guarded(call.function.name),
                    "arguments": self._guarded(_argument_object(call.function.arguments)),
                },
            }
            for call in message.tool_calls
        ]
        content = self._guarded(message.content or "")
        if not self.takes_tools and (calls or message.role == "tool"):
            return _plain_message(message.role, content, calls)
        plain: dict[str, Any] = {"role": message.role, "content": content}
        if calls:
            plain["tool_calls"] = calls
        for key in ("tool_call_id", "name"):
            if (value := getattr(message, key)) is not None:
                plain[key] = self._guarded(value)
        return plain

    def _probe(self, messages: Sequence[Any], tools: Sequence[Any] | None) -> str:
        """What a small conversation renders to; nothing, if the template refuses it."""
        try:
            return self._run(messages, tools)
        except Exception:  # noqa: BLE001 - a refusal of any kind is the answer looked for
            return ""

    def _run(self, messages: Sequence[Any], tools: Sequence[Any] | None) -> str:
        pieces, length = [], 0
        values = {
            "messages": messages,
            "tools": tools,
            "add_generation_prompt": True,
            "range": _counted_range(),
            **self._fixed,
        }
        for piece in self._template.generate(values):
            pieces.append(piece)
            length += len(piece)
            if length > MOST_OUTPUT:
                raise SecurityError("its output has no end")
        return "".join(pieces)


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox, and nothing that a template makes large out of all proportion."""

    intercepted_binops = frozenset(["*", "**", "%", "+"])

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """The result, unless it would be too large."""
        if operator == "**" or _size_of(operator, left, right) > MOST_TOGETHER:
            raise SecurityError(f"{operator} with such values is not allowed in a template")
        return super().call_binop(context, operator, left, right)


def _size_of(operator: str, left: Any, right: Any) -> int:
    """How long the result will be, where it is text or a list; 0 for numbers."""
    lengths = [len(value) for value in (left, right) if isinstance(value, (str, list, tuple))]
    if operator == "%":
        wide = isinstance(left, str) and _WIDE_FORMAT.search(left)
        return MOST_TOGETHER + 1 if wide else 0
    if operator == "+":
        return sum(lengths)
    times = [abs(value) for value in (left, right) if isinstance(value, int)]
    return lengths[0] * times[0] if lengths and times else 0


def _checked(value: Any) -> Any:
    """What is to be written out: a list that holds itself many times over has no end as text."""
    waiting, seen = [value], 0
    while waiting:
        item = waiting.pop()
        seen += 1
        if seen > MOST_ITEMS:
            raise SecurityError("a value is too large to be written out")
        if isinstance(item, (list, tuple)):
            waiting.extend(item)
        elif isinstance(item, Mapping):
            waiting.extend(item.values())
    return value


def _environment() -> _Environment:
    """The environment that chat templates are written for: Hugging Face's settings."""
    environment = _Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols"],
        finalize=_checked,
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


def _to_json(value: Any, indent: int | None = None, **_: Any) -> str:
    """JSON as `json.dumps` writes it: not escaped for HTML, as Jinja's own filter does."""
    return json.dumps(_checked(value), ensure_ascii=False, indent=indent)


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(str(message))


def _strftime_now(form: str) -> str:
    return datetime.now().astimezone().strftime(form)


def _counted_range() -> Callable[..., range]:
    """`range` with a budget over the whole rendering, so that nested loops end too."""
    left = MOST_LOOP_STEPS

    def counted(*bounds: int) -> range:
        nonlocal left
        steps = range(*bounds)
        left -= len(steps)
        if left < 0:
            raise SecurityError("its loops have no end")
        return steps

    return counted


def _argument_object(text: str) -> Any:
    """The arguments as an object; text that is none stays text, for the model to see."""
    try:
        return parse_json(text)
    except ValueError:
        return text


def _tool_objects(request: ChatRequest) -> list[dict[str, Any]]:
    objects = []
    for tool in request.tools:
        function: dict[str, Any] = {"name": tool.function.name}
        if tool.function.description is not None:
            function["description"] = tool.function.description
        function["parameters"] = tool.function.parameters
        objects.append({"type": "function", "function": function})
    return objects


def _plain_message(role: str, content: str, calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """For a template without tools: calls and results in the words of TOOLS_INTRODUCTION."""
    if role == "tool":
        return {"role": "user", "content": f"<tool_response>\n{content}\n</tool_response>"}
    written = [
        f"<tool_call>\n{json.dumps(call['function'], ensure_ascii=False)}\n</tool_call>"
        for call in calls
    ]
    return {"role": "assistant", "content": "\n".join(filter(None, [content, *written]))}


def _with_tools_described(
    messages: list[dict[str, Any]], tools: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    lines = "\n".join(compact_json(tool["function"]) for tool in tools)
    text = TOOLS_INTRODUCTION.format(tools=lines)
    if messages[0]["role"] == "system":
        first = {**messages[0], "content": f"{messages[0]['content']}\n\n{text}"}
        return [first, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def _system_in_first_user_message(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For a template that knows no system role: its text before the user's first words."""
    texts = [message["content"] for message in messages if message["role"] == "system"]
    others = [message for message in messages if message["role"] != "system"]
    if not texts:
        return messages
    if not others or others[0]["role"] != "user":
        return [{"role": "user", "content": "\n\n".join(texts)}, *others]
    first = {**others[0], "content": "\n\n".join([*texts, others[0]["content"]])}
    return [first, *others[1:]]
