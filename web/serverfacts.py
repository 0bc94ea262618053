"""What a model server's answers say, as rows for people.

Only what the server really says is shown. A name that is not known here is
shown as it came.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from web.endpoints import ServerState
from web.faces import Face
from web.text import number, size

FACES = {
    "ready": Face("completed", "Ready", "ok"),
    "loading": Face("running", "Loading", "info"),
    "failed": Face("failed", "Failed", "err"),
    "absent": Face("failed", "Not running", "err"),
    "unknown": Face("in_doubt", "State unknown", "neutral"),
}
HELP = {
    "real": "Start it with: uitweg serve. Or name another server in LLM_BASE_URL and start again.",
    "scripted": "Start it with: uitweg serve --scripted",
    "named": "LLM_BASE_URL names it. Start it, or correct the address and start Uitweg again.",
}
_PERCENT = re.compile(r"(\d{1,3}) ?%")


@dataclass(frozen=True, slots=True)
class Facts:
    """One server as shown: its face, how far it has loaded (percent), its rows, what helps."""

    face: Face
    progress: int | None
    rows: tuple[tuple[str, str], ...]
    help: str


def facts_of(state: ServerState) -> Facts:
    """See the module's docstring."""
    rows: list[tuple[str, str]] = []
    if len(state.models) == 1:
        model = state.models[0]
        rows.append(("Model", model.name))
        rows += _rows(model.extra)
    # What is going on just now is in the metrics of the same server, under clearer names.
    rows += _rows(state.health, skip=("status", "detail", "progress", "live", "waiting"))
    rows += _busy(state.metrics)
    return Facts(
        face=FACES[state.condition],
        progress=_progress(state) if state.condition == "loading" else None,
        rows=tuple(dict(rows).items()),
        help=HELP.get(state.key, "") if state.condition in ("absent", "failed") else "",
    )


def _progress(state: ServerState) -> int | None:
    said = state.health.get("progress")
    if isinstance(said, int | float) and not isinstance(said, bool):
        return max(0, min(100, round(said * 100 if said <= 1 else said)))
    found = _PERCENT.search(state.detail)
    return min(int(found.group(1)), 100) if found else None


def _rows(values: Mapping[str, Any], skip: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """A row for each plain value; an object's values each get one, too."""
    rows: list[tuple[str, str]] = []
    for name, value in values.items():
        if name in skip or value is None:
            continue
        if isinstance(value, Mapping):
            rows += [(f"{_words(name)}: {n.lower()}", v) for n, v in _rows(value)]
        elif isinstance(value, bool):
            rows.append((_words(name), "yes" if value else "no"))
        elif isinstance(value, int | float):
            rows.append((_words(name), _figure(name, value)))
        elif isinstance(value, str):
            rows.append((_words(name), value))
    return rows


_NAMES = {
    "sha256": "SHA-256",
    "context_tokens": "Context, tokens",
    "instead_of": "Stands in for",
    "profile": "Guidance profile",
}


def _words(name: str) -> str:
    if name in _NAMES:
        return _NAMES[name]
    text = name.replace("_", " ").strip()
    return text[:1].upper() + text[1:]


def _figure(name: str, value: float) -> str:
    if "bytes" in name:
        return size(value)
    return number(value) if isinstance(value, int) else f"{value:,.1f}"


def _busy(metrics: Mapping[str, float]) -> list[tuple[str, str]]:
    """Speeds and queue, where the metrics hold what they are made of."""
    rows: list[tuple[str, str]] = []
    for label, tokens, seconds in (
        ("Prefill", "prefill_tokens", "prefill_seconds"),
        ("Decode", "decode_tokens", "decode_seconds"),
    ):
        count, time = _sample(metrics, tokens), _sample(metrics, seconds)
        if count and time:
            rows.append((f"{label} speed", f"{count / time:,.1f} tokens per second"))
    for label, name in (("Requests running", "_live"), ("Requests in the queue", "_queue")):
        value = _sample(metrics, name)
        if value is not None:
            rows.append((label, f"{value:,.0f}"))
    used, room = _sample(metrics, "kv_tokens"), _sample(metrics, "kv_room")
    if used is not None and room:
        rows.append(("Context in use, tokens", f"{used:,.0f} of {room:,.0f}"))
    memory = _sample(metrics, "resident_bytes")
    if memory:
        rows.append(("Memory", size(memory)))
    return rows


def _sample(metrics: Mapping[str, float], part: str) -> float | None:
    """The first plain sample whose name holds `part`."""
    return next((v for n, v in metrics.items() if part in n and "{" not in n), None)
