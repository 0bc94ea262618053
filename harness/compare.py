"""Two runs beside one another: where they part, and what each cost.

A run's events are read as a list of steps: what the model said or asked for,
what each tool returned, what a person decided, what a policy of the harness did.
Call ids and times differ between any two runs, so steps are compared by what
they say. The terminal and the page show the same `Comparison`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harness.events import (
    ApprovalDecided,
    ApprovalRequired,
    Event,
    Guidance,
    RunStopped,
    ToolResult,
    Turn,
)
from harness.state import CallRecord, RunState

StepKind = Literal["turn", "tool", "approval", "decision", "guidance", "ending"]

Figure = int | float | str | bool | None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a run, as it is compared. `seq` is the number of its event."""

    kind: StepKind
    turn: int
    """The turn it belongs to, counted from 1; 0 before the first reply."""
    title: str
    """In a few words: `asks for read_file {"path":"a.log"}`, `read_file: ok`."""
    detail: str
    """The whole text: a reply, a tool result, a reason. May be empty."""
    seq: int

    def says_the_same(self, other: Step) -> bool:
        return (self.kind, self.title, self.detail) == (other.kind, other.title, other.detail)


@dataclass(frozen=True, slots=True)
class Parting:
    """The first step that is not the same. A side that had ended by then is `None`."""

    index: int
    """How many steps were the same before it."""
    left: Step | None
    right: Step | None


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of both runs. `unit` is empty, "tokens", "US$" or "s"."""

    name: str
    left: Figure
    right: Figure
    unit: str = ""

    @property
    def same(self) -> bool:
        return self.left == self.right

    @property
    def difference(self) -> float | None:
        """Right minus left where both are numbers, else `None`."""
        if isinstance(self.left, bool) or isinstance(self.right, bool):
            return None
        if isinstance(self.left, int | float) and isinstance(self.right, int | float):
            return self.right - self.left
        return None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two runs have in common and where they differ."""

    left_run_id: str
    right_run_id: str
    parting: Parting | None
    """`None` when every step is the same."""
    rows: tuple[Row, ...]
    left_steps: tuple[Step, ...]
    right_steps: tuple[Step, ...]

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain JSON values, without the steps that are the same."""
        parting = self.parting
        return {
            "left": self.left_run_id,
            "right": self.right_run_id,
            "same_steps": parting.index if parting else len(self.left_steps),
            "parting": parting
            and {"left": _step_json(parting.left), "right": _step_json(parting.right)},
            "figures": [
                {
                    "name": row.name,
                    "left": row.left,
                    "right": row.right,
                    "unit": row.unit,
                    "same": row.same,
                }
                for row in self.rows
            ],
        }


def compare(
    left: RunState, left_events: Iterable[Event], right: RunState, right_events: Iterable[Event]
) -> Comparison:
    """Compare two runs by their states and their events, both in order of `seq`."""
    left_list, right_list = list(left_events), list(right_events)
    left_steps = steps_of(left.calls, left_list)
    right_steps = steps_of(right.calls, right_list)
    return Comparison(
        left_run_id=left.run_id,
        right_run_id=right.run_id,
        parting=_parting(left_steps, right_steps),
        rows=_rows(_figures(left, left_list), _figures(right, right_list)),
        left_steps=left_steps,
        right_steps=right_steps,
    )


def steps_of(calls: Mapping[str, CallRecord], events: Iterable[Event]) -> tuple[Step, ...]:
    """The steps of one run. `calls` is its journal: names and arguments by call id."""
    steps: list[Step] = []
    turn = 0
    for event in events:
        if isinstance(event, Turn):
            turn = event.turn
        step = _step(event, turn, calls)
        if step is not None:
            steps.append(step)
    return tuple(steps)


def _step(event: Event, turn: int, calls: Mapping[str, CallRecord]) -> Step | None:
    """An event as a step, or `None` for events that say nothing to compare."""
    if isinstance(event, Turn):
        asked = [_asked(calls.get(call_id)) for call_id in event.tool_calls]
        title = "asks for " + ", ".join(asked) if asked else "answers"
        return Step("turn", turn, title, event.content, event.seq)
    if isinstance(event, ToolResult):
        title = f"{event.tool_name}: {event.outcome}"
        return Step("tool", turn, title, event.content, event.seq)
    if isinstance(event, ApprovalRequired):
        title = f"{event.tool_name} needs approval"
        return Step("approval", turn, title, _compact(event.args), event.seq)
    if isinstance(event, ApprovalDecided):
        title = f"{event.tool_name}: {event.action}"
        return Step("decision", turn, title, event.reason or "", event.seq)
    if isinstance(event, Guidance):
        return Step("guidance", turn, f"policy {event.policy}", event.detail, event.seq)
    if isinstance(event, RunStopped):
        return Step("ending", turn, event.status, event.answer, event.seq)
    return None


def _asked(record: CallRecord | None) -> str:
    if record is None:
        return "an unknown call"
    try:
        arguments = _compact(json.loads(record.arguments))
    except ValueError:
        arguments = record.arguments
    return f"{record.tool_name} {arguments}"


def _compact(value: object) -> str:
    """JSON in one form, so that spaces and key order do not count as a difference."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _parting(left: tuple[Step, ...], right: tuple[Step, ...]) -> Parting | None:
    for index in range(max(len(left), len(right))):
        a = left[index] if index < len(left) else None
        b = right[index] if index < len(right) else None
        if a is None or b is None or not a.says_the_same(b):
            return Parting(index, a, b)
    return None


def _figures(state: RunState, events: list[Event]) -> list[tuple[str, Figure, str]]:
    """Name, value and unit of everything the two runs are compared by."""
    turns = [event for event in events if isinstance(event, Turn)]
    mean_turn = sum(t.ms for t in turns) / len(turns) / 1000 if turns else None
    cost = state.usage.cost_usd
    approvals = sum(isinstance(event, ApprovalRequired) for event in events)
    return [
        ("Model", state.settings.model, ""),
        ("Task", state.task, ""),
        ("Policies", ", ".join(state.settings.guidance) or "none", ""),
        ("Ending", state.status, ""),
        ("Reason", state.reason, ""),
        ("Answer", state.answer, ""),
        ("Answered from evidence", state.answered_from_evidence, ""),
        ("Turns", state.turns, ""),
        ("Tool runs", state.tool_runs, ""),
        ("Approvals asked for", approvals, ""),
        ("Prompt tokens", state.usage.prompt_tokens, "tokens"),
        ("Cached tokens", state.usage.cached_tokens, "tokens"),
        ("Completion tokens", state.usage.completion_tokens, "tokens"),
        ("Cost", None if cost is None else float(cost), "US$"),
        ("Time", round(state.seconds, 3), "s"),
        ("Mean turn", None if mean_turn is None else round(mean_turn, 3), "s"),
    ]


def _rows(
    left: list[tuple[str, Figure, str]], right: list[tuple[str, Figure, str]]
) -> tuple[Row, ...]:
    return tuple(
        Row(name, value, other, unit)
        for (name, value, unit), (_, other, _) in zip(left, right, strict=True)
    )


def _step_json(step: Step | None) -> dict[str, Any] | None:
    if step is None:
        return None
    return {
        "kind": step.kind,
        "turn": step.turn,
        "title": step.title,
        "detail": step.detail,
        "seq": step.seq,
    }
