"""What is marked as unsupported, and what is not."""

import pytest

from harness.guidance.check import unsupported
from harness.guidance.notes import Notes

FILES = {
    "loans.csv": "member,book,due\nLena,The Sea Wall,14 June\nPavel,Small Engines,2 June\n",
    "rules.txt": "Books may be kept for four weeks.\nA late book costs 20 cents a day.\n",
}
NOTES = Notes(listing=tuple(FILES), files=FILES, call_ids=["1", "2", "3"])


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What does a late book cost a day?", "A late book costs 20 cents a day."),
        ("Which book did Lena borrow?", "Lena borrowed The Sea Wall."),
        ("How many files are there?", "There are 2 files."),
        ("Which file is about books?", "rules.txt"),
        ("How long may a book be kept?", "Four weeks."),
        ("Who is the director?", "The files do not mention a director."),
    ],
)
def test_supported(question: str, answer: str):
    assert unsupported(question, answer, NOTES) == []


@pytest.mark.parametrize(
    ("question", "answer", "mark"),
    [
        ("What does a late book cost?", "It costs 35 cents.", "35"),
        ("Where is it?", "In budget.xlsx.", "budget.xlsx"),
        ("What do the rules say?", 'They say "no dogs allowed".', "no dogs allowed"),
        ("Which book did Lena borrow?", "She borrowed Moby Dick.", "Moby"),
        ("Who is the director of the books?", "Pavel is.", "director"),
        ("Which book did member M7 borrow?", "The Sea Wall.", "M7"),
        ("How much is the yearly membership?", "20 cents.", "yearly"),
    ],
)
def test_marked(question: str, answer: str, mark: str):
    assert mark in unsupported(question, answer, NOTES)


def test_what_stands_far_from_everything_that_was_asked_is_marked():
    notes = Notes(listing=("a.txt",), files={"a.txt": "tap: 70\n\n\n\nbicycle: at the shop\n"})
    notes.call_ids = ["1"]
    assert unsupported("What did the bicycle cost?", "It cost 70.", notes) == ["70"]


@pytest.mark.parametrize(
    ("question", "answer", "marks"),
    [
        ("How many files are there?", "There are 2 files.", []),
        ("How many files are there?", "There are 3 files.", ["3"]),
        ("How large is rules.txt?", "It has 68 bytes.", []),
        ("How many lines do the rules have?", "They have 2 lines.", []),
        ("How many members are in the loans?", "There are 2 records.", []),
        ("What does a book cost?", "It costs 68 bytes.", ["68"]),
    ],
)
def test_counted_numbers_count_only_where_they_are_asked_for(
    question: str, answer: str, marks: list[str]
):
    assert len(FILES["rules.txt"]) == 68
    assert unsupported(question, answer, NOTES) == marks


@pytest.mark.parametrize(
    ("question", "answer", "marked"),
    [
        ("Which firewall do the books use?", "The books use a firewall.", True),
        ("Which currency is used?", "The currency used is a book.", True),
        ("Which item may be kept for four weeks?", "Books.", False),
        ("Is there a file about late books?", "Yes, there is a file about late books.", False),
        ("Which file is about late books?", "rules.txt", False),
    ],
)
def test_an_answer_must_add_something_that_stands_near_the_question(
    question: str, answer: str, marked: bool
):
    assert bool(unsupported(question, answer, NOTES)) is marked


def test_an_answer_without_any_result_is_marked():
    assert unsupported("Who?", "John Doe.", Notes()) == ["no tool was asked"]
