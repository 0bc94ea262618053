"""Template filters: the functions of `web.text` and the words of `web.faces` by name."""

from __future__ import annotations

from typing import Any

from flask import Flask

from harness.events import RunStopped
from web import faces, text
from web.faces import Face
from web.steps import CallItem

HEAD_CHARACTERS = 1200
HEAD_LINES = 12
LIMITS = {
    "max_turns": "Turns at most",
    "max_cost_usd": "Cost at most",
    "max_total_tokens": "Tokens at most",
    "max_seconds": "Seconds at most",
    "max_repeats": "Repeats at most",
}


def head(value: str) -> str:
    """The beginning of a long text; a short one whole."""
    lines = value.split("\n", HEAD_LINES)
    cut = "\n".join(lines[:HEAD_LINES]) if len(lines) > HEAD_LINES else value
    return cut if len(cut) <= HEAD_CHARACTERS else cut[:HEAD_CHARACTERS]


def shorten(value: str, limit: int) -> str:
    """At most `limit` characters on one line; what is cut off is marked."""
    line = " ".join(value[: limit * 4].split())
    return line if len(line) <= limit and len(value) <= limit * 4 else line[: limit - 1] + "…"


def call_face(item: CallItem) -> Face:
    """How a tool call's state looks."""
    if item.result is not None:
        return faces.OUTCOMES[item.result.outcome]
    if item.state == "asking" and item.decision is not None:
        return Face("person", faces.DECISIONS.get(item.decision.action, "decided"), "info")
    return faces.STATES[item.state]


def end_face(event: RunStopped) -> Face:
    """How an ending looks."""
    kind = event.interruption.kind if event.interruption else None
    return faces.face_of(event.status, kind)


def _whole(value: Any) -> Any:
    """Last of all: halves of surrogate pairs cannot be sent."""
    return text.whole(value) if type(value) is str else value


def install(app: Flask) -> None:
    """Make everything known to the app's templates."""
    environment = app.jinja_env
    environment.trim_blocks = True
    environment.lstrip_blocks = True
    environment.finalize = _whole
    environment.filters.update(
        visible=text.visible,
        hidden_count=text.hidden_count,
        json=text.as_json,
        line=text.as_line,
        number=text.number,
        plural=text.plural,
        money=text.money,
        duration=text.duration,
        length_of=text.length,
        when=text.when,
        size=text.size,
        plain=text.plain,
        head=head,
        shorten=shorten,
        call_face=call_face,
        end_face=end_face,
        who=lambda name: "A person" if name == "person" else name,
        ending_word=lambda status: faces.ENDING_WORDS[status].lower(),
        decision_word=lambda action: faces.DECISIONS.get(action, action),
        limit_word=lambda name: LIMITS.get(name, name),
    )
