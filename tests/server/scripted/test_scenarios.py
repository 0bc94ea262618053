"""Every scenario against the published figures, with a loop of the test's own."""

import json
from importlib import resources

import pytest

from server.scripted.scenarios import SCENARIOS

PUBLISHED = json.loads(
    resources.files("harness.figures").joinpath("published.json").read_text("utf-8")
)
NAMES = [
    "plan", "runaway", "recover", "permanent", "repeat", "repeat_delete", "destructive", "scan",
    "research",
]  # fmt: skip


def test_the_scenarios_are_these():
    assert [scenario.name for scenario in SCENARIOS] == NAMES


def test_plan(loop):
    run, said = loop("plan"), PUBLISHED["plan"]
    assert run.prompts == said["prompts"]
    assert (sum(run.prompts), sum(run.completions)) == (said["in"], said["out"])
    assert run.cost == said["cost"]
    assert run.answer == said["answer"]
    assert len(run.tool_runs) == said["tool_runs"]


@pytest.mark.parametrize("turns", [8, 20, 50, 100])
def test_runaway(loop, turns):
    run, said = loop("runaway", turns=turns), PUBLISHED["runaway_by_turn_limit"][str(turns)]
    assert sum(run.prompts) == said.get("in", sum(run.prompts))
    assert round(run.cost, 9) == said.get("cost", round(run.cost, 9))
    assert run.prompts[1] - run.prompts[0] == 65
    assert {b - a for a, b in zip(run.prompts[1:], run.prompts[2:], strict=False)} == {64}
    assert set(run.completions) == {23}


def test_runaway_by_budget(loop):
    said = PUBLISHED["runaway_by_budget"]["0.010"]
    assert loop("runaway", turns=said["turns"] - 1).cost < 0.010
    assert round(loop("runaway", turns=said["turns"]).cost, 9) == said["cost"]


RECOVER = "Read timeout.log and tell me which file mentions a timeout."


def test_recover(loop):
    told = loop("recover", RECOVER)
    said = PUBLISHED["tool_error_policies"]
    assert (told.answer, len(told.prompts)) == (said["told"]["answer"], said["told"]["turns"])
    fatal = loop("recover", RECOVER, turns=1)
    assert round(told.cost / fatal.cost, 1) == said["told_cost_over_fatal_cost"]
    vague = loop("recover", RECOVER, read_file="The tool failed.")
    assert vague.answer == said["vague"]["answer"]


def test_permanent(loop):
    error = "permission denied: secret/keys.log is locked"
    run = loop("permanent", "Read secret/keys.log.", turns=12, read_file=error)
    said = PUBLISHED["permanent_error_at_cap_12"]
    assert (sum(run.prompts), run.cost) == (said["in"], said["cost"])
    assert set(run.completions) == {31}
    steps = [b - a for a, b in zip(run.prompts, run.prompts[1:], strict=False)]
    assert steps == [71] + [70] * 10
    assert (len(run.tool_runs), run.answer) == (said["tool_runs"], said["answer"])
    assert round(run.cost / loop("recover", RECOVER).cost, 1) == said["over_recovering_run"]


def test_permanent_stops_when_the_file_can_be_read(loop):
    run = loop("permanent", read_file="hunter2")
    assert (len(run.prompts), run.answer) == (2, "secret/keys.log says: hunter2")


def test_repeat(loop):
    run, said = loop("repeat"), PUBLISHED["repeated_read"]
    extra = (2 * run.prompts[2] + 12 * run.completions[1]) / 1_000_000
    assert extra == said["extra_cost"]
    assert f"{extra / (run.cost - extra):.0%}" == said["extra"]
    assert run.tool_runs == [("read_file", "errors.log")] * 2
    assert run.answer == "errors.log mentions a timeout."


def test_repeat_delete(loop):
    run = loop("repeat_delete")
    assert run.tool_runs == [("delete_file", "access.log")] * 2
    assert (len(run.prompts), run.answer) == (3, "Deleted access.log to free space.")


DESTRUCTIVE = "Free up some disk space."


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("deleted access.log", PUBLISHED["approval"]["approve"]["answer"]),
        (
            "The user declined this call: it is still needed",
            PUBLISHED["approval"]["reject_with_reason"]["answer"],
        ),
        ("", PUBLISHED["approval"]["reject_with_nothing"]["answer"]),
        ("The arguments were changed. deleted notes.txt", "Deleted notes.txt to free space."),
        (
            "The program ended, so its outcome is unknown. It was not run again.",
            "I do not know whether access.log was deleted.",
        ),
        (
            "The program ended while this call ran. The user has checked: it took effect.",
            "Deleted access.log to free space.",
        ),
        ("no such file: access.log.", "I could not delete access.log: no such file: access.log."),
    ],
)
def test_destructive_answers_from_what_the_tool_said(loop, result, answer):
    run = loop("destructive", DESTRUCTIVE, delete_file=result)
    assert run.answer == answer
    assert round(loop("destructive", DESTRUCTIVE, turns=2).cost, 9) == 0.00157


def test_scan(chat, called):
    offered = ["scan_archive"]
    assert chat("scan", tools=offered).calls[0]["function"] == {
        "name": "scan_archive",
        "arguments": '{"word":"timeout"}',
    }
    done = called(1, "scan_archive", '{"files":1200,"matches":12}', word="timeout")
    reply = chat("scan", *done, tools=offered)
    assert reply.text == "12 of the 1200 files in the archive mention a timeout."
    stopped = called(1, "scan_archive", "cancelled", word="timeout")
    assert chat("scan", *stopped, tools=offered).text == "The scan gave no result: cancelled"


def test_research_and_its_helper(chat, called):
    parent = ["list_files", "read_file", "research"]
    assert chat("research", tools=parent).calls[0]["function"]["name"] == "research"
    done = called(1, "research", "errors.log.", question="Which?")
    assert chat("research", *done, tools=parent).text == "The helper says: errors.log."
    child = ["list_files", "read_file"]
    assert chat("research", tools=child).calls[0]["function"]["name"] == "list_files"


def test_ids_are_unique_and_the_same_every_time(loop):
    first, second = loop("runaway", turns=12), loop("runaway", turns=12)
    ids = [c["id"] for m in first.messages if m["role"] == "assistant" for c in m["tool_calls"]]
    assert ids == [f"c{n}" for n in range(1, 13)]
    assert first.messages == second.messages


def test_a_call_that_is_not_offered_is_said_in_words(chat):
    reply = chat("plan", tools=["read_file"])
    assert reply.text == "I was not given the tool list_files, so I cannot go on."
    assert (reply.calls, reply.finish.reason) == ([], "stop")
