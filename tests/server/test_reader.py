"""Tool calls out of a reply's text."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.backend import CallPiece, TextPiece
from server.reader import CallReader

NAMES = ["list_files", "read_file", "delete_file", "scan_archive"]
CALL = '{"name": "read_file", "arguments": {"path": "a.txt"}}'
READ = ("read_file", {"path": "a.txt"})


def read(
    text: str, *, cut: bool = False, splits: list[int] | None = None, most: int | None = None
) -> tuple[str, list[tuple[str, Any]]]:
    """The text and the calls of a reply that comes in pieces, split at these places."""
    reader = CallReader(NAMES, most=most)
    pieces = []
    edges = [0, *sorted(splits or []), len(text)]
    for start, end in pairwise(edges):
        pieces += reader.feed(text[start:end])
    pieces += reader.finish(cut=cut)
    assert reader.finish() == []
    names: list[str] = []
    arguments: list[str] = []
    content = ""
    for piece in pieces:
        if isinstance(piece, TextPiece):
            assert piece.text
            content += piece.text
            continue
        if piece.id is not None:
            assert piece.id
            assert piece.name in NAMES
            assert piece.index == len(names)
            names.append(piece.name or "")
            arguments.append("")
        assert piece.index == len(names) - 1
        arguments[-1] += piece.arguments
    return content, list(zip(names, map(json.loads, arguments), strict=True))


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"\n{CALL}\n",
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"<tool_call>{CALL}",
        f"{CALL}\n</tool_call>",
        f"<tools>\n{CALL}\n</tools>",
        f"```json\n{CALL}\n```",
        f"```\n{CALL}\n```\n",
        f"```json {CALL} ```",
        f"```xml\n<tool_call>\n{CALL}\n</tool_call>\n```",
        f"[{CALL}]",
        CALL[:-1],
        f"<tool_call>\n{CALL[:-1]}\n</tool_call>",
        f"```json\n{CALL[:-1]}\n```",
        CALL + "}",
        json.dumps(json.loads(CALL), indent=2),
        CALL.replace("arguments", "parameters"),
        '{"name": "read_file", "arguments": "{\\"path\\": \\"a.txt\\"}"}',
        '{"type": "function", "function": ' + CALL + "}",
        '{"id": "x", "type": "function", "name": "read_file", "arguments": {"path": "a.txt"}}',
        '{"arguments": {"path": "a.txt"}, "name": "read_file"}',
    ],
)
def test_s1_s9_a_call_in_every_dialect(text: str) -> None:
    assert read(text) == ("", [READ])


@pytest.mark.parametrize(
    "between", ["", "\n", ",\n", ", ", "; ", "\n</tool_call>\n<tool_call>\n", "\n```\n```json\n"]
)
def test_s9_several_calls_in_a_row(between: str) -> None:
    opened = {"\n<": "<tool_call>\n", "\n`": "```json\n"}.get(between[:2], "")
    assert read(opened + between.join([CALL] * 3)) == ("", [READ] * 3)
    assert read(f"[{CALL}, {CALL}]") == ("", [READ] * 2)


def test_text_before_and_after_stays_text() -> None:
    assert read(f"I look.\n\n{CALL}\nDone.") == ("I look.\nDone.", [READ])
    assert read(f"I look. <tool_call>{CALL}</tool_call>") == ("I look.", [READ])
    assert read(f"Here:\n```json\n{CALL}\n```\nThat was it. ") == ("Here:\nThat was it.", [READ])


@pytest.mark.parametrize(
    "text",
    [
        "Just words.",
        "  white space, kept \n\n",
        CALL.replace("read_file", "launch_rocket"),
        f"<tool_call>\n{CALL.replace('read_file', 'launch')}\n</tool_call>",
        CALL.replace("arguments", "values"),
        CALL.replace('{"name"', '{"size": 1, "name"'),
        '{"name": "read_file"}',
        '{"name": "read_file", "parameters": "a.txt"}',
        '{"name": ["read_file"], "arguments": {}}',
        '{"files": [{"name": "read_file", "arguments": {}}]}',
        f'{{"calls": [\n{CALL}\n]}}',
        f'["read_file",\n{CALL}\n]',
        f'[{CALL}, {{"other": 1}}]',
        f"Write {CALL} to read it.",
        f"{CALL} would read it.",
        f"```python\ncalls = [\n{CALL}\n]\n```",
        "A <tool_call> tag, an <b>, 1 < 2 and `code`, ``x``, ```y```.",
        '{"answer": 42}',
        "[1, 2, 3]",
        "{ not json",
        "```json\n{}\n```",
        "``` \n",
        '{"name": "read_file", "arguments": {"path": "\\ud800"}}',
        '{"name": "read_file", "arguments": {"size": 1e999}}',
        '{"name": "read_file", "arguments": {"size": NaN}}',
        '{"name": "read_file", "arguments": ' + "[" * 2000,
        '{"name": "read_file", "arguments": {"n": ' + "1" * 5000 + "}}",
    ],
)
def test_never_a_call_out_of_an_answer(text: str) -> None:
    assert read(text) == (text, [])


def test_after_something_that_is_no_call_one_is_still_found() -> None:
    for before in ("{ not json\n", "```python\nx = {}\n```\n", "<tool_call> is a tag.\n", "[1]\n"):
        content, calls = read(before + CALL)
        assert (content.strip(), calls) == (before.strip(), [READ])


def test_missing_arguments_are_taken_only_from_a_tag() -> None:
    assert read('<tool_call>{"name": "list_files"}</tool_call>') == ("", [("list_files", {})])
    assert read('{"name": "list_files", "arguments": null}') == ("", [("list_files", {})])


def test_h23_arguments_that_are_no_object_are_handed_on_as_they_are() -> None:
    """The harness tells the model what is wrong with them; as text they would end the run."""
    for written in (["a.txt"], "a.txt", 7):
        text = json.dumps({"name": "read_file", "arguments": written})
        assert read(text) == ("", [("read_file", written)])


@pytest.mark.parametrize("end", range(2, len(CALL) - 1))
def test_s7_no_half_call_is_handed_out(end: int) -> None:
    assert read(CALL[:end], cut=True) == (CALL[:end], [])
    assert read(f"<tool_call>\n{CALL[:end]}", cut=True) == (f"<tool_call>\n{CALL[:end]}", [])
    assert read(f"{CALL}\n{CALL[:end]}", cut=True) == ("", [READ])


def test_s7_a_call_that_was_whole_when_the_limit_came_is_a_call() -> None:
    assert read(CALL, cut=True) == ("", [READ])
    assert read(f"```json\n{CALL}\n", cut=True) == ("", [READ])


def test_without_tools_everything_is_text_at_once() -> None:
    reader = CallReader([])
    assert reader.feed(CALL) == [TextPiece(CALL)]
    assert reader.finish() == []


def test_more_calls_than_asked_for_are_dropped() -> None:
    assert read(f"{CALL}\n{CALL}\nmore", most=1) == ("", [READ])
    assert read(f"[{CALL}, {CALL}]", most=1) == ("", [READ])


def test_ids_are_unique() -> None:
    reader = CallReader(NAMES)
    pieces = reader.feed("\n".join([CALL] * 4)) + reader.finish()
    ids = [piece.id for piece in pieces if isinstance(piece, CallPiece) and piece.id]
    assert len(set(ids)) == 4


def test_a_reply_that_repeats_one_call_ends_there() -> None:
    reader = CallReader(NAMES)
    other = CALL.replace("a.txt", "b.txt")
    assert other != CALL
    for number, call in enumerate([CALL, CALL, CALL, other, *[CALL] * 4]):
        assert not reader.full, number
        reader.feed(f"{call}\n")
    assert reader.full
    assert reader.calls == 8
    reader.feed(f"{other}\n")
    assert reader.calls == 8


def test_s2_arguments_come_in_pieces_after_id_and_name() -> None:
    reader = CallReader(NAMES)
    long = json.dumps({"name": "read_file", "arguments": {"path": "x" * 100}})
    first, *rest = reader.feed(long) + reader.finish()
    assert isinstance(first, CallPiece)
    assert (first.name, first.arguments) == ("read_file", "")
    assert len(rest) > 2
    assert all(isinstance(piece, CallPiece) and piece.id is None for piece in rest)


def test_only_what_may_become_a_call_is_held_back() -> None:
    reader = CallReader(NAMES)
    assert reader.feed("Some text") == [TextPiece("Some text")]
    assert reader.feed("\n\n") == []
    assert reader.feed('{"na') == []
    assert reader.feed("tion") == [TextPiece('\n\n{"nation')]
    assert reader.feed('": 1, ') != []
    assert reader.feed('"more": 2}') == [TextPiece('"more": 2}')]
    assert reader.feed(" a < b") == [TextPiece(" a < b")]


def test_a_call_that_is_being_written_can_be_seen() -> None:
    reader = CallReader(NAMES)
    reader.feed("Well:\n<tool_call>\n")
    assert reader.begun is None
    reader.feed('{"name": "read_')
    begun = reader.begun
    assert begun is not None
    assert (begun.start, begun.text, begun.name) == (18, '{"name": "read_', None)
    reader.feed('file", "arg')
    assert reader.begun is not None
    assert reader.begun.name == "read_file"
    reader.feed('uments": {}}')
    assert reader.begun is None


def test_s1_replies_of_the_real_model(real_replies: list[dict[str, Any]]) -> None:
    assert sum(bool(reply["calls"]) for reply in real_replies) >= 20
    for reply in real_replies:
        expected = [(call["name"], call["arguments"]) for call in reply["calls"]]
        assert read(reply["text"], cut=reply["cut"]) == (reply["content"], expected)


PARTS = [
    *(
        "{",
        "}",
        "[",
        "]",
        '"',
        ",",
        ":",
        "\n",
        " ",
        "`",
        "```",
        "```json\n",
        "<",
        "<tool_call>",
        "\\",
    ),
    *(
        "</tool_call>",
        CALL,
        CALL[:-1],
        "name",
        '"name": ',
        '"read_file"',
        '"arguments": {}',
        "word",
    ),
    '{"name": "read_file", "arguments": ',
]


@given(parts=st.lists(st.sampled_from(PARTS), max_size=12), data=st.data(), cut=st.booleans())
def test_any_split_of_the_text_gives_the_same(
    parts: list[str], data: st.DataObject, cut: bool
) -> None:
    text = "".join(parts)
    splits = data.draw(st.lists(st.integers(0, len(text)), max_size=6))
    whole = read(text, cut=cut)
    assert read(text, cut=cut, splits=splits) == whole
    assert read(text, cut=cut, splits=list(range(len(text)))) == whole
    if not whole[1]:
        assert whole[0] == text
