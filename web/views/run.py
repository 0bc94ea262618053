"""One run: watching and looking back are the same page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from flask import Blueprint, Response, abort, request

from harness.events import Event, Guidance, Retry, RunStopped, ToolResult, Turn
from web.reply import count_in, render_page
from web.services import services
from web.text import visible

views = Blueprint("run", __name__)

MOST_SEQ = 10**15
TRACE_PAGE = 500
"""Lines of the trace on one page."""


@views.get("/runs/<run_id>")
def show(run_id: str) -> Any:
    """The page of a run."""
    return render_page("run.html", page=services().reader.run_page(run_id))


@views.get("/runs/<run_id>/transcript")
def transcript(run_id: str) -> Any:
    """The messages exactly as the model saw them."""
    return render_page("transcript.html", run=services().store.load(run_id))


@views.get("/runs/<run_id>/trace")
def trace(run_id: str) -> Any:
    """The trace's lines, a page at a time."""
    after = count_in(request.args.get("after", "0")) or 0
    lines = services().store.event_lines(run_id, after=after, limit=TRACE_PAGE)
    shown = [(number, _type_of(line), line) for number, line in enumerate(lines, after + 1)]
    return render_page(
        "trace.html",
        run_id=run_id,
        lines=shown,
        next=after + len(lines) if len(lines) == TRACE_PAGE else None,
    )


def _type_of(line: str) -> str:
    """The event's type; a line of a damaged store is shown all the same."""
    try:
        return str(json.loads(line)["type"])
    except (ValueError, KeyError, TypeError):
        return "damaged"


@views.get("/runs/<run_id>/trace.jsonl")
def trace_file(run_id: str) -> Response:
    """The whole trace as a file, one JSON object a line."""
    reader = services().reader
    first = services().store.event_lines(run_id, limit=1)  # an unknown run is refused here

    def lines() -> Iterator[str]:
        if first:
            for line in reader.lines(run_id):
                yield line + "\n"

    return Response(
        lines(),
        mimetype="application/jsonl",
        headers={"Content-Disposition": f'attachment; filename="{_plain(run_id)}.jsonl"'},
    )


@views.get("/runs/<run_id>/events/<int:seq>")
def event_text(run_id: str, seq: int) -> Any:
    """The whole text of one event: for the page a piece of HTML, else a page of its own."""
    store = services().store
    found = store.events(run_id, after=seq - 1, limit=1) if 0 < seq < MOST_SEQ else []
    if not found or found[0].seq != seq:
        abort(404, "There is no such event in this run.")
    text = text_of(found[0])
    if request.args.get("piece"):
        return Response(str(visible(text)), mimetype="text/plain")
    return render_page(
        "event.html",
        run_id=run_id,
        event=found[0],
        text=text,
    )


def text_of(event: Event) -> str:
    """What an event has to say, whole."""
    match event:
        case Turn() | ToolResult():
            return event.content
        case RunStopped():
            return event.answer or event.reason
        case Guidance():
            return event.detail
        case Retry():
            return event.error
        case _:
            return event.model_dump_json(by_alias=True, indent=2)


def _plain(name: str) -> str:
    return "".join(c for c in name if c.isascii() and (c.isalnum() or c in "-_")) or "run"
