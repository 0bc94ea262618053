"""`uitweg experiment`: from the file to the table and the report, on a scripted server."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

SIX = Path(__file__).parents[2] / "experiments" / "six.toml"

SMALL = """
name = "small"
[[provider]]
name = "endpoint"
model = "plan"
[[setting]]
name = "none"
profile = "none"
[[task]]
id = "timeout"
task = "Which file mentions a timeout?"
judge = { contains = ["errors.log"] }
[[task]]
id = "count"
task = "How many files are there?"
judge = { number = 3 }
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def test_the_six_tasks_on_a_scripted_model_that_makes_no_mistakes(uitweg, tmp_path: Path):
    out = tmp_path / "out"
    said = uitweg(
        "experiment", str(SIX), "--provider", "scripted", "--setting", "none", "--out", str(out)
    )
    assert said.code == 0
    assert "6 of 6" in said.out
    value = json.loads((out / "results.json").read_text())
    assert [run["right"] for run in value["runs"]] == [True] * 6
    assert value["cells"][0]["endings"] == {"completed": 6}
    assert (out / "results.csv").read_text().count("\n") >= 7
    assert "Experiment six" in (out / "report.html").read_text()


def test_a_scripted_model_gets_the_plain_loop_whatever_the_setting(uitweg, tmp_path: Path):
    out = tmp_path / "out"
    arguments = ["--provider", "scripted", "--setting", "default", "--task", "count"]
    assert uitweg("experiment", str(SIX), *arguments, "--out", str(out)).code == 0
    (run,) = json.loads((out / "results.json").read_text())["runs"]
    assert (run["policies"], run["turns"]) == ([], 2)


def test_runs_are_ordinary_runs_and_are_not_made_twice(uitweg, small: Path, home: Path):
    assert uitweg("experiment", str(small)).code == 0
    first = json.loads((home / "experiments/small/results.json").read_text())["runs"]
    assert [run["right"] for run in first] == [True, False]
    assert uitweg("show", first[0]["run_id"]).code == 0
    assert uitweg("experiment", str(small)).code == 0
    again = json.loads((home / "experiments/small/results.json").read_text())["runs"]
    assert [run["run_id"] for run in again] == [run["run_id"] for run in first]


def test_against_an_earlier_one_the_changed_cells_are_shown(uitweg, small: Path, tmp_path: Path):
    before, after = tmp_path / "before", tmp_path / "after"
    assert uitweg("experiment", str(small), "--out", str(before)).code == 0
    small.write_text(SMALL.replace('model = "plan"', 'model = "runaway"'))
    said = uitweg("experiment", str(small), "--out", str(after), "--against", str(before))
    assert said.code == 0
    assert "right, now wrong" in said.out
    assert "Against the earlier experiment" in (after / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--task", "nothing"], "There is no task 'nothing'; there are: timeout, count."),
        (["--against", "/nowhere"], "/nowhere holds no results of an experiment."),
    ],
)
def test_what_cannot_be_is_said(uitweg, small: Path, arguments: list[str], says: str):
    said = uitweg("experiment", str(small), *arguments)
    assert said.code == 1
    assert says in " ".join(said.err.split())


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(
    process, uitweg, small: Path, home: Path
):
    slow = SMALL.replace('"plan"', '"plan?first_token_ms=700"')
    small.write_text(slow)
    running = process("experiment", str(small))
    for line in running.stdout:
        if line.startswith("right"):
            break
    running.send_signal(signal.SIGINT)
    rest = running.communicate(timeout=60)[0]
    assert running.returncode == 130
    assert "the same command goes on" in " ".join(rest.split())
    kept = (home / "experiments/small/results.jsonl").read_text().splitlines()
    assert len(kept) == 1
    assert uitweg("experiment", str(small)).code == 0
    runs = json.loads((home / "experiments/small/results.json").read_text())["runs"]
    assert runs[0]["run_id"] == json.loads(kept[0])["run_id"]
    assert len(runs) == 2
