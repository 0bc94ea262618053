"""A run's trace folded into what a page shows: an ordered list of items.

`Steps.apply` takes one event and returns the keys of the items that it made or
changed, so that a page which is being watched replaces just those. Applying
the same events always gives the same items under the same keys: a page that
reconnects can be sent an item twice and shows it once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from harness import events as ev
from harness.state import ApprovalNeeded, InDoubt, Interruption, Status

CallState = Literal["owed", "asking", "running", "doubted", "settled"]


@dataclass(slots=True)
class Item:
    """One entry of the trace as shown. `kind` names its template."""

    key: str
    kind: str
    seq: int
    time: str


@dataclass(slots=True)
class StartItem(Item):
    event: ev.RunStarted


@dataclass(slots=True)
class TurnItem(Item):
    event: ev.Turn


@dataclass(slots=True)
class CallItem(Item):
    """One tool call, from its first mention to its result."""

    call_id: str
    turn: int
    state: CallState = "owed"
    tool_name: str = ""
    args: dict[str, Any] | None = None
    effect: str = ""
    digest: str = ""
    progress: ev.ToolProgress | None = None
    decision: ev.ApprovalDecided | None = None
    result: ev.ToolResult | None = None
    started: str = ""


@dataclass(slots=True)
class NoteItem(Item):
    event: ev.Retry | ev.Guidance | ev.RunResumed


@dataclass(slots=True)
class EndItem(Item):
    event: ev.RunStopped
    latest: bool = True


@dataclass(frozen=True, slots=True)
class Ask:
    """A call that waits for a person, as it must be shown before the buttons."""

    kind: str
    call_id: str
    tool_name: str
    args: dict[str, Any]
    digest: str
    effect: str


def ask_of(waiting: ApprovalNeeded | InDoubt, effect: str) -> Ask:
    """The ask of an interruption; `effect` is what the tool says it would do."""
    return Ask(
        waiting.kind, waiting.call_id, waiting.tool_name, waiting.args, waiting.digest, effect
    )


@dataclass(slots=True)
class Now:
    """What is going on: in words, since when (UTC, ISO 8601)."""

    text: str
    since: str


@dataclass(slots=True)
class Totals:
    turns: int = 0
    tool_runs: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: Decimal | None = Decimal(0)
    model_ms: float = 0.0
    tool_ms: float = 0.0
    approvals: int = 0

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@dataclass(slots=True)
class Steps:
    """See the module's docstring."""

    items: dict[str, Item] = field(default_factory=dict)
    turns: list[ev.Turn] = field(default_factory=list)
    totals: Totals = field(default_factory=Totals)
    status: Status = "running"
    reason: str = ""
    interruption: Interruption | None = None
    answer: str = ""
    stopped: ev.RunStopped | None = None
    raised: dict[str, Any] = field(default_factory=dict)
    """Limits that were raised by resumes."""
    seq: int = 0
    last_time: str = ""
    _calls: dict[str, str] = field(default_factory=dict)
    _waiting: str = ""

    def apply(self, event: ev.Event) -> list[str]:
        """Take the next event; returns the keys of the items to show anew."""
        if event.seq <= self.seq:
            return []
        self.seq = event.seq
        self.last_time = event.time
        handler = getattr(self, f"_on_{event.type}")
        keys: list[str] = handler(event, f"s{event.seq}")
        return keys

    @property
    def ask(self) -> Ask | None:
        """What a person must decide now; `None` also once it has been decided."""
        if self.status != "interrupted":
            return None
        if not isinstance(self.interruption, ApprovalNeeded | InDoubt):
            return None
        item = self.items.get(self._calls.get(self.interruption.call_id, ""))
        if not isinstance(item, CallItem):
            return ask_of(self.interruption, "")
        return None if item.decision is not None else ask_of(self.interruption, item.effect)

    @property
    def calls(self) -> list[CallItem]:
        return [item for item in self.items.values() if isinstance(item, CallItem)]

    @property
    def now(self) -> Now | None:
        """What the run is doing, or `None` when it is doing nothing."""
        if self.status != "running":
            return None
        running = [item for item in self.calls if item.state == "running"]
        if running:
            names = ", ".join(item.tool_name for item in running)
            return Now(f"Running {names}", running[0].started)
        if self._waiting:
            return Now(self._waiting, self.last_time)
        return Now(f"Waiting for the model · turn {self.totals.turns + 1}", self.last_time)

    def _add(self, item: Item) -> list[str]:
        self.items[item.key] = item
        return [item.key]

    def _on_run_started(self, event: ev.RunStarted, key: str) -> list[str]:
        return self._add(StartItem(key, "start", event.seq, event.time, event))

    def _on_turn(self, event: ev.Turn, key: str) -> list[str]:
        self._waiting = ""
        self.turns.append(event)
        totals = self.totals
        totals.turns = max(totals.turns, event.turn)
        totals.prompt_tokens += event.prompt_tokens
        totals.cached_tokens += event.cached_tokens
        totals.completion_tokens += event.completion_tokens
        totals.cost_usd = event.run_cost_usd
        totals.model_ms += event.ms
        keys = self._add(TurnItem(key, "turn", event.seq, event.time, event))
        for index, call_id in enumerate(event.tool_calls):
            call = f"{key}-{index}"
            self._calls[call_id] = call
            keys += self._add(CallItem(call, "call", event.seq, event.time, call_id, event.turn))
        return keys

    def _call(self, event: Any, key: str) -> CallItem:
        """The item of the event's call; one is made where no turn has named it."""
        found = self.items.get(self._calls.get(event.call_id, ""))
        if not isinstance(found, CallItem):
            found = CallItem(key, "call", event.seq, event.time, event.call_id, self.totals.turns)
            self._calls[event.call_id] = key
            self._add(found)
        found.tool_name = event.tool_name
        return found

    def _on_tool_start(self, event: ev.ToolStart, key: str) -> list[str]:
        item = self._call(event, key)
        item.state, item.args, item.started, item.progress = "running", event.args, event.time, None
        self.totals.tool_runs += 1
        return [item.key]

    def _on_tool_progress(self, event: ev.ToolProgress, key: str) -> list[str]:
        item = self._call(event, key)
        item.progress = event
        return [item.key]

    def _on_tool_result(self, event: ev.ToolResult, key: str) -> list[str]:
        item = self._call(event, key)
        item.state, item.result = "settled", event
        self.totals.tool_ms += event.ms
        return [item.key]

    def _on_approval_required(self, event: ev.ApprovalRequired, key: str) -> list[str]:
        item = self._call(event, key)
        item.state, item.args, item.decision = "asking", event.args, None
        item.effect, item.digest = event.effect, event.digest
        return [item.key]

    def _on_approval_decided(self, event: ev.ApprovalDecided, key: str) -> list[str]:
        item = self._call(event, key)
        item.decision = event
        self.totals.approvals += 1
        return [item.key]

    def _on_retry(self, event: ev.Retry, key: str) -> list[str]:
        self._waiting = f"Asking the model again, attempt {event.attempt + 1}"
        return self._add(NoteItem(key, "retry", event.seq, event.time, event))

    def _on_guidance(self, event: ev.Guidance, key: str) -> list[str]:
        return self._add(NoteItem(key, "guidance", event.seq, event.time, event))

    def _on_run_resumed(self, event: ev.RunResumed, key: str) -> list[str]:
        self.raised.update(event.changed)
        self.status, self.reason, self.interruption, self.stopped = "running", "", None, None
        self._waiting = ""
        keys = self._add(NoteItem(key, "resumed", event.seq, event.time, event))
        return self._end_no_longer_latest() + keys

    def _on_run_stopped(self, event: ev.RunStopped, key: str) -> list[str]:
        self.status, self.reason = event.status, event.reason
        self.interruption, self.answer, self.stopped = event.interruption, event.answer, event
        self._waiting = ""
        keys = self._end_no_longer_latest()
        if isinstance(event.interruption, InDoubt):
            keys += self._doubted(event.interruption)
        return keys + self._add(EndItem(key, "end", event.seq, event.time, event))

    def _doubted(self, doubt: InDoubt) -> list[str]:
        """Whatever was decided before the call began does not answer the doubt."""
        item = self.items.get(self._calls.get(doubt.call_id, ""))
        if not isinstance(item, CallItem):
            return []
        item.state, item.decision = "doubted", None
        return [item.key]

    def _end_no_longer_latest(self) -> list[str]:
        keys = []
        for item in self.items.values():
            if isinstance(item, EndItem) and item.latest:
                item.latest = False
                keys.append(item.key)
        return keys


def fold(events: Iterable[ev.Event]) -> Steps:
    """The items of a whole trace."""
    steps = Steps()
    for event in events:
        steps.apply(event)
    return steps
