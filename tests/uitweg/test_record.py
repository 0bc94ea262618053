"""A run written as a file, read back, and played against its own conversation."""

import asyncio

import pytest

from harness.demo import copy_demo
from harness.runner import Runner
from harness.state import RunState, Settings
from server.json_text import compact_json
from server.parse import parse_request
from server.scripted.conversation import read_conversation
from server.scripted.recording import read_recording
from uitweg.carry import open_store
from uitweg.commands.figures import scripted_server
from uitweg.commands.record import recording_of, written
from uitweg.main import run

TOOLS = ("list_files", "read_file")


@pytest.fixture
def state(tmp_path, monkeypatch):
    """A run of `plan`, kept in the store of this test's user."""
    monkeypatch.setenv("UITWEG_DATA", str(tmp_path / "data"))
    workspace = copy_demo(tmp_path / "workspace", None)

    async def carry(base_url):
        settings = Settings(base_url=base_url, model="plan", workspace=str(workspace), tools=TOOLS)
        with open_store() as store:
            async with Runner(store) as runner:
                return await runner.start("Which file mentions a timeout?", settings)

    with scripted_server() as base_url:
        return asyncio.run(carry(base_url))


def conversation(messages):
    tools = [{"type": "function", "function": {"name": name}} for name in TOOLS]
    body = {"model": "x", "messages": messages, "tools": tools}
    return read_conversation(parse_request(compact_json(body).encode()))


def test_a_recorded_run_plays_as_it_went(state, tmp_path, capsys):
    assert run(["record", state.run_id[:6]]) == 0
    file = tmp_path / "recorded.toml"
    file.write_text(capsys.readouterr().out, "utf-8")
    recording = read_recording(file)
    assert recording == recording_of(state)
    replies = [i for i, message in enumerate(state.messages) if message["role"] == "assistant"]
    assert len(replies) == 3
    for index in replies:
        reply = recording.play(conversation(list(state.messages[:index])))
        message = state.messages[index]
        assert reply.text == message.get("content")
        assert reply.wire_calls() == message.get("tool_calls", [])


def test_no_such_run(state, capsys):
    assert run(["record", "nothing"]) == 1
    assert "nothing" in capsys.readouterr().err


def small_state(messages, **more):
    settings = Settings(base_url="http://x/v1", model="m", workspace="/w", tools=TOOLS)
    return RunState(
        run_id="abcdefghij", task="Why?", settings=settings, created_at="", messages=messages,
        **more,
    )  # fmt: skip


CALL = {"id": "a", "type": "function", "function": {"name": "list_files", "arguments": "{}"}}
ASKED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
SAID = {"role": "tool", "tool_call_id": "a", "name": "list_files", "content": "[]"}
START = {"role": "user", "content": "Why?"}


def test_an_answer_from_a_clean_window_is_the_last_turn():
    recording = recording_of(small_state((START, ASKED, SAID), answer="Because."))
    assert [turn.text for turn in recording.turn] == [None, "Because."]


def test_a_call_that_was_not_settled_has_no_result():
    recording = recording_of(small_state((START, ASKED)))
    assert recording.turn[0].call[0].result is None


def test_a_run_without_a_reply_can_be_written_too(tmp_path):
    file = tmp_path / "empty.toml"
    file.write_text(written(small_state((START,))), "utf-8")
    assert read_recording(file).task == "Why?"
