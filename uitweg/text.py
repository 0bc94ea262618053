"""Text and figures as a terminal may show them."""

from __future__ import annotations

import json
import unicodedata
from decimal import Decimal
from typing import Any

MAX_LINES = 12
MAX_CHARS = 1500


def safe(text: str) -> str:
    """`text` with control, bidi and invisible characters made visible.

    Model and tool output must not move the cursor, change the title, or hide a part of itself.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if _harmless(c) else _visible(c) for c in text)


def _harmless(character: str) -> bool:
    return character in "\n\t" or unicodedata.category(character) not in (
        "Cc",
        "Cf",
        "Cs",
        "Zl",
        "Zp",
    )


def _visible(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def excerpt(text: str) -> str:
    """The beginning of a long text, with how much is missing."""
    lines = text[:MAX_CHARS].rstrip("\n").split("\n")
    shown = "\n".join(lines[:MAX_LINES])
    missing = len(text.rstrip("\n")) - len(shown)
    return f"{shown}\n… {missing:,} more characters" if missing > 0 else shown


def one_line(text: str, most: int) -> str:
    """A text on one line of at most `most` characters; what is cut off is marked."""
    line = safe(" ".join(text.split()))
    return line if len(line) <= most else line[: most - 1] + "…"


def call(name: str, arguments: Any) -> str:
    """A tool call in one line: `read_file {"path":"notes.txt"}`."""
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    return f"{name} {arguments}"


def money(amount: Decimal | None) -> str:
    """US dollars to a millionth: costs of one turn are that small."""
    return "cost unknown" if amount is None else f"${amount:.6f}"


def duration(ms: float) -> str:
    """Milliseconds or seconds, whichever reads better."""
    if ms < 1:
        return "<1 ms"
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


def count(number: int, noun: str) -> str:
    """`1 turn`, `2 turns`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
