"""JSON values with something wrong in them."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

NASTY: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, 10**300, 0.5, -0.0, 1e308),
    *("", "a", "\x00", "\ud800", "é" * 500, "x" * 20_000, "__class__", "{{ 1 }}", "\u2028"),
    *('{"a": ', "[" * 500, "null", "NaN", "<|im_end|>", "<tool_call>", "../../etc/passwd"),
    *([], {}, [[]], [None], [{}], {"": None}, {"path": []}, {"a": {"b": {}}}),
    *("read_file", "pay", "tool_calls", "stop", "length", float("inf"), float("nan")),
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container inside `value`, with a key in it."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


def changed(rng: random.Random, value: Any) -> Any:
    """A copy with one to four things replaced, gone, taken from elsewhere, or buried."""
    whole = [copy.deepcopy(value)]
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        container, key = rng.choice(list(places(whole)))
        what = rng.choice(("replace",) * 6 + ("drop", "copy", "bury"))
        if what == "drop" and container is not whole:
            del container[key]
        elif what == "copy":
            other, other_key = rng.choice(list(places(whole)))
            container[key] = copy.deepcopy(other[other_key])
        elif what == "bury":
            for _ in range(rng.choice((3, 50, 199))):
                container[key] = rng.choice(([container[key]], {"a": container[key]}))
            break  # deeper than that, Python itself cannot copy it
        else:
            container[key] = copy.deepcopy(rng.choice(NASTY))
    return whole[0]


def as_bytes(rng: random.Random, value: Any) -> bytes:
    """The value as JSON, sometimes with wrong bytes or cut short."""
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    if rng.random() < 0.01:
        text = "[" * 5000 + text
    data = bytearray(text, "utf-8", "surrogatepass")
    if data and rng.random() < 0.2:
        for _ in range(rng.randint(1, 5)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    if data and rng.random() < 0.05:
        del data[rng.randrange(len(data)) :]
    return bytes(data)
