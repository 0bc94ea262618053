"""Follows JSON character by character, and tells whether it may still become a tool call."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NoReturn

from server.json_text import compact_json

MOST_LEVELS = 100
CALL_KEYS = frozenset(["name", "arguments", "parameters", "id", "type", "function"])
_SPACE = " \t\r\n"
_LITERAL_START = frozenset("-0123456789tfn")
_LITERAL = frozenset("-+.0123456789eEtrufalsn")


class Expect(Enum):
    """What may come next."""

    VALUE = auto()
    VALUE_OR_END = auto()
    KEY = auto()
    KEY_OR_END = auto()
    COLON = auto()
    COMMA_OR_END = auto()
    STRING = auto()
    LITERAL = auto()
    NOTHING = auto()


class CallScanner:
    """One JSON value that begins with a brace or a bracket, as it arrives.

    `valid`: it is JSON so far. `done`: its last bracket has closed. `plausible`: it may still
    be a call of one of `names`, or a list of such calls.
    """

    def __init__(self, names: Collection[str]) -> None:
        """`names`: the offered tools."""
        self.valid = True
        self.plausible = True
        self.done = False
        self.name: str | None = None
        self._names = names
        self._stack: list[str] = []
        self._expect = Expect.VALUE
        self._escaped = False
        self._is_key = False
        self._string = ""
        self._key = ""
        self._base = 1

    @property
    def closable(self) -> bool:
        """Only the call's own brace (and its list's bracket) is missing."""
        return self._expect is Expect.COMMA_OR_END and len(self._stack) == self._base

    @property
    def missing(self) -> str:
        """The closing brackets that would end the value here."""
        return "".join("}" if bracket == "{" else "]" for bracket in reversed(self._stack))

    def feed(self, char: str) -> None:
        """Take one more character; after `done` or once not `valid`, none may come."""
        if self._expect is Expect.STRING:
            self._in_string(char)
        elif self._expect is Expect.LITERAL and char in _LITERAL:
            pass
        elif char not in _SPACE:
            if self._expect is Expect.LITERAL:
                self._expect = Expect.COMMA_OR_END
            self._structure(char)
        elif self._expect is Expect.LITERAL:
            self._expect = Expect.COMMA_OR_END

    def _structure(self, char: str) -> None:
        expect = self._expect
        if char == '"' and expect in (Expect.KEY, Expect.KEY_OR_END):
            self._begin_string(is_key=True)
        elif char == ":" and expect is Expect.COLON:
            self._expect = Expect.VALUE
        elif char == "," and expect is Expect.COMMA_OR_END:
            self._expect = Expect.KEY if self._stack[-1] == "{" else Expect.VALUE
        elif char in "}]" and self._may_close(char):
            self._close()
        elif expect in (Expect.VALUE, Expect.VALUE_OR_END):
            self._begin_value(char)
        else:
            self.valid = self.plausible = False

    def _may_close(self, char: str) -> bool:
        if not self._stack or (self._stack[-1] == "{") != (char == "}"):
            return False
        ends = (Expect.COMMA_OR_END, Expect.KEY_OR_END, Expect.VALUE_OR_END)
        return self._expect in ends

    def _close(self) -> None:
        self._stack.pop()
        self._expect = Expect.COMMA_OR_END
        if not self._stack:
            self.done = True
            self._expect = Expect.NOTHING

    def _begin_value(self, char: str) -> None:
        if not self._stack:
            self._base = 2 if char == "[" else 1
        elif len(self._stack) < self._base and char != "{":
            self.plausible = False
        if char == '"':
            self._begin_string(is_key=False)
        elif char in "{[" and len(self._stack) < MOST_LEVELS:
            self._stack.append(char)
            self._expect = Expect.KEY_OR_END if char == "{" else Expect.VALUE_OR_END
        elif char in _LITERAL_START:
            self._expect = Expect.LITERAL
        else:
            self.valid = self.plausible = False

    def _begin_string(self, *, is_key: bool) -> None:
        self._expect, self._is_key, self._string = Expect.STRING, is_key, ""

    def _in_string(self, char: str) -> None:
        if self._escaped:
            self._escaped = False
        elif char == "\\":
            self._escaped = True
        elif char == '"':
            self._end_string()
            return
        if len(self._stack) == self._base and (self._is_key or self._key == "name"):
            self._string += char
            fitting = CALL_KEYS if self._is_key else self._names
            if not any(word.startswith(self._string) for word in fitting):
                self.plausible = False

    def _end_string(self) -> None:
        at_call = len(self._stack) == self._base
        if self._is_key:
            self._expect = Expect.COLON
            if at_call:
                self._key = self._string
                self.plausible = self.plausible and self._key in CALL_KEYS
            return
        self._expect = Expect.COMMA_OR_END
        if at_call and self._key == "name":
            self.name = self._string
            self.plausible = self.plausible and self.name in self._names


@dataclass(frozen=True, slots=True)
class Call:
    """A call as read: `arguments` is JSON text, an object unless the model wrote another."""

    name: str
    arguments: str


def calls_of(text: str, names: Collection[str], *, tagged: bool) -> list[Call]:
    """The calls that a JSON text is; none if any part of it has another shape.

    `tagged`: the text stood between call tags, so that arguments may be missing.
    """
    try:
        value = _loads(text)
        items = value if isinstance(value, list) else [value]
        calls = [_call(item, names, tagged=tagged) for item in items]
    except (ValueError, RecursionError):
        return []
    whole = [call for call in calls if call is not None]
    return whole if len(whole) == len(calls) else []


def _call(item: Any, names: Collection[str], *, tagged: bool) -> Call | None:
    if not isinstance(item, dict):
        return None
    inner = item.get("function")
    if isinstance(inner, dict) and item.keys() <= {"function", "type", "id"}:
        item = inner
    name = item.get("name", item.get("function"))
    if not isinstance(name, str) or name not in names or not item.keys() <= CALL_KEYS:
        return None
    given = [key for key in ("arguments", "parameters") if key in item]
    if len(given) != 1:
        return Call(name, "{}") if tagged and not given else None
    arguments = _unwrapped(item[given[0]])
    if given[0] == "parameters" and not isinstance(arguments, dict):
        return None
    return Call(name, _dumps(arguments))


def _unwrapped(arguments: Any) -> Any:
    """Arguments that were written as a string of JSON, as the object they are."""
    if isinstance(arguments, str):
        try:
            value = _loads(arguments)
        except (ValueError, RecursionError):
            return arguments
        return value if isinstance(value, dict) else arguments
    return {} if arguments is None else arguments


def _loads(text: str) -> Any:
    """JSON, with the line breaks inside strings that small models write."""
    return json.loads(text, strict=False, parse_constant=_no_constant)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _dumps(value: Any) -> str:
    text = compact_json(value)
    text.encode()  # half a surrogate pair is a ValueError here, and no call
    if "Infinity" in text or "NaN" in text:
        json.dumps(value, allow_nan=False)
    return text
