"""What a person sees of a fetch."""

import io

import pytest

from models import progress
from models.progress import Lines, figures, megabytes


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("done", "speed", "text"),
    [
        (0, 0, "x: 0 of 491 MB, 0 %"),
        (122_850_000, 40e6, "x: 123 of 491 MB, 25 %, 40.0 MB/s, 9 s left"),
        (122_850_000, 1e6, "x: 123 of 491 MB, 25 %, 1.0 MB/s, 6 min left"),
        (491_400_000, 40e6, "x: 491 of 491 MB, 100 %, 40.0 MB/s"),
    ],
)
def test_figures(done, speed, text):
    assert figures("x", done, 491_400_000, speed) == text


def test_small_sizes_are_not_rounded_away():
    assert megabytes(400_000) == "0.40 MB"
    assert megabytes(1_234_567_890) == "1,235 MB"


def test_a_log_gets_few_lines(monkeypatch):
    now = iter(float(second) for second in range(100))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    stream = io.StringIO()
    lines = Lines(stream)
    for done in range(21):
        lines.advance("x", done * 10**6, 20 * 10**6)
    lines.advance("x", 20 * 10**6, 20 * 10**6)
    told = stream.getvalue().splitlines()
    assert told == [
        "x: 5 of 20 MB, 25 %, 1.0 MB/s, 15 s left",
        "x: 10 of 20 MB, 50 %, 1.0 MB/s, 10 s left",
        "x: 15 of 20 MB, 75 %, 1.0 MB/s, 5 s left",
        "x: 20 of 20 MB, 100 %, 1.0 MB/s",
    ]


def test_a_terminal_gets_one_line_that_changes():
    stream = Terminal()
    lines = Lines(stream)
    lines.advance("x", 1, 100)
    lines.say("Waiting.")
    lines.advance("x", 100, 100)
    lines.say("Done.")
    parts = stream.getvalue().split("\n")
    assert parts[0].startswith("\rx: 0 of")
    assert parts[1] == "Waiting."
    assert parts[2].startswith("\rx: ")
    assert parts[3:] == ["Done.", ""]
