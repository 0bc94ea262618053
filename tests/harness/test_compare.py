"""Two runs beside one another."""

from decimal import Decimal

from harness.compare import compare
from harness.events import Event, RunStopped, ToolResult, Turn
from harness.state import CallRecord, RunState, Settings, Usage


def run(run_id: str, model: str, path: str, answer: str) -> tuple[RunState, list[Event]]:
    call_id = f"call-of-{run_id}"
    state = RunState(
        run_id=run_id,
        task="Which file mentions a timeout?",
        settings=Settings(base_url="http://x", model=model, workspace=".", tools=("read_file",)),
        created_at="2026-01-01T00:00:00Z",
        status="completed",
        answer=answer,
        turns=2,
        tool_runs=1,
        usage=Usage(prompt_tokens=10, completion_tokens=5, cost_usd=Decimal("0.1")),
        calls={
            call_id: CallRecord(
                call_id=call_id, turn=1, tool_name="read_file", arguments=f'{{"path": "{path}"}}'
            )
        },
    )
    turn = {
        "run_id": run_id, "prompt_tokens": 5, "cached_tokens": 0, "completion_tokens": 2,
        "total_tokens": 7, "cost_usd": None, "run_cost_usd": None, "finish_reason": "stop",
    }  # fmt: skip
    events: list[Event] = [
        Turn(**turn, seq=1, turn=1, ms=1000, tool_calls=(call_id,)),
        ToolResult(
            run_id=run_id, seq=2, call_id=call_id, tool_name="read_file", outcome="ok", content="x"
        ),
        Turn(**turn, seq=3, turn=2, ms=3000, content=answer),
        RunStopped(
            run_id=run_id, seq=4, status="completed", reason="", answer=answer, turns=2,
            tool_runs=1, prompt_tokens=10, completion_tokens=5, cost_usd=Decimal("0.1"),
        ),
    ]  # fmt: skip
    return state, events


def test_runs_that_say_the_same_do_not_part_though_their_call_ids_differ():
    result = compare(*run("a", "m", "a.log", "yes"), *run("b", "m", "a.log", "yes"))
    assert result.parting is None
    assert result.to_json()["same_steps"] == 4


def test_the_first_step_that_differs_is_named_with_both_sides():
    result = compare(*run("a", "m", "a.log", "yes"), *run("b", "n", "b.log", "yes"))
    assert result.parting is not None
    assert result.parting.index == 0
    assert result.parting.left is not None
    assert result.parting.left.title == 'asks for read_file {"path":"a.log"}'
    assert result.parting.right is not None
    assert result.parting.right.title == 'asks for read_file {"path":"b.log"}'


def test_a_side_that_had_ended_is_none():
    state, events = run("a", "m", "a.log", "yes")
    result = compare(state, events, state, events[:2])
    assert result.parting is not None
    assert result.parting.index == 2
    assert result.parting.right is None


def test_figures_stand_side_by_side_and_unknown_cost_stays_unknown():
    left, events = run("a", "m", "a.log", "yes")
    right = left.model_copy(update={"usage": Usage(prompt_tokens=12, cost_usd=None)})
    rows = {row.name: row for row in compare(left, events, right, events).rows}
    assert (rows["Cost"].left, rows["Cost"].right) == (0.1, None)
    assert rows["Prompt tokens"].difference == 2
    assert rows["Mean turn"].left == 2.0
    assert rows["Ending"].same
