"""Latency and faults: which rule holds for which reply.

Rules come from a file (`uitweg serve --scripted --settings FILE`):

    [[rule]]
    scenario = "plan"     # left out: every scenario
    turn = 2              # counted from 1; left out: every turn
    first_token_ms = 200
    token_ms = 20

    [[rule]]
    turn = 1
    fault = "429"
    times = 2             # tries that fail before one succeeds; left out: all of them
    retry_after = 1       # seconds; retry_date = 1 says the same as a date

or from the model's name, which needs no other server: `plan?fault=429&turn=1&times=2`; the
rules of one name are divided by `|`. Later rules win, field by field.

The provider has no memory. It knows which try a request is from the client's header
`X-Attempt` (0 for the first), or from the one that the openai client sends.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from server.errors import BadRequest
from server.scripted.faults import FAULTS, is_fault


class Rule(BaseModel):
    """What is unusual about some replies. Times are in milliseconds or, where said, seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scenario: str | None = None
    turn: Annotated[int, Field(ge=1)] | None = None
    times: Annotated[int, Field(ge=1)] | None = None
    first_token_ms: Annotated[float, Field(ge=0, le=600_000)] | None = None
    token_ms: Annotated[float, Field(ge=0, le=60_000)] | None = None
    fault: str | None = None
    retry_after: Annotated[int, Field(ge=0)] | None = None
    retry_date: Annotated[int, Field(ge=0)] | None = None

    @field_validator("fault")
    @classmethod
    def _known(cls, name: str | None) -> str | None:
        if name is not None and not is_fault(name):
            raise ValueError(
                f"unknown fault; there are: {', '.join(FAULTS)}, and any of 400 to 599"
            )
        return name

    def holds(self, scenario: str, turn: int, attempt: int) -> bool:
        """Whether the rule is about this reply."""
        return (
            self.scenario in (None, scenario)
            and self.turn in (None, turn)
            and (self.times is None or attempt < self.times)
        )


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    rule: list[Rule] = Field(default_factory=list)


class SettingsError(Exception):
    """A file for the scripted provider cannot be used; the text says where and why."""

    exit_code = 2
    """For the command line: it was called with the wrong file."""


def read_rules(path: Path) -> tuple[Rule, ...]:
    """The rules of a settings file.

    Raises:
        SettingsError: when there is no such file, or something in it is wrong.
    """
    try:
        return tuple(_File.model_validate(tomllib.loads(path.read_text("utf-8"))).rule)
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from None
    except ValidationError as error:
        raise SettingsError(f"{path}: {_first_problem(error)}.") from None
    except ValueError as error:  # not UTF-8, or no TOML
        raise SettingsError(f"{path} is not valid TOML: {error}.") from None


def split_model(model: str) -> tuple[str, tuple[Rule, ...]]:
    """The scenario's name and the rules out of a model's name.

    Raises:
        BadRequest: naming `model`, with what is wrong in it.
    """
    name, mark, rest = model.partition("?")
    if not mark:
        return name, ()
    return name, tuple(_rule_of(part) for part in rest.split("|") if part)


def _rule_of(query: str) -> Rule:
    try:
        return Rule.model_validate(dict(parse_qsl(query, strict_parsing=True)))
    except ValidationError as error:
        problem = _first_problem(error)
    except ValueError:
        problem = "expected name=value, divided by &"
    raise BadRequest(
        f"Invalid settings {query[:200]!r} in the model's name: {problem}.",
        param="model",
        code="invalid_value",
    )


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg'].removeprefix('Value error, ')}"


def rule_for(rules: Iterable[Rule], scenario: str, turn: int, attempt: int) -> Rule:
    """All rules that hold for this reply, as one: later ones win, field by field."""
    fields: dict[str, object] = {}
    for rule in rules:
        if rule.holds(scenario, turn, attempt):
            fields.update(rule.model_dump(exclude_none=True))
    return Rule.model_validate(fields)
