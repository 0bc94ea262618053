"""OpenAI's chat completion wire: what a request may hold.

`parse.py` makes one of a body's bytes; the replies are in `shapes.py`.
Tolerant where OpenAI is: unknown fields are ignored. What cannot be honoured is refused with
400 and the field's name, never ignored in silence.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pydantic_core
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from server.json_text import compact_json

EMPTY_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}
MOST_STOPS = 16
MOST_TOKENS = 2**31 - 1
_MODE_NAMES = ("auto", "none", "required")


class _Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, protected_namespaces=())


def _joined(content: Any) -> Any:
    """Text parts joined to one string; everything else is left for the validator to judge."""
    if not isinstance(content, list):
        return content
    texts = []
    for number, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        text = part.get("text") if isinstance(part, dict) else None
        if kind not in ("text", "input_text", "output_text") or not isinstance(text, str):
            raise ValueError(f"part {number} is not a text part; this server takes text only")
        texts.append(text)
    return "".join(texts)


def _argument_text(arguments: Any) -> Any:
    """Some clients send the object itself; the wire's form is its JSON text."""
    return compact_json(arguments) if isinstance(arguments, dict) else arguments


Text = Annotated[str, BeforeValidator(_joined)]


class FunctionCall(_Wire):
    """A called function; `arguments` is JSON text as the model wrote it, perhaps broken."""

    name: str
    arguments: Annotated[str, BeforeValidator(_argument_text)] = "{}"


class ToolCall(_Wire):
    """A call in an assistant message."""

    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


def _field_error(field: str, reason: str) -> pydantic_core.PydanticCustomError:
    """A model-wide error that `server.parse` can still put to one field."""
    return pydantic_core.PydanticCustomError(f"field:{field}", "{reason}", {"reason": reason})


class Message(_Wire):
    """One message; `developer` has become `system`, and a list of text parts one string."""

    role: Literal["system", "user", "assistant", "tool"]
    content: Text | None = None
    tool_calls: list[ToolCall] = Field(default_factory=list)
    tool_call_id: str | None = None
    name: str | None = None
    function_call: None = None

    @field_validator("role", mode="before")
    @classmethod
    def _developer_is_system(cls, role: Any) -> Any:
        return "system" if role == "developer" else role

    @field_validator("tool_calls", mode="before")
    @classmethod
    def _null_is_none(cls, calls: Any) -> Any:
        return [] if calls is None else calls

    @model_validator(mode="after")
    def _whole(self) -> Message:
        if self.role != "assistant" and self.content is None:
            raise _field_error("content", f"a {self.role} message needs text")
        if self.role == "tool" and self.tool_call_id is None:
            raise _field_error("tool_call_id", "a tool message says which call it answers")
        if self.role != "assistant" and self.tool_calls:
            raise _field_error("tool_calls", "only an assistant message has tool calls")
        return self


class FunctionTool(_Wire):
    """A function that the model may call; `parameters` is a JSON schema."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.\-]{1,128}$")]
    description: str | None = None
    parameters: dict[str, Any] = Field(default_factory=lambda: dict(EMPTY_PARAMETERS))

    @field_validator("parameters", mode="before")
    @classmethod
    def _null_is_empty(cls, parameters: Any) -> Any:
        return dict(EMPTY_PARAMETERS) if parameters is None else parameters


class Tool(_Wire):
    """OpenAI's wrapping of a function tool, the only kind there is here."""

    type: Literal["function"]
    function: FunctionTool


class ToolChoice(_Wire):
    """`tool_choice` in one form: a mode, and with `required` perhaps the one function."""

    mode: Literal["auto", "none", "required"] = "auto"
    name: str | None = None


class JsonSchema(_Wire):
    """The schema that an answer must follow."""

    name: str = "answer"
    schema_: dict[str, Any] = Field(alias="schema")


class ResponseFormat(_Wire):
    """What form the answer must have."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None

    @model_validator(mode="after")
    def _schema_given(self) -> ResponseFormat:
        if self.type == "json_schema" and self.json_schema is None:
            raise _field_error("json_schema", "the type json_schema needs the schema")
        return self

    @property
    def schema_object(self) -> dict[str, Any] | None:
        """The JSON schema, if the type is `json_schema`."""
        if self.type != "json_schema" or self.json_schema is None:
            return None
        return self.json_schema.schema_


class StreamOptions(_Wire):
    """Only the one option that changes a stream."""

    include_usage: bool | None = None


class ChatRequest(_Wire):
    """A checked request. `raw` is the parsed body as it came, in its key order."""

    raw: dict[str, Any] = Field(repr=False)
    model: str | None = None
    messages: Annotated[list[Message], Field(min_length=1)]
    tools: list[Tool] = Field(default_factory=list)
    tool_choice: ToolChoice = Field(default_factory=ToolChoice)
    parallel_tool_calls: bool | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    stop: list[Annotated[str, Field(min_length=1)]] = Field(
        default_factory=list, max_length=MOST_STOPS
    )
    max_tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS)] | None = None
    response_format: ResponseFormat | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    # What this server cannot do is taken only in the form that asks for nothing.
    n: Literal[1] | None = None
    logprobs: Literal[False] | None = None
    top_logprobs: Literal[0] | None = None
    logit_bias: Annotated[dict[str, float], Field(max_length=0)] | None = None
    presence_penalty: Annotated[float, Field(ge=0, le=0)] | None = None
    frequency_penalty: Annotated[float, Field(ge=0, le=0)] | None = None
    functions: Annotated[list[Any], Field(max_length=0)] | None = None
    function_call: Literal["auto", "none"] | None = None
    audio: None = None
    modalities: list[Literal["text"]] | None = None

    @field_validator("tools", "stop", "tool_choice", mode="before")
    @classmethod
    def _null_is_default(cls, value: Any, info: ValidationInfo) -> Any:
        if value is None:
            return {} if info.field_name == "tool_choice" else []
        return value

    @field_validator("stop", mode="before")
    @classmethod
    def _one_stop(cls, stop: Any) -> Any:
        return [stop] if isinstance(stop, str) else stop

    @field_validator("tool_choice", mode="before")
    @classmethod
    def _choice_forms(cls, choice: Any) -> Any:
        if isinstance(choice, str):
            if choice not in _MODE_NAMES:
                raise ValueError("expected auto, none, required, or an object naming a function")
            return {"mode": choice}
        if isinstance(choice, dict) and choice:
            function = choice.get("function")
            name = function.get("name") if isinstance(function, dict) else None
            if choice.get("type") != "function" or not isinstance(name, str):
                raise ValueError('expected {"type": "function", "function": {"name": ...}}')
            return {"mode": "required", "name": name}
        return choice

    @model_validator(mode="after")
    def _fits_together(self) -> ChatRequest:
        names = self.tool_names
        if len(set(names)) != len(names):
            raise _field_error("tools", "two tools have the same name")
        choice = self.tool_choice
        if choice.mode == "required" and not names:
            raise _field_error("tool_choice", "a call is required, but no tools are given")
        if choice.name is not None and choice.name not in names:
            raise _field_error("tool_choice", f"no tool is called {choice.name[:100]!r}")
        return self

    @property
    def tool_names(self) -> list[str]:
        """Names of the offered tools, in order."""
        return [tool.function.name for tool in self.tools]

    @property
    def callable_tools(self) -> list[FunctionTool]:
        """The tools that this reply may call: none with `none`, one where one is named."""
        if self.tool_choice.mode == "none":
            return []
        only = self.tool_choice.name
        return [tool.function for tool in self.tools if only in (None, tool.function.name)]

    @property
    def token_limit(self) -> int | None:
        """Most tokens of the reply, or None; `max_completion_tokens` wins over `max_tokens`."""
        return self.max_completion_tokens or self.max_tokens

    @property
    def include_usage(self) -> bool:
        """Whether a stream ends with a chunk that carries the usage."""
        return bool(self.stream_options and self.stream_options.include_usage)

    @property
    def raw_messages(self) -> list[dict[str, Any]]:
        """The messages as they came."""
        messages: list[dict[str, Any]] = self.raw["messages"]
        return messages

    @property
    def raw_tools(self) -> list[dict[str, Any]]:
        """The tools as they came; empty when none did."""
        tools: list[dict[str, Any]] | None = self.raw.get("tools")
        return tools or []
