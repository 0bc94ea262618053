"""Each policy in a run: what it does, and that it says so."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.events import Guidance
from harness.experiments.plan import read_plan
from harness.guidance import policies
from harness.profiles import PROFILES, UNKNOWN_MODEL, policies_of
from harness.runner import Runner
from harness.scripted_model import Call, ScriptedModel
from harness.state import Decision, Limits, RunState
from harness.tool import tool
from harness.tools import bundled_tools

QUESTION = "Which file mentions a timeout?"
READ = Call("read_file", {"path": "errors.log"})


def notes_of(runner: Runner, state: RunState) -> list[tuple[str, str]]:
    events = runner.store.events(state.run_id)
    return [(e.policy, e.detail) for e in events if isinstance(e, Guidance)]


def says(text: str) -> Any:
    """A model that answers in a clean window and repeats a read for ever otherwise."""

    def line(messages: list[dict[str, Any]]) -> Any:
        clean = "from notes" in messages[0]["content"] or "You report" in messages[0]["content"]
        return text if clean else READ

    return ScriptedModel(line)


async def test_evidence_answers_when_a_turn_brought_nothing_new(runner, settings):
    carrier = runner(says("errors.log"))
    state = await carrier.start(QUESTION, settings(guidance=("evidence",)))
    assert (state.status, state.answer, state.turns) == ("completed", "errors.log", 3)
    assert state.answered_from_evidence
    assert [policy for policy, _ in notes_of(carrier, state)] == ["evidence"]


async def test_evidence_takes_the_last_turn_that_is_left(runner, settings):
    carrier = runner(says("errors.log"))
    limits = Limits(max_turns=2)
    state = await carrier.start(QUESTION, settings(guidance=("evidence",), limits=limits))
    assert (state.status, state.turns) == ("completed", 2)
    assert "Only one turn was left" in notes_of(carrier, state)[0][1]


async def test_evidence_answers_where_a_stop_condition_sees_a_circle(runner, settings):
    def line(messages: list[dict[str, Any]]) -> Any:
        if "from notes" in messages[0]["content"]:
            return "nothing"
        return Call("read_file", {"path": "missing.log", "why": len(messages)})

    carrier = runner(ScriptedModel(line))
    limits = Limits(max_turns=9, max_repeats=2)
    state = await carrier.start(QUESTION, settings(guidance=("evidence",), limits=limits))
    assert state.status == "completed"


async def test_evidence_says_so_when_there_is_none(runner, settings):
    carrier = runner(ScriptedModel(*[Call("nothing_of_the_kind")] * 9))
    limits = Limits(max_turns=3)
    state = await carrier.start(QUESTION, settings(guidance=("evidence",), limits=limits))
    assert state.status == "completed"
    assert state.answer == "The files that were looked at do not say."


async def test_the_plain_loop_runs_to_its_limit(runner, settings):
    state = await runner(says("errors.log")).start(QUESTION, settings(limits=Limits(max_turns=4)))
    assert state.status == "max_turns_exceeded"


async def test_look_first_puts_the_listing_into_the_first_prompt_and_leaves_it(runner, settings):
    model = ScriptedModel(Call("delete_file", {"path": "access.log"}), "done")
    carrier = runner(model)
    await carrier.start("Delete access.log.", settings(guidance=("look_first",)))
    system = model.requests[0][0]["content"]
    assert system.endswith("The files in the folder: access.log, errors.log, notes.txt.")
    assert all(request[0]["content"] == system for request in model.requests)
    said = "The first prompt says: The files in the folder: access.log, errors.log, notes.txt."
    (state,) = carrier.store.runs()
    assert ("look_first", said) in [
        (event.policy, event.detail)
        for event in carrier.store.events(state.run_id)
        if isinstance(event, Guidance)
    ]


async def test_names_that_exist_are_offered_for_a_path(runner, settings):
    seen: list[Any] = []

    class Watching(ScriptedModel):
        async def complete(self, **given: Any) -> Any:
            seen.append(given["tools"])
            return await super().complete(**given)

    carrier = runner(Watching("done"))
    state = await carrier.start("?", settings(guidance=("names_exist",)))
    assert [policy for policy, _ in notes_of(carrier, state)] == ["names_exist"]
    by_name = {tool["function"]["name"]: tool["function"]["parameters"] for tool in seen[0]}
    names = ["access.log", "errors.log", "notes.txt"]
    assert by_name["read_file"]["properties"]["path"]["enum"] == names
    assert by_name["list_files"]["properties"] == {}


async def test_names_that_exist_leave_the_tools_themselves_alone(runner, settings):
    carrier = runner("done")
    before = json.dumps(carrier.tools["read_file"].wire)
    await carrier.start("?", settings(guidance=("names_exist",)))
    assert json.dumps(carrier.tools["read_file"].wire) == before


async def test_repair_calls_what_can_be_read_the_second_time(runner, settings):
    wrong = Call("read_file", {"path": "errors.log", "required": ["path"]})
    carrier = runner(ScriptedModel(wrong, wrong, "unused", "It mentions a timeout."))
    state = await carrier.start(QUESTION, settings(guidance=("repair",)))
    assert [record.outcome for record in state.calls.values()] == ["invalid", "invalid", "ok"]
    assert list(state.calls.values())[-1].arguments == '{"path": "errors.log"}'
    assert [policy for policy, _ in notes_of(carrier, state)] == ["repair"]


async def test_repair_never_guesses_a_write(runner, settings, workspace: Path):
    wrong = Call("delete_file", {"path": "errors.log", "force": True})
    carrier = runner(ScriptedModel(wrong, wrong, "no"))
    state = await carrier.start("?", settings(guidance=("repair",)))
    assert [record.outcome for record in state.calls.values()] == ["invalid", "invalid"]
    assert (workspace / "errors.log").exists()


async def test_plan_reads_for_a_question_and_asks_once(runner, settings):
    model = says("errors.log mentions a timeout.")
    carrier = runner(model)
    state = await carrier.start(QUESTION, settings(guidance=("plan",)))
    assert (state.answer, state.turns, state.tool_runs) == ("errors.log mentions a timeout.", 1, 4)
    assert len(model.requests) == 1
    assert [policy for policy, _ in notes_of(carrier, state)] == ["plan", "plan", "plan"]
    assert 'Only errors.log mentions "timeout".' in model.requests[0][1]["content"]


async def test_plan_reads_only_the_file_that_a_question_names(runner, settings):
    state = await runner(says("x")).start("What does notes.txt say?", settings(guidance=("plan",)))
    assert state.tool_runs == 2


async def test_plan_leaves_a_question_to_the_model_where_it_has_a_reading_tool_of_its_own(
    runner, settings
):
    @tool(effect="read")
    def word_count(path: str) -> str:
        """Count the words of a file."""
        return f"{path}: 7 words"

    model = ScriptedModel(Call("word_count", {"path": "notes.txt"}), "7 words.")
    carrier = runner(model, tools={**bundled_tools(), "word_count": word_count})
    chosen = settings(guidance=("plan",), tools=("list_files", "read_file", "word_count"))
    state = await carrier.start("How many words does notes.txt have?", chosen)
    assert (state.answer, state.turns, state.tool_runs) == ("7 words.", 2, 1)


async def test_plan_leaves_an_order_to_the_model(runner, settings, workspace: Path):
    model = ScriptedModel(Call("delete_file", {"path": "access.log"}), "done")
    state = await runner(model).start("Delete access.log.", settings(guidance=("plan",)))
    assert state.status == "interrupted"
    assert state.tool_runs == 0


async def test_plan_reads_a_file_that_cannot_be_read_once_only(runner, settings, workspace: Path):
    (workspace / "bad.bin").write_bytes(b"\xff\xfe\x00" * 50)
    state = await runner(says("x")).start(QUESTION, settings(guidance=("plan",)))
    assert (state.status, state.turns) == ("completed", 1)


async def test_done_reports_after_the_one_write_that_was_asked_for(runner, settings, workspace):
    def line(messages: list[dict[str, Any]]) -> Any:
        if "You report" in messages[0]["content"]:
            return "access.log was deleted."
        return Call("delete_file", {"path": "access.log"})

    carrier = runner(ScriptedModel(line))
    state = await carrier.start("Delete access.log.", settings(guidance=("done",)))
    asked = state.interruption
    await carrier.decide(
        state.run_id, Decision(call_id=asked.call_id, action="approve", digest=asked.digest)
    )
    state = await carrier.resume(state.run_id)
    assert (state.status, state.answer) == ("completed", "access.log was deleted.")
    assert not (workspace / "access.log").exists()
    assert state.tool_runs == 1


async def test_done_goes_on_while_a_named_file_is_left(runner, settings, workspace: Path):
    def line(messages: list[dict[str, Any]]) -> Any:
        if "You report" in messages[0]["content"]:
            return "Both were deleted."
        gone = any("deleted access.log" in str(m.get("content")) for m in messages)
        return Call("delete_file", {"path": "notes.txt" if gone else "access.log"})

    carrier = runner(ScriptedModel(line))
    task = "Delete access.log and notes.txt."
    state = await carrier.start(task, settings(guidance=("done",)))
    for _ in range(2):
        asked = state.interruption
        decision = Decision(call_id=asked.call_id, action="approve", digest=asked.digest)
        await carrier.decide(state.run_id, decision)
        state = await carrier.resume(state.run_id)
    assert (state.status, state.answer) == ("completed", "Both were deleted.")
    assert {path.name for path in workspace.glob("[!.]*")} == {"errors.log"}


async def test_check_marks_what_no_result_holds(runner, settings):
    carrier = runner(READ, "errors.log speaks of worker 9.")
    state = await carrier.start(QUESTION, settings(guidance=("check",)))
    assert (state.status, state.unsupported) == ("completed", ("9",))
    assert state.answer == "errors.log speaks of worker 9."
    assert notes_of(carrier, state)[-1][0] == "check"


async def test_check_leaves_a_supported_answer_unmarked(runner, settings):
    state = await runner(READ, "errors.log: worker 7 timed out.").start(
        QUESTION, settings(guidance=("check",))
    )
    assert state.unsupported == ()


async def test_an_answer_without_a_look_is_marked(runner, settings):
    state = await runner("access.log").start(QUESTION, settings(guidance=("check",)))
    assert state.unsupported


async def test_a_run_that_a_crash_cut_goes_on_with_its_plan(runner, settings):
    """The policies keep nothing: all that they know is in the run."""
    first = runner(ScriptedModel(lambda _: (_ for _ in ()).throw(KeyboardInterrupt)))
    with pytest.raises(KeyboardInterrupt):
        await first.start(QUESTION, settings(guidance=("plan",)), run_id="r")
    state = await runner(says("errors.log")).resume("r")
    assert (state.status, state.answer, state.tool_runs) == ("completed", "errors.log", 4)


def test_every_profile_names_policies_that_there_are():
    known = policies()
    assert {name for names in PROFILES.values() for name in names} <= set(known)
    assert policies_of("default", "none") == ()
    assert policies_of("default") == PROFILES[UNKNOWN_MODEL]
    order = list(known)
    for names in PROFILES.values():
        assert list(names) == sorted(names, key=order.index)


def test_the_profile_of_a_model_is_one_that_there_is():
    from models.catalogue import load

    assert {model.profile for model in load().models} <= set(PROFILES)


def test_held_out_tasks_are_none_of_the_tasks_for_tuning():
    shipped = Path(__file__).parents[3] / "experiments"
    held_out, dev = read_plan(shipped / "held_out.toml"), read_plan(shipped / "dev.toml")
    assert not {t.workspace for t in held_out.task} & {t.workspace for t in dev.task}
