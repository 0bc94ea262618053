"""JSON as text: written compactly, read strictly."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import pydantic_core

_HUGE_EXPONENT = re.compile(rb"\d[eE]\+?0*\d{3}")


def compact_json(value: Any) -> str:
    """JSON without spaces, keys in the order given, non-ASCII left as it is."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def parse_json(text: str | bytes) -> Any:
    """Strict JSON: no NaN, no infinity, no half surrogates, at most 200 levels deep.

    Raises:
        ValueError: with what is wrong and where.
    """
    value = pydantic_core.from_json(text, allow_inf_nan=False)
    data = text if isinstance(text, bytes) else text.encode()
    if _HUGE_EXPONENT.search(data) and any(map(math.isinf, _floats(value))):
        raise ValueError("a number is too large")
    return value


def _floats(value: Any) -> Iterator[float]:
    """Every float inside a parsed JSON value."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, float):
            yield item
