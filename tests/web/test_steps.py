"""A trace folded into items: the same in one go and piece by piece."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import events as ev
from harness.state import ApprovalNeeded, Cancelled, InDoubt, MaxTurns
from web.runpage import stop_line
from web.steps import Steps, fold

RUN: dict[str, Any] = {"run_id": "r"}
CALL: dict[str, Any] = {"call_id": "c1", "tool_name": "delete_file"}
ARGS = {"path": "a.log"}


def numbered(*events: Any) -> list[Any]:
    return [
        event.model_copy(update={"seq": seq, "time": f"2026-01-01T00:00:{seq:02}.000Z"})
        for seq, event in enumerate(events, start=1)
    ]


def started() -> Any:
    return ev.RunStarted(**RUN, task="t", model="m", workspace="/w", tools=(), guidance=())


def turn(number: int, *calls: str, content: str = "") -> Any:
    return ev.Turn(
        **RUN, turn=number, prompt_tokens=100 * number, cached_tokens=10, completion_tokens=5,
        total_tokens=100 * number + 5, cost_usd=Decimal("0.1"),
        run_cost_usd=Decimal("0.1") * number, finish_reason="stop", ms=20, content=content,
        tool_calls=calls,
    )  # fmt: skip


def stopped(status: Any, interruption: Any = None, **more: Any) -> Any:
    return ev.RunStopped(
        **RUN, status=status, reason="why", interruption=interruption, turns=1, tool_runs=0,
        prompt_tokens=1, completion_tokens=1, cost_usd=None, **more,
    )  # fmt: skip


WAITING = ApprovalNeeded(call_id="c1", tool_name="delete_file", args=ARGS, digest="d")
ASKED = (
    started(),
    turn(1, "c1"),
    ev.ApprovalRequired(**RUN, **CALL, args=ARGS, digest="d", effect="Deletes a.log."),
    stopped("interrupted", WAITING),
)
DECIDED = ev.ApprovalDecided(**RUN, **CALL, action="approve", args=ARGS, decided_by="person")
WHOLE = (
    *ASKED,
    DECIDED,
    ev.RunResumed(**RUN, from_status="interrupted", changed={"max_turns": 9}),
    ev.ToolStart(**RUN, **CALL, args=ARGS, idempotency_key="r:c1"),
    ev.ToolProgress(**RUN, **CALL, message="half", done=1, total=2),
    ev.ToolResult(**RUN, **CALL, outcome="ok", content="deleted a.log", ms=3),
    ev.Retry(**RUN, attempt=1, error="503", wait_seconds=1),
    turn(2, content="Done."),
    stopped("completed", answer="Done."),
)


def test_a_call_is_one_item_from_its_mention_to_its_result() -> None:
    steps = fold(numbered(*WHOLE))
    assert len(steps.calls) == 1
    call = steps.calls[0]
    assert (call.state, call.tool_name, call.args) == ("settled", "delete_file", ARGS)
    assert call.decision is not None
    assert call.result is not None
    assert [item.kind for item in steps.items.values()] == [
        "start", "turn", "call", "end", "resumed", "retry", "turn", "end",
    ]  # fmt: skip


def test_totals_and_raised_limits() -> None:
    steps = fold(numbered(*WHOLE))
    totals = steps.totals
    assert (totals.turns, totals.tool_runs, totals.prompt_tokens) == (2, 1, 300)
    assert totals.cost_usd == Decimal("0.2")
    assert totals.approvals == 1
    assert steps.raised == {"max_turns": 9}
    assert (steps.status, steps.answer) == ("completed", "Done.")


def test_only_the_last_ending_is_the_latest() -> None:
    steps = fold(numbered(*WHOLE))
    ends = [item for item in steps.items.values() if item.kind == "end"]
    assert [end.latest for end in ends] == [False, True]


def test_what_a_person_must_decide() -> None:
    steps = fold(numbered(*ASKED))
    assert steps.ask is not None
    assert (steps.ask.kind, steps.ask.effect, steps.ask.digest) == (
        "approval", "Deletes a.log.", "d",
    )  # fmt: skip
    assert fold(numbered(*ASKED, DECIDED)).ask is None


def test_a_doubt_asks_again_although_it_was_approved_before() -> None:
    doubt = InDoubt(call_id="c1", tool_name="delete_file", args=ARGS, digest="d")
    steps = fold(numbered(*WHOLE[:7], stopped("interrupted", doubt)))
    assert steps.ask is not None
    assert steps.ask.kind == "in_doubt"
    assert steps.calls[0].state == "doubted"


def test_what_is_going_on() -> None:
    events = numbered(*WHOLE)

    def now(count: int) -> str:
        found = fold(events[:count]).now
        return found.text if found else ""

    assert now(1) == "Waiting for the model · turn 1"
    assert now(4) == ""
    assert now(7) == "Running delete_file"
    assert now(9) == "Waiting for the model · turn 2"
    assert now(10) == "Asking the model again, attempt 2"
    assert now(12) == ""


@given(st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE)))
def test_w5_pieces_that_overlap_give_the_same_items(first: int, second: int) -> None:
    events = numbered(*WHOLE)
    steps = Steps()
    for event in (*events[:first], *events[min(first, second) :]):
        steps.apply(event)
    assert steps.items == fold(events).items
    assert steps.totals == fold(events).totals


def test_every_event_makes_or_changes_an_item() -> None:
    steps = Steps()
    for event in numbered(*WHOLE):
        keys = steps.apply(event)
        assert keys
        assert set(keys) <= set(steps.items)


@pytest.mark.parametrize(
    ("abandoned", "said"),
    [((), "Nothing was abandoned."), (("c1",), "1 tool call did not stop and was abandoned")],
)
def test_what_stopped_and_how_fast(abandoned: tuple[str, ...], said: str) -> None:
    result = ev.ToolResult(**RUN, **CALL, outcome="cancelled", content="stopped", ms=3)
    ending = stopped("interrupted", Cancelled(reason="x"), stop_ms=12.3, abandoned=abandoned)
    line = stop_line(fold(numbered(started(), turn(1, "c1"), result, ending)))
    assert line.startswith("delete_file stopped 12 ms after Stop was pressed.")
    assert said in line


def test_an_ending_at_a_limit_has_no_stop_line() -> None:
    ending = stopped("max_turns_exceeded", MaxTurns(turns=1, limit=1))
    assert stop_line(fold(numbered(started(), turn(1), ending))) == ""
