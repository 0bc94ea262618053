"""What an open page is told: the pieces of HTML that changed since it last heard."""

from __future__ import annotations

import time
from typing import Any

from flask import render_template

from web.hub import Hub
from web.reading import Filters, Reader
from web.runpage import RunPage
from web.steps import Steps

Update = dict[str, Any]

PARTS = ("state", "actions", "ask", "figures", "plots", "children")
CALM_SECONDS = 0.4
"""The list, and the count of those that wait, are looked at no more often."""


class _Changed:
    """Remembers what was sent, and lets through only what is different."""

    def __init__(self) -> None:
        self._sent: dict[str, str] = {}

    def of(self, parts: dict[str, str]) -> dict[str, str]:
        fresh = {name: html for name, html in parts.items() if self._sent.get(name) != html}
        self._sent.update(fresh)
        return fresh


class _Calm:
    """Lets something happen at most every `CALM_SECONDS`; `late` says that it was put off."""

    def __init__(self) -> None:
        self.late = False
        self._last = 0.0

    def over(self) -> bool:
        now = time.monotonic()
        self.late = now - self._last < CALM_SECONDS
        if not self.late:
            self._last = now
        return not self.late


class _Waiting:
    """The mark that says how many runs wait for a person."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._sent: str | None = None
        self._calm = _Calm()

    @property
    def late(self) -> bool:
        return self._calm.late

    def update(self) -> Update:
        if not self._calm.over():
            return {}
        html = render_template("mark.html", waiting_count=len(self._reader.waiting()))
        if html == self._sent:
            return {}
        self._sent = html
        return {"waiting": html}


class RunFeed:
    """News of one run for one page. Not for several threads."""

    def __init__(self, reader: Reader, run_id: str, after: int) -> None:
        """`after`: the sequence number up to which the page is complete."""
        self._reader = reader
        self._run_id = run_id
        self._changed = _Changed()
        self._waiting = _Waiting(reader)
        state = reader.store.load(run_id)
        self._steps = Steps()
        self._page = RunPage.of(state, self._steps, False, [])
        self._behind = [
            key
            for event in reader.events(run_id)
            for key in self._steps.apply(event)
            if event.seq > after
        ]
        self._first = True
        self._carried: bool | None = None
        self._words = (0, 0)
        self._again = False

    @property
    def late(self) -> bool:
        """Whether the mark of those that wait must be looked at again."""
        return self._again or self._waiting.late

    def update(self) -> Update:
        """Items, parts and title that changed; empty when nothing did."""
        keys = self._behind
        self._behind = []
        for event in self._reader.events(self._run_id, self._steps.seq):
            keys += self._steps.apply(event)
        carried = self._reader.carried(self._run_id)
        if not keys and not self._first and carried == self._carried:
            self._again = False
            return self._waiting.update()
        # What this run does is told first, then what it means for the mark.
        self._again = True
        self._first, self._carried = False, carried
        page = self._page
        page.carried = carried
        page.children = self._reader.children(self._run_id)
        update: Update = {"seq": self._steps.seq, "title": page.title}
        items = self._items(keys)
        if items:
            update["items"] = items
        parts = self._changed.of(self._parts())
        if parts:
            update["parts"] = parts
        if page.now is None:
            update["quiet"] = True
        return update

    def _items(self, keys: list[str]) -> list[dict[str, Any]]:
        wanted = set(keys)
        return [
            {
                "key": key,
                "turn": item.kind == "turn",
                "html": render_template("item.html", item=item),
            }
            for key, item in self._steps.items.items()
            if key in wanted
        ]

    def _parts(self) -> dict[str, str]:
        return {name: render_template("part.html", part=name, page=self._page) for name in PARTS}

    def words(self, hub: Hub) -> Update | None:
        """What the model has written of the turn that is not stored yet, from where we were."""
        words = hub.words(self._run_id)
        if words is None:
            return None
        turn, sent = self._words
        start = sent if turn == words.turn and sent <= len(words.text) else 0
        if start == len(words.text):
            return None
        self._words = (words.turn, len(words.text))
        return {"turn": words.turn, "from": start, "text": words.text[start:]}


class ListFeed:
    """News of the list of runs for one page."""

    def __init__(self, reader: Reader, filters: Filters) -> None:
        self._reader = reader
        self._filters = filters
        self._changed = _Changed()
        self._calm = _Calm()

    @property
    def late(self) -> bool:
        """Whether the list must be looked at again."""
        return self._calm.late

    def update(self) -> Update:
        """The rows and the cards, where they changed."""
        if not self._calm.over():
            return {}
        waiting = self._reader.waiting()
        rows, _ = self._reader.rows(self._filters)
        count = len(waiting)
        parts = self._changed.of(
            {
                "runs": render_template(
                    "list_part.html", part="runs", rows=rows, filtered=bool(self._filters)
                ),
                "asks": render_template(
                    "list_part.html", part="asks", asks=self._reader.asks(waiting)
                ),
            }
        )
        if not parts:
            return {}
        return {
            "parts": parts,
            "title": f"({count}) Runs · Uitweg" if count else "Runs · Uitweg",
            "waiting": render_template("mark.html", waiting_count=count),
        }

    def words(self, _hub: Hub) -> Update | None:
        """The list shows no words."""
        return None
