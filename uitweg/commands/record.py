"""`uitweg record RUN_ID > FILE`: a run as a scenario file that a person can read and edit."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from harness.state import Message, RunState
from server.scripted.recording import RecordedCall, RecordedTurn, Recording, write_recording
from uitweg.carry import find_run, open_store


def recording_of(state: RunState) -> Recording:
    """What the model and the tools said in a run, in order.

    An answer that is not in the transcript, because it was asked for in a clean window, becomes
    the last turn.
    """
    results = state.results()
    turns = [_turn(m, results) for m in state.messages if m["role"] == "assistant"]
    if state.answer and (not turns or turns[-1].call):
        turns.append(RecordedTurn(text=state.answer))
    first = next((m for m in state.messages if m["role"] == "user"), None)
    return Recording(
        name=f"recorded-{state.run_id[:8]}",
        description=f"A run of {state.settings.model}: {state.status}.",
        task=state.task if first is None else first["content"],
        turn=tuple(turns) or (RecordedTurn(text=""),),
    )


def _turn(message: Message, results: dict[str, str]) -> RecordedTurn:
    calls = tuple(
        RecordedCall(
            tool=call["function"]["name"],
            arguments=call["function"]["arguments"],
            id=call["id"],
            result=results.get(call["id"]),
        )
        for call in message.get("tool_calls") or ()
    )
    text = message.get("content")
    return RecordedTurn(text=text if text is not None or calls else "", call=calls)


def written(state: RunState) -> str:
    """The run as a recording's file, with a heading that says how to play it."""
    recording = recording_of(state)
    heading = (
        f"Run {state.run_id} on {state.settings.model}, recorded; it ended: {state.status}.\n"
        "Play it:  uitweg serve --scripted THIS_FILE\n"
        "and then, with LLM_BASE_URL=http://127.0.0.1:8081/v1:\n"
        f"          uitweg run --model {recording.name} TASK\n"
        "Change what you like. Without a task or a result, any task or result will do."
    )
    return write_recording(recording, heading)


def record(
    run_id: Annotated[str, typer.Argument(help="The run, or enough of its id.")],
) -> None:
    """Write a run as a scenario file, to be read, edited and played back.

    uitweg record RUN_ID > FILE, then uitweg serve --scripted FILE.
    """
    with open_store() as store:
        state = store.load(find_run(store, run_id))
    sys.stdout.write(written(state))
