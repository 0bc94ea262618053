"""Two runs side by side, or several as a table with plots."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from flask import Blueprint, request

from harness.compare import Comparison, Step, compare
from harness.errors import SettingsError
from harness.state import RunState
from web import plots
from web.faces import Face, face_of
from web.reply import render_page
from web.services import services

views = Blueprint("compare", __name__)

MOST_RUNS = 50


@dataclass(frozen=True, slots=True)
class Pair:
    """One row of two runs' steps."""

    number: int
    left: Step | None
    right: Step | None
    same: bool
    parts: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """One run of a set."""

    state: RunState
    face: Face
    approvals: int


@views.get("/compare")
def show() -> Any:
    """What is compared stands in the address: `run` once for each."""
    ids = list(dict.fromkeys(request.args.getlist("run")))
    if len(ids) > MOST_RUNS:
        raise SettingsError(f"At most {MOST_RUNS} runs can be compared at once.")
    if len(ids) < 2:
        return _choose(ids)
    return _two(ids[0], ids[1]) if len(ids) == 2 else _set(ids)


def _choose(ids: list[str]) -> Any:
    made = services()
    one = made.store.load(ids[0]) if ids else None
    others = [run for run in made.store.runs(limit=51) if run.run_id not in ids][:50]
    return render_page(
        "compare_choose.html",
        one=one,
        others=others,
        face_of=face_of,
    )


def _two(left_id: str, right_id: str) -> Any:
    made = services()
    left, right = made.store.load(left_id), made.store.load(right_id)
    found = compare(left, made.reader.events(left_id), right, made.reader.events(right_id))
    return render_page(
        "compare_two.html",
        left=left,
        right=right,
        found=found,
        pairs=pairs(found),
        faces=[_face(left), _face(right)],
    )


def pairs(found: Comparison) -> list[Pair]:
    """The steps of both, row by row; the first that differs is marked."""
    parting = found.parting.index if found.parting else None
    rows = zip_longest(found.left_steps, found.right_steps)
    return [
        Pair(
            index + 1,
            left,
            right,
            left is not None and right is not None and left.says_the_same(right),
            index == parting,
        )
        for index, (left, right) in enumerate(rows)
    ]


def _set(ids: list[str]) -> Any:
    store = services().store
    states = [store.load(run_id) for run_id in ids]
    entries = [Entry(state, _face(state), _approvals(state.run_id)) for state in states]
    figures: dict[str, list[float]] = {
        "turns": [state.turns for state in states],
        "tool_runs": [state.tool_runs for state in states],
        "prompt_tokens": [state.usage.prompt_tokens for state in states],
        "completion_tokens": [state.usage.completion_tokens for state in states],
        "cost_usd": [float(state.usage.cost_usd or 0) for state in states],
        "seconds": [state.seconds for state in states],
    }
    return render_page(
        "compare_set.html",
        entries=entries,
        bars={
            name: [plots.bar(value, max(values)) for value in values]
            for name, values in figures.items()
        },
    )


def _approvals(run_id: str) -> int:
    return sum(event.type == "approval_required" for event in services().reader.events(run_id))


def _face(state: RunState) -> Face:
    return face_of(state.status, state.interruption.kind if state.interruption else None)
