"""What the set-up shows, and what it says when a program fails."""

import sys

import pytest


@pytest.fixture
def steps(script):
    return script("steps")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (9, "9 s"), (136, "2 min 16 s"), (60, "1 min 0 s")]
)
def test_duration(steps, seconds, text):
    assert steps.duration(seconds) == text


def test_a_step_shows_figures_now_and_then(steps, capsys, monkeypatch):
    now = iter(range(0, 1000, 4))
    monkeypatch.setattr(steps.time, "monotonic", lambda: next(now))
    step = steps.Step("Building")
    for done in range(1, 11):
        step.at(done, 10, "files")
    step.done()
    assert capsys.readouterr().err.splitlines() == [
        "Building …",
        "Building: 3 of 10 files, 30 %, 28 s left",
        "Building: 6 of 10 files, 60 %, 16 s left",
        "Building: 9 of 10 files, 90 %, 4 s left",
        "Building: done in 44 s.",
    ]


def test_a_program_that_fails_shows_its_end_and_its_log(steps, tmp_path):
    log = tmp_path / "logs/x.log"
    code = "for i in range(100): print('line', i)\nraise SystemExit(3)"
    with pytest.raises(steps.SetupError) as error:
        steps.run([sys.executable, "-c", code], log)
    text = str(error.value)
    assert "failed with code 3" in text
    assert "line 99" in text
    assert "line 10\n" not in text
    assert str(log) in text
    assert "line 0\n" in log.read_text()


def test_every_line_of_a_program_is_seen(steps, tmp_path):
    seen = []
    steps.run([sys.executable, "-c", "print('a'); print('b')"], tmp_path / "log", seen.append)
    assert seen == ["a\n", "b\n"]


def test_succeeds(steps):
    assert steps.succeeds([sys.executable, "-c", "pass"])
    assert not steps.succeeds([sys.executable, "-c", "raise SystemExit(1)"])
