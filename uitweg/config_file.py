"""Reads one `uitweg.toml`, and says in words what is wrong with it."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

FILE_NAME = "uitweg.toml"

Form = TypeVar("Form", bound=BaseModel)

_EXPECTED = {
    "string_type": "text in quotes",
    "int_type": "a whole number",
    "float_type": "a number",
    "decimal_type": "a number",
    "decimal_parsing": "a number",
    "bool_type": "true or false",
    "tuple_type": 'a list, such as ["one", "two"]',
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "path_type": "text in quotes",
}
"""What is expected, by pydantic's name for what is wrong."""


class ConfigError(Exception):
    """A setting cannot be. The text says which, where it stands, and what to write instead."""

    exit_code = 2


def read_file(path: Path, form: type[Form]) -> Form | None:
    """The settings in a file; `None` where there is no such file. Raises `ConfigError`."""
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        hint = " Text stands in quotes." if "Invalid value" in str(error) else ""
        raise ConfigError(f"{path} cannot be read: {error}.{hint}") from None
    try:
        # As JSON, because only there a strict reading takes a list for a tuple.
        return form.model_validate_json(json.dumps(data, default=str), strict=True)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        told = "\n".join(f"  {_problem(item, form)}" for item in problems)
        raise ConfigError(f"{path}:\n{told}\nSee docs/settings.md.") from None


def _problem(item: Any, form: type[BaseModel]) -> str:
    where = [str(part) for part in item["loc"] if part != "[key]"]
    key = ".".join(where)
    if item["type"] == "extra_forbidden":
        return _unknown(where, form)
    expected = _EXPECTED.get(item["type"])
    if expected:
        return f"{key} is {_shown(item['input'])}; it must be {expected}."
    message = item["msg"].removeprefix("Value error, ")
    if isinstance(item["input"], Mapping) or not where:
        return f"{key}: {message}."
    return f"{key} is {_shown(item['input'])}: {message[0].lower()}{message[1:]}."


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _unknown(where: list[str], form: type[BaseModel]) -> str:
    """There is no such key; perhaps another one was meant, here or one table further."""
    *tables, name = where
    here = _fields_at(form, tables)
    near = difflib.get_close_matches(name, here, n=1)
    everywhere = {key.rpartition(".")[2]: key for key in _all_keys(form)}
    far = difflib.get_close_matches(name, everywhere, n=1)
    meant = [".".join([*tables, near[0]])] if near else [everywhere[key] for key in far]
    hint = f"Did you mean {meant[0]}?" if meant else f"There are: {', '.join(here)}."
    return f"there is no key {'.'.join(where)}. {hint}"


def _fields_at(form: type[BaseModel], tables: list[str]) -> list[str]:
    for table in tables:
        field = form.model_fields.get(table)
        inner = _model_in(field.annotation) if field else None
        # What is not a field is a name that the person chose, as in [mcp.NAME].
        form = inner or form
    return [name for name, field in form.model_fields.items() if not field.exclude]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that a field holds, itself or as the values of a table."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for arg in get_args(annotation) if (found := _model_in(arg))), None)


def _all_keys(form: type[BaseModel], before: str = "") -> list[str]:
    keys: list[str] = []
    for name, field in form.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            keys += _all_keys(kind, f"{before}{name}.")
        else:
            keys.append(before + name)
    return keys
