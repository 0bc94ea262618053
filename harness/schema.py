"""A tool's arguments: their JSON schema and their validation, from a function's types.

The schema is what the model sees, so it is kept small: no titles, no nulls for
optional arguments, keys in one order. A refusal names the argument and the
expected shape, in words a small model can act on.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

MAX_ARGUMENT_CHARS = 256 * 1024
"""Longer argument texts are refused unread."""

_KEY_ORDER = ("type", "description", "enum", "properties", "items", "required")


class InvalidArguments(Exception):
    """The arguments do not fit the tool, which did not run. The text is for the model."""


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=False)


def arguments_model(function: Callable[..., Any], leave_out: type) -> type[BaseModel]:
    """A pydantic model of the function's parameters.

    A parameter of the type `leave_out` is not the model's business. Raises
    `TypeError` for a parameter without a type, and for `*args` and `**kwargs`.
    """
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if hints.get(name) is leave_out:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"{function.__name__}: *{name} cannot be described to a model")
        if name not in hints:
            raise TypeError(f"{function.__name__}: the parameter {name} needs a type")
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[name] = (_described(hints[name]), default)
    return create_model(function.__name__, __base__=_Arguments, **fields)


def _described(hint: Any) -> Any:
    """`Annotated[str, "words"]`: the words are the argument's description."""
    words = [m for m in getattr(hint, "__metadata__", ()) if isinstance(m, str)]
    return Annotated[hint, Field(description=words[0])] if words else hint


def parameters_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of `model`, as small as it can be said."""
    schema = model.model_json_schema()
    schema.pop("additionalProperties", None)
    tidy: dict[str, Any] = _tidy(schema)
    tidy.setdefault("required", [])
    return tidy


def _tidy(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    schema = _without_null(schema)
    kept = {key: value for key, value in schema.items() if key != "title"}
    ordered = [key for key in _KEY_ORDER if key in kept]
    ordered += [key for key in kept if key not in _KEY_ORDER]
    return {
        key: {name: _tidy(item) for name, item in kept[key].items()}
        if key in ("properties", "$defs")
        else _tidy(kept[key])
        for key in ordered
    }


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """`X | None = None` is an argument that may be left out: say only X."""
    options = schema.get("anyOf")
    if not options or {"type": "null"} not in options:
        return schema
    rest = [option for option in options if option != {"type": "null"}]
    others = {k: v for k, v in schema.items() if k != "anyOf" and (k, v) != ("default", None)}
    return {**rest[0], **others} if len(rest) == 1 else {"anyOf": rest, **others}


def read_arguments(model: type[BaseModel], text: str | None, schema: dict[str, Any]) -> BaseModel:
    """The arguments that the model wrote as JSON text, validated.

    Raises `InvalidArguments`. Nothing is guessed: text that is no JSON object
    is never taken for an empty one.
    """
    name = model.__name__
    if not isinstance(text, str) or not text.strip():
        raise _refusal(name, "there were no arguments", schema)
    if len(text) > MAX_ARGUMENT_CHARS:
        raise _refusal(
            name,
            f"they have {len(text):,} characters; at most {MAX_ARGUMENT_CHARS:,} are read",
            schema,
        )
    try:
        value = json.loads(text, object_pairs_hook=_no_twins, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        detail = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise _refusal(name, f"they are not valid JSON ({detail})", schema) from None
    if not isinstance(value, dict):
        raise _refusal(name, f"they are {_kind(value)}, not a JSON object", schema)
    return check_arguments(model, value, schema)


def check_arguments(
    model: type[BaseModel], value: dict[str, Any], schema: dict[str, Any]
) -> BaseModel:
    """Arguments that are an object already, validated. Raises `InvalidArguments`."""
    try:
        checked = model.model_validate(value)
        checked.model_dump_json()
    except ValidationError as error:
        problems = "; ".join(_problem(item) for item in error.errors(include_url=False)[:5])
        raise _refusal(model.__name__, problems, schema) from None
    except ValueError:  # a lone surrogate deep inside a value of any type
        raise _refusal(model.__name__, "they hold text that is not Unicode", schema) from None
    return checked


def _problem(item: Any) -> str:
    where = ".".join(str(part) for part in item["loc"]) or "arguments"
    if item["type"] == "missing":
        return f"`{where}` is missing"
    if item["type"] == "extra_forbidden":
        return f"`{where}` is not an argument of this tool"
    message = item["msg"][0].lower() + item["msg"][1:]
    return f"`{where}` is {_kind(item['input'])}: {message}"


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    names = {str: "a string", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)


def _refusal(tool_name: str, problem: str, schema: dict[str, Any]) -> InvalidArguments:
    return InvalidArguments(
        f"{tool_name} did not run, its arguments are wrong: {problem}. "
        f"Call {tool_name} again with arguments of this shape: {shape(schema)}"
    )


def shape(schema: dict[str, Any]) -> str:
    """The expected arguments in one line, such as `{"path": <string>}`."""
    required = schema.get("required", ())
    parts = []
    for name, item in schema.get("properties", {}).items():
        kind = " or ".join(f'"{v}"' for v in item["enum"]) if "enum" in item else item.get("type")
        optional = "" if name in required else ", optional"
        parts.append(f'"{name}": <{kind or "value"}{optional}>')
    return "{" + ", ".join(parts) + "}"


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        twin = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"`{twin}` is given twice")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
