"""Approvals, resume and cancel, through the surface that the page and the CLI use."""

import asyncio
import threading
import time
from pathlib import Path

import pytest

from harness.approval import Rule, Rules, Ruling
from harness.cancel import CancelToken
from harness.errors import (
    AlreadyCarried,
    AlreadyDecided,
    DecisionIncomplete,
    DigestMismatch,
    NoSuchRun,
    NothingToDecide,
    NotResumable,
    RunExists,
    SettingsError,
)
from harness.runner import Runner
from harness.scripted_model import Call, ScriptedModel
from harness.state import ApprovalNeeded, Cancelled, Decision, Limits, Prices, RunState
from harness.store import Store
from harness.tool import tool
from harness.tools import bundled_tools

DELETE = Call("delete_file", {"path": "access.log"})


def decision(state: RunState, action: str, **more) -> Decision:
    waiting = state.interruption
    return Decision(call_id=waiting.call_id, action=action, digest=waiting.digest, **more)


def tool_messages(state: RunState) -> list[str]:
    return [m["content"] for m in state.messages if m["role"] == "tool"]


async def asking(runner: Runner, settings, **changes) -> RunState:
    state = await runner.start("Delete access.log.", settings(**changes))
    assert isinstance(state.interruption, ApprovalNeeded)
    return state


async def test_a_run_is_carried_to_its_answer_and_kept(runner, settings, store: Store):
    carrier = runner(Call("list_files"), Call("read_file", {"path": "errors.log"}), "errors.log")
    state = await carrier.start("Which file mentions a timeout?", settings())
    assert (state.status, state.answer) == ("completed", "errors.log")
    assert (state.turns, state.tool_runs) == (3, 2)
    assert store.load(state.run_id) == state
    kinds = [event.type for event in store.events(state.run_id)]
    assert kinds == [
        "run_started", "turn", "tool_start", "tool_result", "turn", "tool_start", "tool_result",
        "turn", "run_stopped",
    ]  # fmt: skip
    assert [event.seq for event in store.events(state.run_id)] == list(range(1, 10))


async def test_h1_no_decision_means_it_does_not_run(runner, settings, workspace: Path):
    carrier = runner(DELETE, "done")
    state = await asking(carrier, settings)
    for _ in range(2):
        state = await carrier.resume(state.run_id)
        assert isinstance(state.interruption, ApprovalNeeded)
    assert (workspace / "access.log").exists()
    assert state.tool_runs == 0


async def test_h2_an_approval_of_other_arguments_is_refused(runner, settings):
    carrier = runner(DELETE, "done")
    state = await asking(carrier, settings)
    other = decision(state, "approve").model_copy(update={"digest": "0" * 64})
    with pytest.raises(DigestMismatch, match="not what would run"):
        await carrier.decide(state.run_id, other)


async def test_h2_a_file_that_changed_after_the_approval_is_asked_about_again(
    runner, settings, workspace: Path
):
    carrier = runner(DELETE, "done")
    state = await asking(carrier, settings)
    await carrier.decide(state.run_id, decision(state, "approve"))
    (workspace / "access.log").write_text("something that matters")
    again = await carrier.resume(state.run_id)
    assert isinstance(again.interruption, ApprovalNeeded)
    assert again.interruption.digest != state.interruption.digest
    assert (workspace / "access.log").exists()
    await carrier.decide(again.run_id, decision(again, "approve"))
    ended = await carrier.resume(again.run_id)
    assert ended.status == "completed"
    assert not (workspace / "access.log").exists()


async def test_h3_approved_call_runs_once_on_resume(runner, settings, store, workspace: Path):
    carrier = runner(DELETE, DELETE, "done")
    state = await asking(carrier, settings)
    await carrier.decide(state.run_id, decision(state, "approve"))
    # The same call asked for again in the next turn is another call: asked again.
    again = await carrier.resume(state.run_id)
    assert isinstance(again.interruption, ApprovalNeeded)
    assert again.interruption.call_id != state.interruption.call_id
    assert not (workspace / "access.log").exists()
    assert again.tool_runs == 1
    assert again.decisions == {}


async def test_h4_an_approve_after_a_cancel_is_refused_and_has_no_effect(
    runner, settings, store, workspace: Path
):
    carrier = runner(DELETE, "done")
    state = await asking(carrier, settings)
    assert carrier.cancel(state.run_id, "Stop was pressed") == "ended"
    with pytest.raises(NothingToDecide, match="cancelled"):
        await carrier.decide(state.run_id, decision(state, "approve"))
    cancelled = store.load(state.run_id)
    assert cancelled.interruption == Cancelled(reason="Stop was pressed")
    assert "not run" in tool_messages(cancelled)[0]
    assert (await carrier.resume(state.run_id)).answer == "done"
    assert (workspace / "access.log").exists()


async def test_h5_a_rejected_call_runs_by_no_path(runner, settings, workspace: Path):
    carrier = runner([DELETE, DELETE], "done")
    state = await asking(carrier, settings, dedupe="all")
    await carrier.decide(state.run_id, decision(state, "reject", reason="keep it"))
    state = await carrier.resume(state.run_id)
    await carrier.decide(state.run_id, decision(state, "reject", reason="keep it"))
    state = await carrier.resume(state.run_id)
    assert state.status == "completed"
    assert state.tool_runs == 0
    assert (workspace / "access.log").exists()


async def test_h6_the_model_is_told_what_was_changed_and_what_ran(
    runner, settings, workspace: Path
):
    carrier = runner(DELETE, "done")
    state = await asking(carrier, settings)
    kept = await carrier.decide(state.run_id, decision(state, "edit", args={"path": "notes.txt"}))
    assert kept.digest != state.interruption.digest
    state = await carrier.resume(state.run_id)
    (told,) = tool_messages(state)
    assert "access.log" in told
    assert "notes.txt" in told
    assert "changed" in told
    assert (workspace / "access.log").exists()
    assert not (workspace / "notes.txt").exists()


async def test_edited_arguments_are_validated(runner, settings):
    carrier = runner(DELETE, "done")
    state = await asking(carrier, settings)
    with pytest.raises(DecisionIncomplete, match="path"):
        await carrier.decide(state.run_id, decision(state, "edit", args={"file": "notes.txt"}))


async def test_h7_a_refusal_reaches_the_model_in_words(runner, settings):
    model = ScriptedModel(DELETE, "I did not delete anything.")
    carrier = runner(model)
    state = await asking(carrier, settings)
    with pytest.raises(DecisionIncomplete, match="reason"):
        await carrier.decide(state.run_id, decision(state, "reject", reason="  "))
    await carrier.decide(state.run_id, decision(state, "reject", reason="it is still needed"))
    await carrier.resume(state.run_id)
    last = model.requests[-1][-1]
    assert last["role"] == "tool"
    assert last["content"] == "The user declined this call: it is still needed"


async def test_h21_approving_one_of_several_calls_never_releases_another(
    runner, settings, workspace: Path
):
    notes = Call("delete_file", {"path": "notes.txt"})
    model = ScriptedModel([DELETE, Call("list_files"), notes], "done")
    carrier = runner(model)
    state = await asking(carrier, settings)
    await carrier.decide(state.run_id, decision(state, "approve"))
    state = await carrier.resume(state.run_id)
    assert state.interruption.args == {"path": "notes.txt"}
    assert not (workspace / "access.log").exists()
    assert (workspace / "notes.txt").exists()
    assert [call.state for call in state.calls.values()] == ["settled", "settled", "owed"]
    assert len(model.requests) == 1
    await carrier.decide(state.run_id, decision(state, "reject", reason="no"))
    state = await carrier.resume(state.run_id)
    assert state.status == "completed"
    assert state.tool_runs == 2
    assert (workspace / "notes.txt").exists()


async def test_w3_the_first_decision_wins_and_the_second_is_told_who_was_first(
    runner, settings, store, workspace: Path
):
    carrier = runner(DELETE, "done")
    state = await asking(carrier, settings)

    async def decide(action: str, who: str, **more) -> BaseException | None:
        try:
            await carrier.decide(state.run_id, decision(state, action, decided_by=who, **more))
        except AlreadyDecided as error:
            return error
        return None

    outcomes = await asyncio.gather(
        decide("approve", "Ann"), decide("reject", "Bob", reason="no"), decide("approve", "Cid")
    )
    refused = [error for error in outcomes if error is not None]
    assert len(refused) == 2
    first = store.load(state.run_id).decisions[state.interruption.call_id].decided_by
    assert all(first in str(error) for error in refused)
    await carrier.resume(state.run_id)
    with pytest.raises(AlreadyDecided, match=first):
        await carrier.decide(state.run_id, decision(state, "approve"))
    decided = [e for e in store.events(state.run_id) if e.type == "approval_decided"]
    assert len(decided) == 1


async def test_a_run_that_waits_for_nothing_cannot_be_decided(runner, settings):
    carrier = runner("done")
    state = await carrier.start("t", settings())
    with pytest.raises(NothingToDecide, match="completed"):
        await carrier.decide(state.run_id, Decision(call_id="x", action="approve", digest="y"))
    with pytest.raises(NoSuchRun):
        await carrier.decide("none", Decision(call_id="x", action="approve", digest="y"))


async def test_standing_rules_allow_and_deny_without_a_person(
    runner, settings, store, workspace: Path
):
    rules = Rules(
        [
            Rule(action="allow", tool="delete_file", args={"path": "access.log"}),
            Rule(action="deny", tool="delete_file", args={"path": "notes.txt"}, reason="precious"),
            Rule(action="ask", tool="list_files"),
        ]
    )
    carrier = runner(
        [DELETE, Call("delete_file", {"path": "notes.txt"}), Call("list_files")], "done",
        rules=rules,
    )  # fmt: skip
    state = await carrier.start("t", settings())
    assert state.interruption.tool_name == "list_files"
    assert not (workspace / "access.log").exists()
    assert (workspace / "notes.txt").exists()
    assert "declined" in tool_messages(state)[1]
    assert "precious" in tool_messages(state)[1]
    (by_rule,) = (e for e in store.events(state.run_id) if e.type == "approval_decided")
    assert by_rule.decided_by == "rule: allow delete_file where path = access.log"


async def test_only_three_endings_and_a_broken_off_run_can_be_resumed(runner, settings):
    carrier = runner(Call("list_files"), "done")
    done = await carrier.start("t", settings())
    with pytest.raises(NotResumable, match="completed"):
        await carrier.resume(done.run_id)
    with pytest.raises(NoSuchRun):
        await carrier.resume("none")
    short = await carrier.start("t", settings(limits=Limits(max_turns=1)))
    assert short.status == "max_turns_exceeded"
    longer = await carrier.resume(short.run_id, limits={"max_turns": 5})
    assert longer.status == "completed"
    assert longer.settings.limits.max_turns == 5


async def test_a_resume_says_what_was_raised_and_refuses_a_limit_that_is_none(
    runner, settings, store
):
    carrier = runner(Call("list_files"), "done")
    short = await carrier.start("t", settings(limits=Limits(max_turns=1)))
    with pytest.raises(SettingsError, match="max_turn"):
        await carrier.resume(short.run_id, limits={"turns": 5})
    await carrier.resume(short.run_id, limits={"max_turns": 3})
    (resumed,) = (e for e in store.events(short.run_id) if e.type == "run_resumed")
    assert resumed.changed == {"max_turns": 3}
    assert resumed.from_status == "max_turns_exceeded"


async def test_h10_the_same_run_twice_in_one_process_is_refused(runner, settings, store):
    carrier = runner(ScriptedModel("done", latency=30))
    token = CancelToken()
    first = asyncio.create_task(carrier.start("t", settings(), run_id="once", cancel=token))
    while not store.exists("once"):
        await asyncio.sleep(0.01)
    with pytest.raises(AlreadyCarried, match="already being carried by this process"):
        await carrier.resume("once")
    with pytest.raises(AlreadyCarried):
        await runner("done").resume("once")
    token.cancel("enough")
    assert (await first).status == "interrupted"
    assert (await runner("done").resume("once")).status == "completed"


async def test_two_stores_in_one_process_are_different_owners(runner, settings, store):
    carrier = runner(ScriptedModel("done", latency=30))
    first = asyncio.create_task(carrier.start("t", settings(), run_id="once"))
    while not store.exists("once"):
        await asyncio.sleep(0.01)
    with Store.open(store.path) as other:
        with pytest.raises(AlreadyCarried, match=r"already being carried by process \d+"):
            await runner("done", store=other).resume("once")
        assert runner("done", store=other).cancel("once", "from outside") == "asked"
        async with asyncio.timeout(5):
            assert (await first).interruption == Cancelled(reason="from outside")


async def test_a_run_id_is_given_once(runner, settings):
    carrier = runner("done")
    await carrier.start("t", settings(), run_id="mine")
    with pytest.raises(RunExists, match="mine"):
        await carrier.start("t", settings(), run_id="mine")


async def test_h17_a_money_limit_on_an_unknown_price_is_refused_at_the_start(
    runner, settings, store
):
    wanted = settings(prices=Prices(), limits=Limits(max_cost_usd="0.5"))
    with pytest.raises(SettingsError, match="not known"):
        await runner("done").start("t", wanted)
    assert store.runs() == []
    state = await runner("done").start("t", settings(prices=Prices()))
    assert state.usage.cost_usd is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tools": ("fly",)}, "no tool fly"),
        ({"guidance": ("luck",)}, "no guidance policy luck"),
        ({"workspace": "/nowhere/at/all"}, "workspace"),
    ],
)
async def test_what_cannot_be_carried_out_is_refused_before_anything_is_written(
    runner, settings, store, changes, message
):
    with pytest.raises(SettingsError, match=message):
        await runner("done").start("t", settings(**changes))
    assert store.runs() == []


async def test_h15_cancel_reaches_the_request_and_h19_its_tokens_count(runner, settings, store):
    carrier = runner(ScriptedModel("done", latency=30))
    token = CancelToken()
    asyncio.get_running_loop().call_later(0.05, token.cancel, "Stop was pressed")
    began = time.monotonic()
    state = await carrier.start("t", settings(), cancel=token)
    assert time.monotonic() - began < 10
    assert state.interruption == Cancelled(reason="Stop was pressed")
    assert state.usage.prompt_tokens > 0
    turn, stopped = store.events(state.run_id)[-2:]
    assert turn.finish_reason == "cancelled"
    assert turn.prompt_tokens == state.usage.prompt_tokens
    assert stopped.stop_ms is not None
    assert all(message["role"] != "assistant" for message in state.messages)


async def test_a_run_that_was_cancelled_before_it_began_asks_nothing(runner, settings):
    model = ScriptedModel("done")
    token = CancelToken()
    token.cancel("never mind")
    state = await runner(model).start("t", settings(), cancel=token)
    assert state.interruption == Cancelled(reason="never mind")
    assert model.requests == []


async def test_h14_owed_calls_of_a_cancelled_run_get_their_message_and_it_can_go_on(
    runner, settings, store
):
    token = CancelToken()

    @tool(effect="read")
    def press_stop() -> str:
        """Press Stop."""
        token.cancel("Stop was pressed")
        return "pressed"

    model = ScriptedModel([Call("press_stop"), Call("list_files"), Call("nothing")], "done")
    carrier = runner(model, tools={**Runner(store).tools, "press_stop": press_stop})
    state = await carrier.start("t", settings(tools=("press_stop", "list_files")), cancel=token)
    assert isinstance(state.interruption, Cancelled)
    assert state.owed() == ()
    assert [call.outcome for call in state.calls.values()][1:] == ["skipped", "skipped"]
    assert all(tool_messages(state))
    resumed = await carrier.resume(state.run_id)
    assert resumed.status == "completed"
    roles = [message["role"] for message in model.requests[-1]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "tool"]


async def test_the_callers_task_being_cancelled_ends_the_run_in_order(runner, settings, store):
    carrier = runner(ScriptedModel("done", latency=30))
    task = asyncio.create_task(carrier.start("t", settings(), run_id="torn"))
    while not store.exists("torn"):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    state = store.load("torn")
    assert isinstance(state.interruption, Cancelled)
    assert store.carrier("torn") is None


async def test_cancelling_what_has_ended_is_refused_and_twice_is_harmless(runner, settings, store):
    carrier = runner(DELETE, "done")
    done = await runner("done").start("t", settings())
    with pytest.raises(NotResumable, match="completed"):
        carrier.cancel(done.run_id, "too late")
    state = await asking(carrier, settings)
    assert carrier.cancel(state.run_id, "one") == "ended"
    assert carrier.cancel(state.run_id, "two") == "ended"
    assert store.load(state.run_id).interruption == Cancelled(reason="one")
    assert store.carrier(state.run_id) is None


async def test_events_are_told_once_in_order_and_only_when_on_the_disk(runner, settings, store):
    seen = []

    def on_event(event):
        with Store.open(store.path) as other:
            assert other.events(event.run_id, after=event.seq - 1, limit=1) == [event]
        seen.append(event.seq)

    carrier = runner(Call("list_files"), "done")
    await carrier.start("t", settings(), on_event=on_event)
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) == 6


async def test_the_models_words_are_passed_on_as_they_come(runner, settings):
    heard = []
    state = await runner(Call("list_files"), "done").start(
        "t", settings(), on_delta=lambda *piece: heard.append(piece)
    )
    assert heard == [(state.run_id, 2, "done")]


async def test_h13_a_tool_that_does_not_stop_is_named_and_its_late_result_dropped(
    runner, settings, store
):
    token = CancelToken()
    release = threading.Event()

    @tool(effect="read")
    def stubborn() -> str:
        """Do not listen."""
        token.cancel("Stop was pressed")
        release.wait(30)
        return "a late result"

    carrier = runner(Call("stubborn"), "done", tools={"stubborn": stubborn})
    state = await carrier.start("t", settings(tools=("stubborn",)), cancel=token)
    release.set()
    (call,) = state.calls.values()
    assert call.outcome == "abandoned"
    stopped = store.events(state.run_id)[-1]
    assert stopped.abandoned == (call.call_id,)
    assert 0 < stopped.stop_ms < 10_000
    await asyncio.sleep(0.05)
    assert "late" not in "".join(tool_messages(store.load(state.run_id)))


async def test_h11_what_was_done_before_the_stop_is_in_the_transcript(
    runner, settings, workspace: Path
):
    token = CancelToken()

    @tool(effect="read")
    def press_stop() -> str:
        """Press Stop."""
        token.cancel("Stop was pressed")
        return "pressed"

    model = ScriptedModel([Call("delete_file", {"path": "notes.txt"}), Call("press_stop")], "done")
    rules = Rules([Rule(action="allow", tool="delete_file")])
    tools = {**bundled_tools(), "press_stop": press_stop}
    carrier = runner(model, tools=tools, rules=rules)
    state = await carrier.start("t", settings(tools=tuple(tools)), cancel=token)
    assert isinstance(state.interruption, Cancelled)
    await carrier.resume(state.run_id)
    assert "deleted notes.txt" in [m.get("content") for m in model.requests[-1]]


async def test_a_hook_of_a_tool_that_fails_does_not_end_the_program(runner, settings):
    def broken(_args, _workspace) -> str:
        raise RuntimeError("no disk in drive")

    @tool(effect="write", fingerprint=broken)
    def one() -> str:
        """One."""
        return "ran"

    @tool(effect="write", describe=broken)
    def two() -> str:
        """Two."""
        return "ran"

    carrier = runner([Call("one"), Call("two")], "done", tools={"one": one, "two": two})
    events = []
    state = await carrier.start("t", settings(tools=("one", "two")), on_event=events.append)
    assert "no disk in drive" in tool_messages(state)[0]
    assert state.interruption.tool_name == "two"
    assert "cannot be said: no disk in drive" in events[-2].effect


async def test_a_run_whose_record_fails_can_be_resumed_elsewhere(runner, settings, store):
    """Its owner lives on, but does not carry it any more."""

    def fail(_messages):
        raise RuntimeError("a bug of the provider")

    with pytest.raises(RuntimeError, match="a bug"):
        await runner(Call("list_files"), fail).start("t", settings(), run_id="broken")
    with Store.open(store.path) as other:
        assert other.load("broken").status == "running"
        state = await runner(Call("list_files"), "done", store=other).resume("broken")
    assert state.answer == "done"


async def test_a_resume_that_is_torn_down_early_leaves_the_run_free(runner, settings, store):
    state = await asking(runner(DELETE, "done"), settings)
    for turns in range(6):
        task = asyncio.create_task(runner(DELETE, "done").resume(state.run_id))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    with Store.open(store.path) as other:
        async with asyncio.timeout(10):
            while other.carrier(state.run_id) is not None:
                await asyncio.sleep(0.01)
        assert (await runner("never", "done", store=other).resume(state.run_id)).turns >= 1


async def test_a_write_does_not_begin_after_the_stop(runner, settings, store, workspace: Path):
    """Stop comes while the disk is waited for."""
    token = CancelToken()

    class StopThenAllow:
        def rule_on(self, _tool_name, _args) -> Ruling:
            token.cancel("Stop was pressed")
            return Ruling("allow", "any")

    carrier = runner(DELETE, "done", rules=StopThenAllow())
    state = await carrier.start("t", settings(), cancel=token)
    assert isinstance(state.interruption, Cancelled)
    assert (workspace / "access.log").exists()
    assert [call.outcome for call in state.calls.values()] == ["skipped"]
    assert state.tool_runs == 0
    assert store.load(state.run_id) == state
