"""One budget for several runs."""

from __future__ import annotations

import asyncio

from harness import Budget, Call, CancelToken, Prices, ScriptedModel, run, tool
from harness.tools import bundled_tools

PRICES = Prices(input_per_million=2, output_per_million=12)


@tool(effect="read")
def look(place: int) -> str:
    """Look somewhere."""
    return f"nothing at {place}"


def wandering() -> ScriptedModel:
    """A model that never comes to an end."""
    return ScriptedModel(lambda messages: Call("look", {"place": len(messages)}))


async def test_runs_one_after_the_other_share_it(store):
    budget = Budget(max_total_tokens=200)
    first = await run("Look.", tools=[look], model=wandering(), store=store, budget=budget)
    assert first.status == "budget_exceeded"
    assert first.reason.startswith("Together the runs used ")
    second = await run("Look.", tools=[look], model=wandering(), store=store, budget=budget)
    assert (second.status, second.turns) == ("budget_exceeded", 0)
    assert budget.used.total_tokens == first.usage.total_tokens


async def test_the_last_turn_of_a_run_counts(store):
    budget = Budget(max_cost_usd=10)
    state = await run("Hello", model=ScriptedModel("hi"), store=store, budget=budget, prices=PRICES)
    assert state.usage.cost_usd > 0
    assert budget.used.cost_usd == state.usage.cost_usd


async def test_runs_side_by_side_exceed_it_by_a_turn_each_at_most(store):
    budget = Budget(max_total_tokens=500)
    states = await asyncio.gather(
        *(run("Look.", tools=[look], model=wandering(), store=store, budget=budget)
          for _ in range(5))
    )  # fmt: skip
    assert {state.status for state in states} == {"budget_exceeded"}
    spent = sum(state.usage.total_tokens for state in states)
    assert spent == budget.used.total_tokens
    assert 500 <= spent < 500 + 5 * 100


async def test_a_budget_of_money_with_unknown_prices_is_not_kept_silently(store):
    budget = Budget(max_cost_usd=1)
    state = await run("Look.", tools=[look], model=wandering(), store=store, budget=budget)
    assert (state.status, state.turns) == ("interrupted", 1)
    assert "cannot be kept" in state.reason


async def test_a_subagent_counts_once(store, workspace):
    bundled = bundled_tools()
    budget = Budget(max_total_tokens=10_000)
    model = ScriptedModel(
        lambda messages: (
            "the answer"
            if "helper" in str(messages[1]) or len(messages) > 2
            else Call("research", {"question": "helper, what is there?"})
        )
    )
    tools = [bundled[name] for name in ("research", "list_files", "read_file")]
    state = await run(
        "Ask.", tools=tools, model=model, store=store, workspace=workspace, budget=budget
    )
    assert state.status == "completed"
    assert any(record.child_run_id for record in state.calls.values())
    assert budget.used.total_tokens == state.usage.total_tokens


async def test_one_stop_for_all(store):
    stop = CancelToken()
    slow = ScriptedModel("done", latency=60)
    going = [
        asyncio.create_task(run("Wait.", model=slow, store=store, cancel=stop.child()))
        for _ in range(3)
    ]
    while len(store.runs()) < 3:
        await asyncio.sleep(0.01)
    stop.cancel("enough")
    states = await asyncio.gather(*going)
    assert {state.interruption.kind for state in states} == {"cancelled"}
