"""Text of models, tools and files as safe text, and figures as people read them."""

from __future__ import annotations

import json
import re
import unicodedata
from decimal import Decimal
from typing import Any

from markupsafe import Markup, escape

_LONE = re.compile("[\ud800-\udfff]")

# Always shown by name: C0 and C1 (not tab and newline), and the marks that
# reorder or hide text. ZWJ, ZWNJ and variation selectors belong to many
# scripts and to emoji, so only `strict` shows those too.
_ALWAYS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff"
    "\ud800-\udfff"
)
_STRICT = (
    _ALWAYS + "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065"
    "\u206a-\u206f\u3164\ufe00-\ufe0f\uffa0\ufff0-\uffff\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff\U0001bca0-\U0001bca3"
)
_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_PLAIN = re.compile(f"[{_ALWAYS}\u200b\u2060]")
_ALL = re.compile(f"[{_STRICT}{_SPACES}]")


def whole(text: str) -> str:
    """`text` with every half of a surrogate pair replaced, so that it can be sent."""
    return _LONE.sub("\ufffd", text)


def name_of(character: str) -> str:
    """`U+202E RIGHT-TO-LEFT OVERRIDE`; the name of a control is its usual one."""
    code = ord(character)
    fallback = "ESCAPE" if code == 0x1B else "lone surrogate" if 0xD800 <= code < 0xE000 else ""
    return f"U+{code:04X} {unicodedata.name(character, fallback or 'control character')}"


def visible(text: object, strict: bool = False) -> Markup:
    """`text` as HTML in which no character can hide or reorder the others.

    `strict` is for what a person approves: every character that shows nothing
    or looks like a plain space is named as well.
    """
    pattern = _ALL if strict else _PLAIN
    out: list[str] = []
    end = 0
    source = str(text)
    for match in pattern.finditer(source):
        out.append(str(escape(source[end : match.start()])))
        name = name_of(match.group())
        out.append(f'<span class="ctl" title="{escape(name)}">{name.split(" ")[0]}</span>')
        end = match.end()
    out.append(str(escape(source[end:])))
    return Markup("".join(out))  # noqa: S704 - each piece is escaped above


def plain(text: str) -> str:
    """The same where no markup can stand, such as a title: each becomes U+FFFD."""
    return _PLAIN.sub("\ufffd", text)


def hidden_count(text: str) -> int:
    """How many characters `visible(text, strict=True)` names."""
    return sum(1 for _ in _ALL.finditer(text))


def as_json(value: Any) -> str:
    """JSON for people: indented, letters of all scripts left as they are."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def as_line(value: Any) -> str:
    """JSON on one line, keys in their order."""
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))


def number(value: int) -> str:
    """`12,345`."""
    return f"{value:,}"


def plural(count: int, noun: str) -> str:
    """`1 turn`, `2 turns`."""
    return f"{count:,} {noun if count == 1 else noun + 's'}"


def money(value: Decimal | float | None) -> str:
    """Dollars; `unknown` is not nothing."""
    if value is None:
        return "unknown"
    amount = Decimal(str(value))
    if amount == 0:
        return "$0"
    text = f"{amount:.6f}".rstrip("0")
    whole_part, _, fraction = text.partition(".")
    if amount < Decimal("1e-6"):
        return "<$0.000001"
    return f"${int(whole_part):,}.{fraction.ljust(2, '0')}"


def duration(ms: float | None) -> str:
    """`less than 1 ms`, `35 ms`, `4.2 s`, `2 min 5 s`, `3 h 12 min`."""
    if ms is None:
        return "unknown"
    if ms < 0.95:
        return "less than 1 ms"
    if ms < 999.5:
        return f"{ms:.0f} ms"
    seconds = ms / 1000
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def size(count: float) -> str:
    """Bytes: `512 B`, `1.5 kB`, `398 MB` (powers of 1,000)."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"


def length(text: str) -> str:
    """How long a text is: `36 characters`, with bytes where they differ."""
    count = len(text)
    encoded = len(text.encode("utf-8", "surrogatepass"))
    shown = plural(count, "character")
    return shown if encoded == count else f"{shown}, {encoded:,} bytes"


def when(time: str) -> str:
    """`2026-12-01 03:15:07` out of an ISO 8601 time (UTC)."""
    return time[:19].replace("T", " ")
