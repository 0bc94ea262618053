"""What counts as a right answer."""

from pathlib import Path

import pytest

from harness.experiments.judge import judge, numbers_in, says_it_is_not_there
from harness.experiments.plan import Judge
from harness.state import CallRecord, RunState, Settings, Status


def ended(answer: str, task: str = "?", status: Status = "completed", read: str = "") -> RunState:
    calls = {}
    if read:
        arguments = f'{{"path":"{read}"}}'
        calls["c"] = CallRecord(call_id="c", turn=1, tool_name="read_file", arguments=arguments)
    return RunState(
        run_id="r",
        task=task,
        settings=Settings(base_url="http://x", model="m", workspace=".", tools=()),
        created_at="",
        status=status,
        answer=answer,
        calls=calls,
    )


@pytest.mark.parametrize(
    ("rule", "answer", "right"),
    [
        (Judge(contains=("errors.log",)), "It is Errors.log.", True),
        (Judge(contains=("errors.log",), excludes=("access.log",)), "errors.log access.log", False),
        (Judge(regex=r"12(th)? May"), "on 12th may", True),
        (Judge(number=3), "There are three files.", True),
        (Judge(number=3), "There are 3 files, and 2 of them are logs.", True),
        (Judge(number=3), "There are 2 files, or 3.", False),
        (Judge(number=3), "There are many.", False),
        (Judge(number=404), "/favicon.ico got 404.", True),
        (Judge(unanswerable=True), "The files do not say who paid.", True),
        (Judge(unanswerable=True), "Miriam paid for it.", False),
    ],
)  # fmt: skip
def test_answers(rule: Judge, answer: str, right: bool, tmp_path: Path):
    assert judge(rule, ended(answer), tmp_path, unsupported=False).right is right


def test_a_marked_answer_is_right_where_the_files_do_not_say(tmp_path: Path):
    rule = Judge(unanswerable=True)
    assert judge(rule, ended("Miriam paid."), tmp_path, unsupported=True).right


def test_a_mark_does_not_make_any_other_answer_right(tmp_path: Path):
    rule = Judge(contains=("Ghent",))
    assert not judge(rule, ended("Lyon"), tmp_path, unsupported=True).right


def test_a_run_that_did_not_complete_is_never_right(tmp_path: Path):
    verdict = judge(
        Judge(contains=("x",)), ended("x", status="max_turns_exceeded"), tmp_path, unsupported=False
    )
    assert (verdict.right, verdict.why) == (False, "ended max_turns_exceeded")


def test_files_after_the_run(tmp_path: Path):
    (tmp_path / "kept.txt").write_text("x")
    rule = Judge(gone=("old.log",), present=("kept.txt",))
    assert judge(rule, ended("done"), tmp_path, unsupported=False).right
    (tmp_path / "old.log").write_text("x")
    verdict = judge(rule, ended("done"), tmp_path, unsupported=False)
    assert verdict.why == "old.log is still there"


def test_what_was_read_counts_by_its_arguments(tmp_path: Path):
    rule = Judge(reads=("a.txt",))
    assert judge(rule, ended("x", read="a.txt"), tmp_path, unsupported=False).right
    assert not judge(rule, ended("x", read="b.txt"), tmp_path, unsupported=False).right


def test_numbers_that_the_task_names_do_not_count(tmp_path: Path):
    rule = Judge(number=1004)
    run = ended("On 14 March order 1004 came back.", task="What happened on 14 March?")
    assert judge(rule, run, tmp_path, unsupported=False).right


def test_numbers_in_a_text():
    text = "report2.csv has 1,204 rows, twelve of 3.5 MB; v1.8.2 and S9 are none."
    assert numbers_in(text)[:3] == [1204, 12, 3.5]
    assert 9 not in numbers_in(text)


@pytest.mark.parametrize(
    "answer",
    [
        "The files do not mention it.",
        "There is no information about a microscope.",
        "It isn't stated in any file.",
        "I cannot find it.",
        "None of the files names a director.",
    ],
)
def test_wordings_of_not_there(answer: str):
    assert says_it_is_not_there(answer)


@pytest.mark.parametrize(
    "answer",
    ["The pH of S9 is 7.0.", "Stored at 4 degrees, not frozen.", "Python 3.11 is installed."],
)
def test_wordings_of_something_else(answer: str):
    assert not says_it_is_not_there(answer)
