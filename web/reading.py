"""What the views read from the store. No view knows how it is kept."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from harness.errors import StoreDamaged
from harness.events import ApprovalRequired, Event, RunStopped
from harness.state import ApprovalNeeded, InDoubt
from harness.store import RunSummary, Store
from web.faces import Face, face_of
from web.runpage import Child, RunPage, child_of
from web.steps import Ask, ask_of, fold

PAGE = 50
"""Runs on one page of the list."""
_CARDS = 5
"""Cards on the list of runs; the rest is counted."""
_MOST_WAITING = 1000
_BATCH = 1000


@dataclass(frozen=True, slots=True)
class Filters:
    """What the list of runs is narrowed to. Empty means everything."""

    q: str = ""
    ending: str = ""
    model: str = ""

    def __bool__(self) -> bool:
        return bool(self.q or self.ending or self.model)


@dataclass(frozen=True, slots=True)
class Row:
    """One run in the list."""

    run_id: str
    task: str
    face: Face
    line: str
    """Its answer, or why it ended."""
    model: str
    turns: int
    cost_usd: Decimal | None
    created_at: str


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A run that waits for a person, with what is asked."""

    run_id: str
    task: str
    call: Ask


class Reader:
    """Reads runs for the views. Safe to use from any thread."""

    def __init__(self, store: Store, about_to_go_on: Callable[[str], bool]) -> None:
        self.store = store
        self._about_to_go_on = about_to_go_on

    def events(self, run_id: str, after: int = 0) -> Iterator[Event]:
        """All events above `after`, in order."""
        while batch := self.store.events(run_id, after=after, limit=_BATCH):
            yield from batch
            after += len(batch)
            if len(batch) < _BATCH:
                return

    def lines(self, run_id: str, after: int = 0) -> Iterator[str]:
        """The trace as JSON lines, without their ends."""
        while batch := self.store.event_lines(run_id, after=after, limit=_BATCH):
            yield from batch
            after += len(batch)
            if len(batch) < _BATCH:
                return

    def carried(self, run_id: str) -> bool:
        """Whether somebody carries the run, or this process is just about to."""
        return self._about_to_go_on(run_id) or self.store.carrier(run_id) is not None

    def run_page(self, run_id: str) -> RunPage:
        """Everything that a run's page shows. Raises `NoSuchRun`."""
        state = self.store.load(run_id)
        steps = fold(self.events(run_id))
        return RunPage.of(state, steps, self.carried(run_id), self.children(run_id))

    def children(self, run_id: str) -> list[Child]:
        """The subagents' runs, in the order in which they began."""
        return [child_of(run) for run in reversed(self.store.runs(parent=run_id))]

    def rows(self, filters: Filters, before: int | None = None) -> tuple[list[Row], int | None]:
        """One page of the list, and what `before` must be for the next, if there is one."""
        found = self.store.runs(
            status=filters.ending or None,
            model=filters.model or None,
            text=filters.q or None,
            limit=PAGE + 1,
            before=before,
        )
        shown = [self._row(run) for run in found[:PAGE]]
        return shown, found[PAGE - 1].number if len(found) > PAGE else None

    def _row(self, run: RunSummary) -> Row:
        carried = run.status != "running" or self.carried(run.run_id)
        return Row(
            run_id=run.run_id,
            task=run.task,
            face=face_of(run.status, run.interruption_kind, carried),
            line=run.answer or run.reason,
            model=run.model,
            turns=run.turns,
            cost_usd=run.cost_usd,
            created_at=run.created_at,
        )

    def waiting(self) -> list[RunSummary]:
        """The runs that wait for a person, newest first."""
        return self.store.runs(waiting=True, limit=_MOST_WAITING)

    def asks(self, waiting: list[RunSummary]) -> list[WaitingRun]:
        """What those runs ask, for as many as are shown at once."""
        found: list[WaitingRun] = []
        for run in waiting[:_CARDS]:
            ask = None
            with contextlib.suppress(StoreDamaged):  # its own page says so; the others are shown
                ask = self._ask(run)
            if ask is not None and not self.carried(run.run_id):
                found.append(WaitingRun(run.run_id, run.task, ask))
        return found

    def _ask(self, run: RunSummary) -> Ask | None:
        """The ask out of the last few events: it is asked right before the run stops."""
        effect = ""
        waiting: ApprovalNeeded | InDoubt | None = None
        for event in self.store.events(run.run_id, after=max(run.last_seq - 20, 0)):
            if isinstance(event, ApprovalRequired):
                effect = event.effect
            elif isinstance(event, RunStopped):
                stopped = event.interruption
                waiting = stopped if isinstance(stopped, ApprovalNeeded | InDoubt) else None
            elif event.type == "approval_decided":
                waiting = None
        return ask_of(waiting, effect) if waiting else None
