"""`uitweg compare A B`."""

import json

TASK = "Which file mentions a timeout?"


def started(uitweg, model: str) -> str:
    return uitweg("run", TASK, "--model", model, "--max-turns", "4", "--json").closing["run_id"]


def test_two_runs_side_by_side_and_where_they_part(uitweg):
    left, right = started(uitweg, "plan"), started(uitweg, "runaway")
    said = uitweg("compare", left, right)
    assert said.code == 0
    text = " ".join(said.out.split())
    assert "The first 2 steps are the same. They part at step 3:" in text
    assert "max_turns_exceeded" in text
    value = json.loads(uitweg("compare", left, right, "--json").out)
    assert value["same_steps"] == 2
    assert value["parting"]["left"]["title"] == 'asks for read_file {"path":"errors.log"}'


def test_a_run_is_the_same_as_itself(uitweg):
    run = started(uitweg, "plan")
    assert "Every step is the same." in uitweg("compare", run, run).out


def test_a_run_that_is_not_there_is_said(uitweg):
    assert uitweg("compare", "nothing", "nothing").code == 1
