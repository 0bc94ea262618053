"""Server-sent events: a run, or the list of runs, as it changes.

The id of an event is the sequence number up to which the page is complete, so
a connection that comes back (`Last-Event-ID`, or `after`) goes on exactly
there. Every message carries whole items under their keys; what arrives twice
replaces itself. The words of a turn that is being written have no id.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from flask import Blueprint, Response, current_app, jsonify, request, stream_with_context

from harness.errors import HarnessError
from web.feed import ListFeed, RunFeed, Update
from web.hub import Hub, TooManyWatchers, Watcher
from web.reply import count_in, said
from web.services import services
from web.views.runs import filters_asked

views = Blueprint("live", __name__)

LOOK_SECONDS = 0.5
"""How often a quiet connection looks whether its browser is still there."""
AGAIN_SECONDS = 2.0
"""How often it looks at the store unasked: a process that dies wakes nobody."""
ALIVE_SECONDS = 10.0
"""How often a quiet connection says so."""
RETRY_MS = 800


class Feed(Protocol):
    """What one open page is told."""

    @property
    def late(self) -> bool:
        """Whether something was put off for a moment, so that it must be asked again."""
        ...

    def update(self) -> Update:
        """What changed since the last time."""
        ...

    def words(self, hub: Hub) -> dict[str, Any] | None:
        """What the model wrote since the last time."""
        ...


@views.get("/runs/<run_id>/live")
def run(run_id: str) -> Any:
    """One run as it happens."""
    return _stream(run_id, RunFeed(services().reader, run_id, _after()))


@views.get("/runs/<run_id>/news")
def run_news(run_id: str) -> Any:
    """The same once, as JSON."""
    return jsonify(RunFeed(services().reader, run_id, _after()).update())


@views.get("/live")
def runs() -> Any:
    """The list of runs as it changes."""
    return _stream(None, ListFeed(services().reader, filters_asked()))


@views.get("/news")
def news() -> Any:
    """The same once, as JSON."""
    return jsonify(ListFeed(services().reader, filters_asked()).update())


def _after() -> int:
    """Up to where the page is complete. What is no number means from the start."""
    return count_in(request.headers.get("Last-Event-ID") or request.args.get("after", "0")) or 0


def _stream(run_id: str | None, feed: Feed) -> Any:
    if request.method == "HEAD":
        return Response(mimetype="text/event-stream")
    hub = services().hub
    try:
        watcher = hub.join(run_id)
    except TooManyWatchers:
        return said("Too many pages are open. This one is refreshed every few seconds.", 503)
    gone = request.environ.get("waitress.client_disconnected", lambda: False)
    response = Response(
        stream_with_context(_events(hub, watcher, feed, gone)),
        mimetype="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )
    response.call_on_close(lambda: hub.leave(watcher))
    return response


def _events(hub: Hub, watcher: Watcher, feed: Feed, gone: Callable[[], bool]) -> Iterator[str]:
    yield f"retry: {RETRY_MS}\n\n"
    woken, looked, told = True, 0.0, time.monotonic()
    while not watcher.closed and not gone():
        now = time.monotonic()
        if woken or feed.late or now - looked > AGAIN_SECONDS:
            looked = now
            try:
                for message in _messages(hub, feed):
                    told = now
                    yield message
            except HarnessError:
                # The page comes back in a moment and is told then what is wrong.
                return
        if now - told > ALIVE_SECONDS:
            told = now
            yield ": here\n\n"
        woken = watcher.wait(LOOK_SECONDS)


def _messages(hub: Hub, feed: Feed) -> Iterator[str]:
    update = feed.update()
    if update:
        number = f"id: {update['seq']}\n" if "seq" in update else ""
        yield f"{number}data: {current_app.json.dumps(update)}\n\n"
    words = feed.words(hub)
    if words:
        yield f"event: words\ndata: {json.dumps(words)}\n\n"
