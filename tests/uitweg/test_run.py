"""`uitweg run`: the trace, the answer, the ending, its exit code."""

from __future__ import annotations

import json
import signal

import pytest

TASK = "Which file mentions a timeout?"


def test_the_published_run_to_the_token(uitweg):
    said = uitweg("run", TASK, "--model", "plan", "--json")
    assert said.code == 0
    closing = said.closing
    assert list(closing) == [
        "run_id", "status", "reason", "interruption", "turns", "tool_runs", "prompt_tokens",
        "cached_tokens", "completion_tokens", "cost_usd", "seconds", "answer",
        "answered_from_evidence", "model", "workspace",
    ]  # fmt: skip
    assert closing["status"] == "completed"
    assert (closing["turns"], closing["tool_runs"]) == (3, 2)
    assert (closing["prompt_tokens"], closing["completion_tokens"]) == (815, 70)
    assert closing["cost_usd"] == 0.00247
    assert closing["model"] == "plan"
    assert closing["answer"] == "errors.log mentions a timeout: worker 7 timed out after 30000 ms."
    assert "read_file" in said.err


def test_the_trace_is_printed_with_the_answer_at_the_end(uitweg):
    said = uitweg("run", TASK, "--model", "plan")
    lines = said.out.splitlines()
    assert lines[-1] == "errors.log mentions a timeout: worker 7 timed out after 30000 ms."
    assert said.out.count(lines[-1]) == 1
    assert lines[-2].startswith("completed: It answered. · 3 turns · 2 tool runs · 815 in, 70 out")
    assert '  read_file {"path":"errors.log"}' in lines
    assert "turn 1 · 204 in, 23 out · $0.000684 so far" in said.out
    assert "\x1b" not in said.out
    assert said.err == ""


@pytest.mark.parametrize(
    ("options", "code", "status", "hint"),
    [
        (["--model", "runaway", "--max-turns", "3"], 3, "max_turns_exceeded", "--max-turns 6"),
        (["--model", "runaway", "--max-cost", "0.002"], 4, "budget_exceeded", "--max-cost 0.004"),
        (["--model", "runaway", "--max-tokens", "500"], 4, "budget_exceeded", "--max-tokens 1000"),
        (["--model", "runaway", "--max-repeats", "3"], 6, "interrupted", "uitweg resume"),
        (["--model", "destructive"], 5, "interrupted", "uitweg approve"),
        (["--model", "plan?fault=context_length"], 1, "interrupted", "uitweg resume"),
    ],
)
def test_each_ending_has_its_exit_code_and_says_how_to_go_on(uitweg, options, code, status, hint):
    said = uitweg("run", TASK, *options)
    assert said.code == code, said.out + said.err
    assert f"{status}: " in said.out
    assert hint in said.out
    assert json.loads(uitweg("runs", "--json").out)["status"] == status


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "  "], "The task is empty"),
        (["run", TASK, "--model", "nobody"], "has no model nobody. It has: plan"),
        (["run", TASK, "--model", "plan", "--max-cost", "much"], "--max-cost is 'much'"),
        (["run", TASK, "--model", "plan", "--max-cost", "0"], "These settings cannot be"),
        (["run", TASK, "--model", "plan", "--price-in", "-1"], "--price-in is '-1'"),
        (["run", TASK, "--model", "plan", "--workspace", "/no/such"], "not a folder"),
    ],
)
def test_what_cannot_be_is_one_clear_line_and_no_run(uitweg, arguments, message):
    said = uitweg(*arguments)
    assert said.code == 2
    assert said.err.startswith("uitweg: ")
    assert message in said.err
    assert "No run yet" in uitweg("runs").out


@pytest.mark.parametrize(
    "arguments", [["run"], ["run", TASK, "--max-turns", "0"], ["run", "a", "b"]]
)
def test_wrong_usage_is_two(uitweg, arguments):
    assert uitweg(*arguments).code == 2


def test_an_address_where_nobody_listens_says_what_to_do(uitweg, monkeypatch):
    monkeypatch.setenv("LLM_BASE_URL", "http://127.0.0.1:1/v1")
    said = uitweg("run", TASK)
    assert said.code == 1
    assert "uitweg serve" in said.err


def test_h17_a_price_of_nothing_is_a_price(uitweg):
    closing = uitweg(
        "run", TASK, "--model", "plan", "--price-in", "0", "--price-out", "0", "--json"
    ).closing
    assert closing["cost_usd"] == 0


def test_any_folder_can_be_the_workspace(uitweg, tmp_path):
    (tmp_path / "errors.log").write_text("worker 9 timed out after 5 ms\n")
    closing = uitweg("run", TASK, "--model", "plan", "--workspace", str(tmp_path), "--json").closing
    assert "worker 9 timed out after 5 ms" in closing["answer"]


def test_a_subagents_steps_are_shown_inside_the_parents(uitweg):
    said = uitweg("run", TASK, "--model", "research")
    assert said.code == 0
    assert "    turn 1" in said.out
    assert said.out.splitlines()[0].startswith("run ")


def test_ctrl_c_records_the_run_and_the_hint_resumes_it(process, uitweg):
    running = process("run", "Scan the archive", "--model", "scan")
    pressed = False
    seen = []
    for line in running.stdout:
        seen.append(line)
        if "200 of 1,200" in line and not pressed:
            pressed = True
            running.send_signal(signal.SIGINT)
    assert running.wait(30) == 130
    told = "".join(seen)
    assert "interrupted: " in told
    assert "Ctrl-C was pressed" in told
    run_id = json.loads(uitweg("runs", "--json").out)["run_id"]
    assert seen[-1].strip() == f"go on  uitweg resume {run_id}"
    said = uitweg("resume", run_id)
    assert said.code == 0, said.out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_process_that_is_told_to_end_records_its_run(process, uitweg, number):
    running = process("run", "Scan the archive", "--model", "scan", "--json")
    for line in running.stdout:
        if line.startswith("    200 of"):
            running.send_signal(number)
    assert running.wait(30) == 130
    assert json.loads(uitweg("runs", "--json").out)["status"] == "interrupted"
