"""Order and endings of the loop, and what malformed replies do to it."""

import asyncio
import json
from pathlib import Path

import pytest

from harness.approval import Rule, Rules
from harness.errors import ProviderFailed
from harness.ports import Reply, ReplyUsage, WireCall
from harness.runner import Runner
from harness.scripted_model import Call, ScriptedModel
from harness.state import Limits, MaxBudget, MaxTurns, NoReply, RunState
from harness.tool import PermanentToolError, ToolError, tool

READ = Call("read_file", {"path": "errors.log"})
USAGE = ReplyUsage(prompt=100, completion=10)


def tool_messages(state: RunState) -> list[str]:
    return [m["content"] for m in state.messages if m["role"] == "tool"]


def wire(*calls: WireCall, finish_reason: str = "tool_calls") -> Reply:
    return Reply(None, calls, finish_reason, USAGE)


def check_transcript(messages: list[dict]) -> None:
    """Every call has exactly one tool message, in words, before the next reply."""
    owed: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            assert message["content"].strip()
            owed.remove(message["tool_call_id"])
            continue
        assert owed == []
        owed = [call["id"] for call in message.get("tool_calls") or ()]
        assert all(owed)
        assert len(set(owed)) == len(owed)
        assert not seen & set(owed)
        seen |= set(owed)
    assert owed == []


async def test_a_run_stops_at_its_turn_limit_with_calls_still_owed(runner, settings):
    model = ScriptedModel(*[Call("list_files")] * 3, "done")
    carrier = runner(model)
    state = await carrier.start("t", settings(limits=Limits(max_turns=3), dedupe="none"))
    assert state.status == "max_turns_exceeded"
    assert state.interruption == MaxTurns(turns=3, limit=3)
    assert (state.turns, state.tool_runs) == (3, 2)
    assert len(state.owed()) == 1
    assert state.answer == ""
    state = await carrier.resume(state.run_id, limits={"max_turns": 4})
    assert (state.status, state.turns, state.tool_runs) == ("completed", 4, 3)


async def test_an_answer_in_the_last_allowed_turn_is_an_answer(runner, settings):
    state = await runner(READ, "done").start("t", settings(limits=Limits(max_turns=2)))
    assert (state.status, state.answer) == ("completed", "done")


async def test_a_budget_is_exceeded_by_at_most_one_turn(runner, settings):
    replies = [wire(WireCall(f"c{n}", "list_files", "{}")) for n in range(50)]
    limits = Limits(max_turns=None, max_cost_usd="0.001")
    state = await runner(*replies).start("t", settings(limits=limits, dedupe="none"))
    assert state.status == "budget_exceeded"
    assert isinstance(state.interruption, MaxBudget)
    # A turn costs 100 times $2 and 10 times $12 per million = $0.00032.
    assert state.turns == 4
    assert float(state.usage.cost_usd) == pytest.approx(4 * 0.00032)


@pytest.mark.parametrize(
    ("policy", "status", "told"),
    [
        ("fatal", "failed", "no such file: timeout.log. Call list_files to see what exists."),
        ("vague", "completed", "The tool failed."),
        ("told", "completed", "no such file: timeout.log. Call list_files to see what exists."),
    ],
)
async def test_error_policies(runner, settings, policy, status, told):
    wrong = Call("read_file", {"path": "timeout.log"})
    state = await runner(wrong, "done").start("t", settings(error_policy=policy))
    assert state.status == status
    assert tool_messages(state) == [told]
    if policy == "fatal":
        assert state.turns == 1
        assert "no such file: timeout.log" in state.reason


async def test_a_permanent_error_ends_the_run_and_leaves_no_call_without_a_message(
    runner, settings, store
):
    @tool(effect="read")
    def locked() -> str:
        """Never works."""
        raise PermanentToolError("permission denied: it is locked")

    @tool(effect="read")
    def moody() -> str:
        """Fails."""
        raise ToolError("not now")

    tools = {"locked": locked, "moody": moody}
    carrier = runner([Call("moody"), Call("locked"), Call("moody")], "done", tools=tools)
    state = await carrier.start("t", settings(tools=("locked", "moody")))
    assert state.status == "failed"
    assert "permission denied" in state.reason
    assert [call.outcome for call in state.calls.values()] == ["error", "error", "skipped"]
    check_transcript(list(state.messages))


@pytest.mark.parametrize(
    "arguments",
    [
        "not json",
        "",
        "null",
        "[1]",
        '"x"',
        '{"path": 3}',
        '{"path": "a", "x": 1}',
        "{",
        "9" * 10**6,
    ],
)
async def test_h20_arguments_that_do_not_fit_never_run(runner, settings, store, arguments):
    model = ScriptedModel(wire(WireCall("c1", "read_file", arguments)), "done")
    state = await runner(model).start("t", settings())
    assert state.status == "completed"
    assert state.tool_runs == 0
    (told,) = tool_messages(state)
    assert "did not run" in told
    assert '{"path": <string>}' in told
    check_transcript(model.requests[-1])
    assert store.load(state.run_id) == state
    # What is sent again with every turn stays small.
    assert len(json.dumps(model.requests[-1])) < 100_000


MALFORMED = {
    "unknown tool": wire(WireCall("c1", "format_disk", "{}")),
    "tool without a name": wire(WireCall("c1", "", "{}")),
    "missing id": wire(WireCall("", "list_files", "{}")),
    "the same id twice": wire(WireCall("c", "list_files", "{}"), WireCall("c", "list_files", "{}")),
    "cut off inside a call": wire(
        WireCall("c1", "list_files", "{}"),
        WireCall("c2", "delete_file", '{"path":"access.log"}'),
        finish_reason="length",
    ),
    "half a surrogate pair": wire(WireCall("c\ud800", "list\udfff", '{"path":"\ud800"}')),
}


@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("turn", [1, 2])
async def test_h23_malformed_calls_each_get_one_message(
    runner, settings, store, workspace, name, turn
):
    script = [MALFORMED[name], "done"] if turn == 1 else [READ, MALFORMED[name], "done"]
    model = ScriptedModel(*script)
    state = await runner(model).start("t", settings(), on_event=lambda _: None)
    assert state.status == "completed"
    check_transcript(model.requests[-1])
    assert (workspace / "access.log").exists()
    assert store.load(state.run_id) == state


async def test_h23_an_id_used_in_an_earlier_turn_is_not_used_again(runner, settings):
    again = wire(WireCall("c", "list_files", "{}"))
    model = ScriptedModel(again, again, "done")
    state = await runner(model).start("t", settings(dedupe="none"))
    assert state.tool_runs == 2
    assert len(state.calls) == 2
    check_transcript(model.requests[-1])


@pytest.mark.parametrize(
    "nothing",
    [
        Reply(None, usage=USAGE),
        Reply("  \n", usage=USAGE),
        Reply("", finish_reason="length", usage=USAGE),
    ],
)
async def test_h16_a_reply_that_says_nothing_counts_and_the_run_can_go_on(
    runner, settings, nothing
):
    state = await runner(nothing, "done").start("t", settings())
    assert state.status == "interrupted"
    assert isinstance(state.interruption, NoReply)
    assert state.usage.prompt_tokens == 100
    assert state.turns == 1
    state = await runner("done").resume(state.run_id)
    assert (state.status, state.answer, state.turns) == ("completed", "done", 2)


async def test_h23_a_provider_that_fails_interrupts_the_run_and_what_it_used_counts(
    runner, settings, store
):
    error = ProviderFailed("The reply was an HTML page.")
    error.reply = Reply("<html>", usage=ReplyUsage(prompt=50, completion=5))
    state = await runner(READ, error).start("t", settings())
    assert state.interruption == NoReply(detail="The reply was an HTML page.")
    assert state.reason == "The reply was an HTML page."
    assert store.events(state.run_id)[-2].finish_reason == "error"
    state = await runner("never said", "done").resume(state.run_id)
    assert state.answer == "done"


async def test_h12_identical_calls_in_a_row_end_the_run_by_name(runner, settings):
    again = Call("read_file", '{"path":  "errors.log"}')
    model = ScriptedModel(READ, again, READ, "done")
    carrier = runner(model)
    state = await carrier.start("t", settings(limits=Limits(max_repeats=3)))
    assert state.status == "interrupted"
    assert state.interruption.name == "repeats"
    assert "read_file was asked for 3 times in a row" in state.reason
    assert len(state.owed()) == 1
    state = await carrier.resume(state.run_id, limits={"max_repeats": 5})
    assert state.status == "completed"


async def test_a_condition_of_the_callers_own_ends_a_run(runner, settings):
    from harness.state import ConditionMet
    from harness.stop import Stop

    def enough(run: RunState) -> Stop | None:
        if run.tool_runs < 2:
            return None
        return Stop("interrupted", "Enough.", ConditionMet(name="enough", detail="two tools"))

    carrier = runner(READ, Call("list_files"), "done", stop_conditions=[enough])
    state = await carrier.start("t", settings())
    assert (state.reason, state.tool_runs) == ("Enough.", 2)


async def test_a_hundred_runs_at_once_have_the_figures_of_one(runner, settings, store):
    carrier = runner(Call("list_files"), READ, "errors.log")
    alone = await carrier.start("t", settings())
    together = await asyncio.gather(*(carrier.start("t", settings()) for _ in range(100)))
    figures = {(s.status, s.answer, s.turns, s.tool_runs, s.usage) for s in together}
    assert figures == {("completed", "errors.log", 3, 2, alone.usage)}
    assert all(store.load(state.run_id) == state for state in together)
    assert len(store.runs(limit=1000)) == 101


async def test_bytes_written_per_turn_do_not_grow(runner, settings, monkeypatch):
    """The small form: 60 turns against 30.

    Each turn has a write, which waits for the disk, and nothing else makes a
    transaction: so their number does not depend on how fast the machine is.
    """
    monkeypatch.setattr("harness.journal.LINGER", 3600)

    @tool(effect="write")
    def act(number: int) -> str:
        """Do something."""
        return f"did {number}, and here is a line or two about what came of it. " * 5

    rules = Rules([Rule(action="allow", tool="act")])

    async def written(turns: int) -> int:
        carrier = runner(
            *[Call("act", {"number": n}) for n in range(turns)], tools={"act": act}, rules=rules
        )
        before = _written_bytes()
        limits = Limits(max_turns=turns)
        state = await carrier.start("t", settings(tools=("act",), limits=limits))
        assert state.turns == turns
        return _written_bytes() - before

    await written(10)
    small, large = await written(30), await written(60)
    assert large <= 2.2 * small


def _written_bytes() -> int:
    """What this process has handed to `write`, by the kernel's own count (Linux)."""
    try:
        return int(Path("/proc/self/io").read_text().split("wchar:")[1].split()[0])
    except FileNotFoundError:
        pytest.skip("no /proc/self/io here")


def test_the_loop_fits_one_screen():
    import harness.loop

    assert len(Path(harness.loop.__file__).read_text().splitlines()) <= 150


def test_nothing_of_the_loop_is_global():
    assert not [name for name, value in vars(Runner).items() if isinstance(value, dict | list)]
