"""GBNF, llama.cpp's grammar language, as text: literals, sequences and named rules.

The language: https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md
"""

from __future__ import annotations

MOST_REPEATS = 2000
"""llama.cpp's own limit on one repetition."""
ROOT = "root ::= "
CHARACTER = r'[^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})'
"""One character of a JSON string."""
INTEGER = '"-"? ("0" | [1-9] [0-9]{0,14})'
NUMBER = INTEGER + ' ("." [0-9]{1,15})? ([eE] [-+]? [0-9]{1,2})?'
"""Bounded, so that a small model does not write digits for ever."""


class Rules:
    """Named rules, one for each body."""

    def __init__(self, prefix: str = "") -> None:
        """`prefix`: of every name, so that the rules of several may stand in one grammar."""
        self.letters = 0
        """Characters of all bodies."""
        self._prefix = prefix
        self._bodies: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._reserved = 0

    def add(self, body: str) -> str:
        """The name of the rule with this body."""
        known = self._names.get(body)
        if known is None:
            self.letters += len(body)
            known = f"{self._prefix}r{len(self._names)}"
            self._bodies[known] = body
            self._names[body] = known
        return known

    def reserve(self) -> str:
        """A name for a rule whose body comes later, by `define`: it may name itself."""
        self._reserved += 1
        return f"{self._prefix}ref{self._reserved - 1}"

    def define(self, name: str, body: str) -> None:
        """Give a reserved rule its body."""
        self._bodies[name] = body

    def lines(self) -> list[str]:
        """The rules, one a line."""
        return [f"{name} ::= {body}" for name, body in self._bodies.items()]


def sequence(begin: str, item: str, low: int, high: int, end: str) -> str:
    """`low` to `high` items with commas between them, inside brackets."""
    if high == 0:
        return f'"{begin}{end}"'
    more = f'{item} (", " {item}){{{max(low - 1, 0)},{high - 1}}}'
    return f'"{begin}" {more} "{end}"' if low > 0 else f'"{begin}" ({more})? "{end}"'


def literal(text: str) -> str:
    """`text` as a GBNF literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    escaped = escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f'"{escaped}"'
