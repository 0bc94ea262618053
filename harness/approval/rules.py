"""Standing rules, out of a TOML file.

    [[rule]]
    action = "allow"              # allow, ask or deny
    tool = "delete_file"          # a tool's name, or a pattern
    args = { path = "tmp/*.log" } # each argument named must match; others may be anything
    reason = "…"                  # for deny: what the model is told

In a pattern `*` stands for any characters but `/`, `**` for any at all, `?` for
one character. Of the rules that match, the most specific wins: first by tool
(a name before a pattern), then by how many arguments it names exactly, then by
how many it names at all. Between equals, `deny` beats `ask` and `ask` beats `allow`.
"""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field, ValidationError

from harness.approval.protocol import Action, Ruling
from harness.errors import SettingsError
from harness.state import Value

if TYPE_CHECKING:
    from harness.tool import Tool

STRICTNESS: tuple[Action, ...] = ("allow", "ask", "deny")


class Rule(Value):
    """One rule. See the module's docstring."""

    action: Action
    tool: str = Field(min_length=1)
    args: dict[str, str] = Field(default_factory=dict)
    reason: str | None = None

    def matches(self, tool_name: str, args: Mapping[str, Any]) -> bool:
        """Whether the rule speaks of this call.

        An `allow` needs the argument as it is and in its plain spelling to
        match; for `ask` and `deny` one of the two is enough. So `./secret` does
        not slip past a rule on `secret`.
        """
        if not _fits(self.tool, tool_name):
            return False
        both = all if self.action == "allow" else any
        return all(
            name in args and both(_fits(pattern, text) for text in _spellings(args[name]))
            for name, pattern in self.args.items()
        )

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """Higher wins."""
        exact = sum(not _is_pattern(pattern) for pattern in self.args.values())
        return (
            0 if _is_pattern(self.tool) else 1,
            exact,
            len(self.args),
            STRICTNESS.index(self.action),
        )

    def __str__(self) -> str:
        args = ", ".join(f"{name} = {pattern}" for name, pattern in self.args.items())
        return f"{self.action} {self.tool}" + (f" where {args}" if args else "")


class Shown(NamedTuple):
    """A rule beside what it can match, for people to check."""

    rule: Rule
    tools: tuple[str, ...]
    """The tools that it speaks of."""
    problem: str | None
    """Why it can never match, if so."""


class Rules:
    """A list of rules as a `Policy`. The order in the file does not count."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.rules = tuple(rules)

    def rule_on(self, tool_name: str, args: Mapping[str, Any]) -> Ruling | None:
        """What the most specific matching rule says."""
        matching = [rule for rule in self.rules if rule.matches(tool_name, args)]
        if not matching:
            return None
        best = max(matching, key=lambda rule: rule.rank)
        return Ruling(best.action, str(best), best.reason)

    def shown(self, tools: Iterable[Tool]) -> list[Shown]:
        """Each rule with the tools that it matches, or why it never can."""
        offered = list(tools)
        return [_shown(rule, offered) for rule in self.rules]


NO_RULES = Rules()


def read_rules(path: Path) -> Rules:
    """The rules in a file; none where there is no file. Raises `SettingsError`."""
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return NO_RULES
    except (OSError, ValueError) as error:
        raise SettingsError(f"The rules in {path} cannot be read: {error}") from None
    unknown = data.keys() - {"rule"}
    if unknown:
        raise SettingsError(f"{path} has `{min(unknown)}`; only [[rule]] belongs there.")
    try:
        return Rules(Rule.model_validate(item) for item in data.get("rule", []))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "a rule"
        raise SettingsError(f"{path}: {where}: {first['msg']}") from None


def _shown(rule: Rule, offered: list[Tool]) -> Shown:
    named = [tool for tool in offered if _fits(rule.tool, tool.name)]
    able = [tool.name for tool in named if rule.args.keys() <= tool.parameters["properties"].keys()]
    if able:
        return Shown(rule, tuple(able), None)
    if not named:
        return Shown(rule, (), f"no tool is called {rule.tool}")
    known = ", ".join(named[0].parameters["properties"]) or "none"
    return Shown(rule, (), f"{named[0].name} has no such argument; it has: {known}")


def _is_pattern(text: str) -> bool:
    return "*" in text or "?" in text


def _fits(pattern: str, text: str) -> bool:
    if not _is_pattern(pattern):
        return pattern == text
    parts = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*|\*|\?)", pattern)
    regex = "".join(parts.get(piece, re.escape(piece)) for piece in pieces)
    return re.fullmatch(regex, text, re.DOTALL) is not None


def _spellings(value: Any) -> set[str]:
    """An argument as text: as it is, and as a path without detours."""
    if not isinstance(value, str):
        return {json.dumps(value, ensure_ascii=False, sort_keys=True)}
    return {value, posixpath.normpath(value)} if value else {value}
