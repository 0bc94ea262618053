"""Notes: results as prose, and what can be counted in them."""

from harness.guidance.notes import Notes, Other, as_records, window


def text_of(task: str, notes: Notes) -> str:
    return window(task, notes)[1]["content"]


def demo() -> Notes:
    files = {"a.log": "one\n", "b.log": "two words here\n"}
    return Notes(listing=("a.log", "b.log"), files=files, call_ids=["1", "2", "3"])


def test_a_listing_says_how_many_there_are():
    assert "There are 2 files in the folder:\n- a.log\n- b.log" in text_of("?", demo())


def test_sizes_are_said_where_they_are_asked_for():
    text = text_of("Which file is the largest?", demo())
    assert "a.log has 4 bytes. b.log has 15 bytes." in text
    assert "The largest file is b.log, with 15 bytes. The smallest file is a.log" in text
    assert "bytes" not in text_of("What do the files say?", demo())


def test_nothing_is_compared_before_all_files_were_read():
    notes = demo()
    del notes.files["b.log"]
    assert "bytes" not in text_of("Which file is the largest?", notes)


def test_files_of_one_size_are_neither_largest_nor_smallest():
    notes = Notes(listing=("a", "b"), files={"a": "x", "b": "y"}, call_ids=["1"])
    assert "The largest file" not in text_of("Which is the largest?", notes)


def test_what_only_one_file_mentions_is_said_and_the_others_are_left_out():
    text = text_of("Where are the words?", demo())
    assert 'Only b.log mentions "words".' in text
    assert "The file a.log says" not in text


def test_a_question_about_a_file_asks_for_its_name_unless_it_names_one():
    assert text_of("Which file is it?", demo()).endswith(
        "Question: Which file is it? Name the file."
    )
    assert text_of("What does file a.log say?", demo()).endswith("a.log say?")


def test_a_table_becomes_records_with_the_extremes_of_its_numbers():
    lines, facts = as_records("plant,height\ntomato,95\nsunflower,180\n") or ([], [])
    assert lines == ["plant: tomato; height: 95", "plant: sunflower; height: 180"]
    assert facts == ["The highest height is 180: sunflower. The lowest height is 95: tomato."]


def test_what_is_no_table_stays_text():
    assert as_records("one,two\nthree\n") is None
    assert as_records("") is None
    assert as_records('a,b\n"unclosed,c\nd,e\n') is None


def test_other_tools_are_notes_too():
    notes = Notes(others=[Other("scan_archive", "timeout", '{"files":3}')], call_ids=["1"])
    assert 'scan_archive timeout: {"files":3}' in text_of("How many?", notes)
