"""The experiment file, and the files that come with the project."""

from pathlib import Path

import pytest

from harness.experiments.plan import PlanError, read_plan

SHIPPED = Path(__file__).parents[3] / "experiments"

PLAN = """
name = "small"
repeats = 2
[[provider]]
name = "real"
[[provider]]
name = "scripted"
server = "scripted"
model = "small-{task}"
[[setting]]
name = "none"
profile = "none"
[[task]]
id = "one"
task = "Which?"
workspace = "folder"
judge = { contains = ["a"] }
"""


def written(tmp_path: Path, text: str) -> Path:
    (tmp_path / "folder").mkdir(exist_ok=True)
    path = tmp_path / "small.toml"
    path.write_text(text)
    return path


def test_cells_are_tasks_times_providers_times_settings_times_repeats(tmp_path: Path):
    plan = read_plan(written(tmp_path, PLAN))
    keys = [cell.key.removeprefix("one/") for cell in plan.runs()]
    assert keys == ["real/none/1", "real/none/2", "scripted/none/1", "scripted/none/2"]
    assert plan.provider[1].model_for(plan.task[0]) == "small-one"


def test_a_cell_s_digest_changes_with_what_it_is_and_not_with_its_repeat(tmp_path: Path):
    first, second, *_ = read_plan(written(tmp_path, PLAN)).runs()
    other = read_plan(written(tmp_path, PLAN.replace("Which?", "Who?"))).runs()[0]
    assert first.digest("w") == second.digest("w")
    assert first.digest("w") != other.digest("w")
    assert first.digest("w") != first.digest("changed files")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("repeats = 2", "repeat = 2", "repeat"),
        ('judge = { contains = ["a"] }', "judge = {}", "states nothing"),
        ('judge = { contains = ["a"] }', 'judge = { regex = "(" }', "not a regular expression"),
        ('workspace = "folder"', 'workspace = "elsewhere"', "there is no folder elsewhere"),
        ('name = "scripted"', 'name = "real"', "two providers are called 'real'"),
        ('profile = "none"', 'profile = "none"\npolicies = []', "one of the two"),
        ("repeats = 2", "repeats = ", "not valid TOML"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, old: str, new: str, says: str):
    with pytest.raises(PlanError, match=says):
        read_plan(written(tmp_path, PLAN.replace(old, new)))


def test_a_missing_file_is_said():
    with pytest.raises(PlanError, match="cannot be read"):
        read_plan(Path("/nowhere/plan.toml"))


def test_a_part_of_an_experiment_by_name(tmp_path: Path):
    plan = read_plan(written(tmp_path, PLAN))
    assert [p.name for p in plan.only("provider", ["scripted"]).provider] == ["scripted"]
    with pytest.raises(PlanError, match="There is no task 'two'; there are: one"):
        plan.only("task", ["two"])


@pytest.mark.parametrize(
    "name", ["six", "policies", "held_out", "held_out_2", "dev", "dev_not_in_files"]
)
def test_the_files_that_come_with_the_project_can_be_read(name: str):
    assert read_plan(SHIPPED / f"{name}.toml").name == name


def test_the_held_out_set_is_what_its_heading_says():
    plan = read_plan(SHIPPED / "held_out.toml")
    unanswerable = [task for task in plan.task if task.judge.unanswerable]
    assert (len(plan.task), len(unanswerable)) == (28, 6)
    assert len({task.workspace for task in plan.task}) == 5
    assert any(task.judge.gone for task in plan.task)
