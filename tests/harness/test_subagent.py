"""A run inside a run."""

import asyncio
from decimal import Decimal

import pytest

from harness.cancel import CancelToken
from harness.scripted_model import Call, ScriptedModel
from harness.state import Cancelled, Limits
from harness.subagent import child_id
from harness.tool import ToolContext, tool
from harness.tools import bundled_tools

ASK = Call("research", {"question": "Helper, what is in errors.log?"})
TOOLS = ("list_files", "read_file", "delete_file", "research")


def script(parent: list, helper: list) -> ScriptedModel:
    def line(messages):
        of_helper = messages[1]["content"].startswith("Helper")
        lines = helper if of_helper else parent
        turn = sum(message["role"] == "assistant" for message in messages)
        chosen = lines[min(turn, len(lines) - 1)]
        return chosen(messages) if callable(chosen) else chosen

    return ScriptedModel(line)


async def test_a_helper_has_its_own_transcript_and_its_cost_counts_for_its_parent(
    runner, settings, store
):
    model = script([ASK, "done"], [Call("read_file", {"path": "errors.log"}), "a timeout"])
    state = await runner(model).start("t", settings(tools=TOOLS))
    assert state.status == "completed"
    (child,) = store.runs(parent=state.run_id)
    helper = store.load(child.run_id)
    assert helper.parent_run_id == state.run_id
    assert helper.settings.tools == ("list_files", "read_file")
    assert helper.answer == "a timeout"
    (call,) = state.calls.values()
    assert call.child_run_id == helper.run_id
    assert state.messages[-2]["content"] == "a timeout"
    own = [event for event in store.events(state.run_id) if event.type == "turn"]
    assert state.usage.prompt_tokens == helper.usage.prompt_tokens + sum(
        turn.prompt_tokens for turn in own
    )
    assert state.usage.cost_usd == helper.usage.cost_usd + sum(turn.cost_usd for turn in own)
    assert state.turns == 2
    # Only what a person started is in the list.
    assert [run.run_id for run in store.runs()] == [state.run_id]


async def test_a_helper_that_stops_at_its_own_limit_gives_words(runner, settings, store):
    model = script([ASK, "done"], [Call("list_files")])
    state = await runner(model).start("t", settings(tools=TOOLS))
    assert state.status == "completed"
    assert "without an answer" in state.messages[-2]["content"]
    assert "limit of 8 turns" in state.messages[-2]["content"]
    (child,) = store.runs(parent=state.run_id)
    assert child.status == "max_turns_exceeded"


async def test_a_helper_gets_no_more_than_what_is_left_of_its_parents_budget(
    runner, settings, store
):
    model = script([ASK, "done"], [Call("list_files")])
    limits = Limits(max_cost_usd=Decimal("0.0015"), max_total_tokens=100_000)
    state = await runner(model).start("t", settings(tools=TOOLS, limits=limits))
    (child,) = store.runs(parent=state.run_id)
    helper = store.load(child.run_id)
    assert helper.status == "budget_exceeded"
    assert helper.settings.limits.max_cost_usd < limits.max_cost_usd
    assert helper.settings.limits.max_total_tokens < limits.max_total_tokens
    assert state.status == "budget_exceeded"


async def test_a_helper_cannot_ask_another_helper(runner, settings, store):
    @tool(effect="read")
    async def again(question: str, context: ToolContext) -> str:
        """Ask a helper that has every tool."""
        if context.spawn is None:
            return "no helper"
        return (await context.spawn(question, tools=("again",), max_turns=3)).content

    ask = Call("again", {"question": "Helper, ask again."})
    model = script([ask, "done"], [ask, "none"])
    carrier = runner(model, tools={"again": again})
    state = await carrier.start("t", settings(tools=("again",)))
    (child,) = store.runs(parent=state.run_id)
    helper = store.load(child.run_id)
    assert helper.messages[-2]["content"] == "no helper"
    assert store.runs(parent=child.run_id) == []


async def test_h18_one_token_stops_the_tree_and_the_helpers_cost_still_counts(
    runner, settings, store
):
    token = CancelToken()

    def slow(messages):
        asyncio.get_running_loop().call_later(0.05, token.cancel, "Stop was pressed")
        return Call("wait", {})

    @tool(effect="read")
    async def wait(context: ToolContext) -> str:
        """Wait for ever."""
        await asyncio.sleep(3600)
        return ""

    @tool(effect="read")
    async def delegate(context: ToolContext) -> str:
        """Have a helper wait."""
        return (await context.spawn("Helper, wait.", tools=("wait",))).content

    model = script([Call("delegate"), "done"], [slow])
    carrier = runner(model, tools={"wait": wait, "delegate": delegate})
    state = await carrier.start("t", settings(tools=("wait", "delegate")), cancel=token)
    assert state.interruption == Cancelled(reason="Stop was pressed")
    (child,) = store.runs(parent=state.run_id)
    helper = store.load(child.run_id)
    assert helper.interruption == Cancelled(reason="Stop was pressed")
    assert helper.usage.prompt_tokens > 0
    own = next(event for event in store.events(state.run_id) if event.type == "turn")
    assert state.usage.prompt_tokens == own.prompt_tokens + helper.usage.prompt_tokens
    assert [call.outcome for call in state.calls.values()] == ["cancelled"]
    assert store.carrier(helper.run_id) is None


async def test_a_helper_that_was_paid_for_is_not_paid_for_twice(runner, settings, store):
    """The call is carried out again after a crash: the same child is found."""
    model = script([ASK, "done"], ["a timeout"])
    carrier = runner(model)
    state = await carrier.start("t", settings(tools=TOOLS))
    (call,) = state.calls.values()
    assert call.child_run_id == child_id(state.run_id, call.call_id, 0)
    asked = len(model.requests)
    again = await carrier._child(
        None, None, call.child_run_id, "Helper", state.settings, state.run_id, CancelToken()
    )
    assert again.answer == "a timeout"
    assert len(model.requests) == asked


async def test_several_helpers_of_one_call_each_have_a_run(runner, settings, store):
    @tool(effect="read")
    async def both(context: ToolContext) -> str:
        """Ask two helpers at once."""
        one, two = await asyncio.gather(
            context.spawn("Helper one", tools=()), context.spawn("Helper two", tools=())
        )
        return f"{one.content} {two.content}"

    model = script([Call("both"), "done"], ["yes"])
    carrier = runner(model, tools={**bundled_tools(), "both": both})
    state = await carrier.start("t", settings(tools=("both",)))
    assert state.messages[-2]["content"] == "yes yes"
    children = store.runs(parent=state.run_id)
    assert len(children) == 2
    assert state.usage.completion_tokens == 2 + sum(c.completion_tokens for c in children)


@pytest.mark.parametrize("number", [0, 1])
def test_a_childs_id_is_the_same_in_every_process(number):
    assert child_id("a", "b", number) == child_id("a", "b", number)
    assert len({child_id("a", "b", n) for n in range(9)}) == 9
