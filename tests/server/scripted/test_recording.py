import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.scripted import ScriptedBackend
from server.scripted.recording import (
    RecordedCall,
    RecordedTurn,
    Recording,
    read_recording,
    toml_text,
    write_recording,
)
from server.scripted.settings import SettingsError

NOTES = Recording(
    name="notes",
    task="Which file mentions a timeout?",
    turn=(
        RecordedTurn(
            text="Let me look.",
            call=(
                RecordedCall(
                    tool="read_file",
                    arguments='{"path":"notes.txt"}',
                    id="call_7",
                    result="Rotate\nthe logs.\n",
                ),
                RecordedCall(tool="list_files", result='["notes.txt"]'),
            ),
        ),
        RecordedTurn(text="None does."),
    ),
)


@pytest.fixture
def played(tmp_path, chat):
    """One reply of a server that plays NOTES from a file."""
    file = tmp_path / "notes.toml"

    def one(*messages, recording=NOTES, **body):
        file.write_text(write_recording(recording), "utf-8")
        return chat("notes", *messages, on=ScriptedBackend.from_files([file]), **body)

    return one


def asked(*results, tools=("read_file", "list_files"), ids=("call_7", "c2")):
    calls = [
        {"id": i, "type": "function", "function": {"name": t, "arguments": "{}"}}
        for i, t in zip(ids, tools, strict=True)
    ]
    said = [
        {"role": "tool", "tool_call_id": i, "content": r}
        for i, r in zip(ids, results, strict=False)
    ]
    return ({"role": "assistant", "content": None, "tool_calls": calls}, *said)


SAME = asked("Rotate\nthe logs.\n", '["notes.txt"]')


def test_it_plays_what_was_recorded(played):
    first = played()
    assert first.text == "Let me look."
    assert [call["id"] for call in first.calls] == ["call_7", "c2"]
    assert first.calls[0]["function"]["arguments"] == '{"path":"notes.txt"}'
    assert played(*SAME).text == "None does."


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        (
            asked("Rotate them.", '["notes.txt"]'),
            "at turn 1: read_file returned 'Rotate them.', recorded was 'Rotate\\nthe logs.\\n'.",
        ),
        (asked("Rotate\nthe logs.\n"), "at turn 1: 1 tool results, recorded were 2."),
        (
            asked("Rotate\nthe logs.\n", "x", tools=("read_file", "delete_file")),
            "at turn 1: delete_file was called, recorded was list_files.",
        ),
        (
            (*SAME, {"role": "assistant", "content": "None does."}),
            "at turn 3: the recording ends after turn 2.",
        ),
    ],
)
def test_it_says_where_the_conversation_left_it(played, caplog, messages, words):
    text = f"The conversation left the recording notes {words}"
    assert played(*messages).text == text
    assert text in caplog.text


def test_another_task_has_left_it_at_once(played):
    other = NOTES.model_copy(update={"task": "Something else."})
    assert "at turn 1: the task is 'Which file" in played(recording=other).text


def test_what_a_person_leaves_out_may_be_anything(played):
    calls = tuple(c.model_copy(update={"result": None}) for c in NOTES.turn[0].call)
    turn = NOTES.turn[0].model_copy(update={"call": calls})
    loose = NOTES.model_copy(update={"task": None, "turn": (turn, NOTES.turn[1])})
    assert played(*asked("anything", "else"), recording=loose).text == "None does."


def test_the_file_is_readable(tmp_path):
    assert write_recording(NOTES, "Recorded from run 7\non a model.") == (
        "# Recorded from run 7\n"
        "# on a model.\n"
        'name = "notes"\n'
        'description = "A recorded run."\n'
        'task = "Which file mentions a timeout?"\n'
        "\n"
        "[[turn]]  # 1\n"
        'text = "Let me look."\n'
        "\n"
        "[[turn.call]]\n"
        'tool = "read_file"\n'
        'arguments = \'{"path":"notes.txt"}\'\n'
        'id = "call_7"\n'
        "result = '''\n"
        "Rotate\n"
        "the logs.\n"
        "'''\n"
        "\n"
        "[[turn.call]]\n"
        'tool = "list_files"\n'
        'arguments = "{}"\n'
        "result = '[\"notes.txt\"]'\n"
        "\n"
        "[[turn]]  # 2\n"
        'text = "None does."\n'
    )


@given(st.text())
def test_every_text_comes_back(text):
    assert tomllib.loads(f"t = {toml_text(text)}")["t"] == text


@pytest.mark.parametrize("text", ["'''\n", "a\n'", "\r\n", "\x7f", "\n", "''", "\\", "a'\"\\"])
def test_awkward_texts_come_back(text):
    assert tomllib.loads(f"t = {toml_text(text)}")["t"] == text


def test_half_surrogates_become_the_replacement_character():
    assert tomllib.loads(f"t = {toml_text(chr(0xD800))}")["t"] in ("?", "\ufffd")


def test_a_file_comes_back_as_it_was_written(tmp_path):
    file = tmp_path / "notes.toml"
    file.write_text(write_recording(NOTES, "x\x00\x7fy"), "utf-8")
    assert read_recording(file) == NOTES


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = 'x'\n", "turn: Field required"),
        ("name = 'x'\n[[turn]]\n", "a turn needs a text or a call"),
        ("name = 'x y'\n[[turn]]\ntext=''\n", "name"),
        ("name = 'x'\n[[turn]]\ncall=[{tool='a',id='1'},{tool='a',id='1'}]\n", "have the id '1'"),
        ("name = ", "is not a recording"),
    ],
)
def test_a_wrong_file_says_where(tmp_path, text, words):
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=words):
        read_recording(file)
