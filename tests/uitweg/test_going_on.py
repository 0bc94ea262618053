"""`resume`, `approve`, `reject`, `cancel`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

TASK = "Free some space."


@pytest.fixture
def waiting(uitweg, home):
    """The id of a run that waits for the approval of a deletion."""
    said = uitweg("run", TASK, "--model", "destructive", "--json")
    assert said.code == 5
    assert said.closing["interruption"]["tool_name"] == "delete_file"
    assert (home / "demo" / "access.log").exists()
    return said.closing["run_id"]


def test_approve_runs_the_call_once_and_goes_on(uitweg, home, waiting):
    said = uitweg("approve", waiting, "--json")
    assert said.code == 0
    assert said.closing["answer"] == "Deleted access.log to free space."
    assert said.closing["turns"] == 3
    assert not (home / "demo" / "access.log").exists()
    again = uitweg("approve", waiting)
    assert again.code == 1
    assert "waits for nobody's decision: it is completed" in again.err


def test_approve_with_other_arguments(uitweg, home, waiting):
    said = uitweg("approve", waiting, "--args", '{"path":"notes.txt"}')
    assert said.code == 0
    assert (home / "demo" / "access.log").exists()
    assert not (home / "demo" / "notes.txt").exists()


@pytest.mark.parametrize("arguments", ["nonsense", "[]", "null"])
def test_arguments_that_are_no_object_are_wrong_usage(uitweg, waiting, arguments):
    assert uitweg("approve", waiting, "--args", arguments).code == 2


def test_arguments_that_do_not_fit_change_nothing(uitweg, waiting):
    said = uitweg("approve", waiting, "--args", '{"file":"x"}')
    assert (said.code, "`path` is missing" in said.err) == (1, True)
    assert uitweg("approve", waiting).code == 0


def test_reject_needs_a_reason_and_tells_it(uitweg, home, waiting):
    assert uitweg("reject", waiting).code == 2
    assert uitweg("reject", waiting, "--reason", " ").code == 1
    said = uitweg("reject", waiting, "--reason", "It is still needed.", "--json")
    assert said.code == 0
    assert said.closing["answer"] == "I did not delete anything: you declined the deletion."
    assert (home / "demo" / "access.log").exists()


def test_h4_a_cancelled_run_takes_no_approval_any_more(uitweg, home, waiting):
    assert "interrupted" in uitweg("cancel", waiting).out
    said = uitweg("approve", waiting)
    assert said.code == 1
    assert "it is interrupted (cancelled)" in said.err
    assert (home / "demo" / "access.log").exists()


@pytest.mark.parametrize("flag", ["--happened", "--again"])
def test_words_for_a_call_in_doubt_do_not_fit_one_that_has_not_begun(uitweg, waiting, flag):
    assert "has not begun" in uitweg("approve", waiting, flag).err


def test_only_one_way_to_approve_at_a_time(uitweg, waiting):
    assert uitweg("approve", waiting, "--happened", "--again").code == 2


def test_resume_with_a_higher_limit_runs_what_was_owed(uitweg):
    first = uitweg("run", "x", "--model", "plan", "--max-turns", "1", "--json").closing
    assert (first["turns"], first["tool_runs"]) == (1, 0)
    said = uitweg("resume", first["run_id"], "--max-turns", "5", "--json")
    assert said.code == 0
    assert (said.closing["turns"], said.closing["tool_runs"]) == (3, 2)


def test_resume_of_a_completed_run_tells_it_again(uitweg):
    first = uitweg("run", "x", "--model", "plan", "--json").closing
    said = uitweg("resume", first["run_id"][:8], "--json")
    assert said.code == 0
    assert said.closing == first


def test_a_run_that_is_not_there_is_said(uitweg):
    for command in ("resume", "approve", "cancel", "show", "trace"):
        said = uitweg(command, "nope")
        assert (said.code, "There is no run nope" in said.err) == (1, True)


def test_cancel_reaches_a_run_of_another_process(process, uitweg):
    running = process("run", "Scan the archive", "--model", "scan")
    for line in running.stdout:
        if "200 of 1,200" in line:
            run_id = json.loads(uitweg("runs", "--json").out)["run_id"]
            said = uitweg("cancel", run_id, "--reason", "enough")
            break
    assert said.code == 0
    assert "enough" in said.out
    assert running.wait(30) == 130


def test_a_killed_run_is_found_and_resumed(process, uitweg):
    running = process("run", "Scan the archive", "--model", "scan")
    for line in running.stdout:
        if "200 of 1,200" in line:
            running.send_signal(signal.SIGKILL)
            break
    running.wait(30)
    run = json.loads(uitweg("runs", "--json").out)
    assert run["status"] == "running"
    assert "left behind" in uitweg("show", run["run_id"]).out
    assert uitweg("resume", run["run_id"]).code == 0


DIES = """
import asyncio, os, sys
from dataclasses import replace
from harness.runner import Runner
from harness.state import Decision
from harness.tools import bundled_tools, delete_file
from uitweg.carry import open_store

def delete_and_die(path, context):
    (context.workspace.root / path).unlink()
    os._exit(9)

async def main(run_id):
    store = open_store()
    deadly = replace(delete_file, function=delete_and_die)
    runner = Runner(store, tools={**bundled_tools(), "delete_file": deadly})
    waiting = store.load(run_id).interruption
    decision = Decision(call_id=waiting.call_id, action="approve", digest=waiting.digest)
    await runner.decide(run_id, decision)
    await runner.resume(run_id)

asyncio.run(main(sys.argv[1]))
"""


@pytest.fixture
def doubtful(uitweg, waiting, home):
    """A run whose deletion began in a process that died before it was known how it ended."""
    assert subprocess.run([sys.executable, "-c", DIES, waiting]).returncode == 9
    assert not (home / "demo" / "access.log").exists()
    said = uitweg("resume", waiting)
    assert said.code == 5
    assert f"uitweg approve {waiting} --happened" in said.out
    return waiting


def test_a_write_in_doubt_is_not_run_again_in_silence(uitweg, doubtful):
    assert "Look whether it took effect" in uitweg("approve", doubtful).err
    said = uitweg("approve", doubtful, "--happened")
    assert said.code == 0, said.out + said.err


def test_a_write_in_doubt_can_be_left_as_it_is(uitweg, doubtful):
    said = uitweg("reject", doubtful, "--reason", "leave it")
    assert said.code == 0, said.out + said.err
