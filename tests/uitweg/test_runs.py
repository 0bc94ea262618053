"""`runs`, `show`, `trace`."""

from __future__ import annotations

import json

from harness.events import EVENT


def test_no_run_yet_says_what_to_do(uitweg):
    assert 'Start one: uitweg run "' in uitweg("runs").out


def test_runs_are_listed_newest_first_and_filtered(uitweg):
    uitweg("run", "Which file mentions a timeout?", "--model", "plan")
    uitweg("run", "Free some space.", "--model", "destructive")
    rows = uitweg("runs").out.splitlines()
    assert rows[0].split() == [
        "run", "began", "(UTC)", "ending", "model", "turns", "tokens", "cost", "task",
    ]  # fmt: skip
    assert "approval" in rows[1]
    assert "Which file mentions a timeout?" in rows[2]
    assert "885" in rows[2]
    for options, model in (
        (["--status", "completed"], "plan"),
        (["--model", "plan"], "plan"),
        (["--text", "SPACE"], "destructive"),
        (["--limit", "1"], "destructive"),
    ):
        (line,) = uitweg("runs", "--json", *options).out.splitlines()
        assert json.loads(line)["model"] == model


def test_an_ending_that_does_not_exist_is_wrong_usage(uitweg):
    said = uitweg("runs", "--status", "done")
    assert said.code == 2
    assert "budget_exceeded" in said.err


def test_show_tells_every_step_and_what_can_be_done(uitweg):
    run_id = uitweg("run", "Free some space.", "--model", "destructive", "--json").closing["run_id"]
    shown = uitweg("show", run_id[:6]).out
    assert shown.startswith("Free some space.\n")
    assert 'needs approval: delete_file {"path":"access.log"}' in shown
    assert f"uitweg approve {run_id}" in shown
    assert json.loads(uitweg("show", run_id, "--json").out)["run_id"] == run_id


def test_the_trace_is_one_typed_event_a_line(uitweg):
    run_id = uitweg("run", "x", "--model", "plan", "--json").closing["run_id"]
    events = [EVENT.validate_json(line) for line in uitweg("trace", run_id).out.splitlines()]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert (events[0].type, events[-1].type) == ("run_started", "run_stopped")


def test_a_followed_trace_ends_with_its_run(process, uitweg):
    running = process("run", "Scan the archive", "--model", "scan")
    for line in running.stdout:
        if "200 of 1,200" in line:
            break
    run_id = json.loads(uitweg("runs", "--json").out)["run_id"]
    lines = uitweg("trace", run_id, "--follow").out.splitlines()
    assert json.loads(lines[-1])["type"] == "run_stopped"
    assert running.wait(30) == 0


def test_what_a_model_says_cannot_move_the_cursor(uitweg, tmp_path):
    (tmp_path / "errors.log").write_text("\x1b[2J\u202e worker 1 timed out after 1 ms\n")
    said = uitweg("run", "x", "--model", "plan", "--workspace", str(tmp_path))
    assert "\x1b" not in said.out
    assert "\\x1b[2J\\u202e" in said.out
