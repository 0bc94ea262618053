"""Plain search: words in their usual forms, the files that a question is about."""

import pytest

from harness.guidance.search import (
    excerpt,
    holds,
    key_words,
    named_files,
    relevant,
    stem,
    subjects,
)

FILES = {
    "access.log": "GET /index.html 200\n",
    "errors.log": "ERROR worker 7 timed out after 30000 ms\n",
    "notes.txt": "Remember to rotate the logs every Friday.\n",
}


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("timeout", "worker 7 timed out"),
        ("rotating", "rotate the logs"),
        ("e-mail", "name,email"),
        ("costs", "what it cost"),
        ("deployed", "# Deployments"),
        ("S9", "sample S9, taken"),
        ("404", "GET /favicon.ico 404"),
    ],
)
def test_a_word_is_found_in_its_usual_forms(word: str, text: str):
    assert holds(text, word)


@pytest.mark.parametrize(
    ("word", "text"),
    [("S9", "S99"), ("ill", "Ilse"), ("404", "4040"), ("phone", "telephone"), ("99", "1999")],
)
def test_a_part_of_another_word_is_not_the_word(word: str, text: str):
    assert not holds(text, word)


def test_a_stem_keeps_enough_of_the_word():
    assert (stem("rotating"), stem("rotates"), stem("use"), stem("v1.8.2")) == (
        "rotat",
        "rotat",
        "use",
        "v1.8.2",
    )


def test_key_words_leave_out_common_words_and_file_names():
    assert key_words("Which file mentions a timeout in errors.log?", FILES) == ["timeout"]


def test_the_files_that_a_question_is_about_the_best_last():
    assert relevant("Is there a file about rotating logs?", FILES) == ["notes.txt"]
    assert relevant("Which file mentions a timeout?", FILES) == ["errors.log"]
    assert relevant("Compare errors.log with notes.txt.", FILES) == ["errors.log", "notes.txt"]


def test_all_files_where_no_word_is_found():
    assert set(relevant("Which is the largest?", FILES)) == set(FILES)


def test_a_named_file_is_not_part_of_another_name():
    names = ["app.log", "my.app.log", "app.log.old"]
    assert named_files("Delete app.log.", ["app.log", "my.app.log"]) == ["app.log"]
    assert named_files("Read APP.LOG now", names[:1]) == ["app.log"]


@pytest.mark.parametrize(
    ("question", "taken"),
    [
        ("Who is the director of the library?", ["director", "library"]),
        ("What is the pH of sample S9?", ["pH", "sample", "S9"]),
        ("Which plant is the tallest?", []),
        ("When does it open? Use the table. Ask Ines.", ["table", "Ines"]),
        ("Which is the largest file?", []),
    ],
)
def test_what_a_question_takes_for_granted(question: str, taken: list[str]):
    assert subjects(question) == taken


def test_a_long_text_is_cut_to_its_first_line_and_its_telling_lines():
    lines = ["time level text"] + [f"{n} INFO nothing" for n in range(500)]
    lines[300] = "300 ERROR the pump failed"
    shown = excerpt("\n".join(lines), ["pump"], 200)
    assert shown.splitlines()[0] == "time level text"
    assert "300 ERROR the pump failed" in shown
    assert len(shown) < 300
    assert excerpt("short\n", ["pump"], 200) == "short"
