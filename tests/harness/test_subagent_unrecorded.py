"""A helper whose steps cannot be written has not ended, and its parent has not either."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from harness.errors import StoreFull
from harness.scripted_model import Call, ScriptedModel
from harness.store import Step, Store


class FullAt(Store):
    """A store whose disk is full at the first step of a helper after its beginning."""

    steps_left = 1

    def commit(self, step: Step) -> Future[None]:
        if step.state.parent_run_id is not None:
            self.steps_left -= 1
            if self.steps_left == 0:
                failed: Future[None] = Future()
                failed.set_exception(StoreFull("The disk is full."))
                return failed
        return super().commit(step)


def said(messages: Any) -> Any:
    """The parent asks a helper, which reads and answers."""
    turn = sum(message["role"] == "assistant" for message in messages)
    if messages[1]["content"] == "Ask.":
        return Call("research", {"question": "What is there?"}) if turn == 0 else "done"
    return Call("read_file", {"path": "notes.txt"}, f"c{turn}") if turn < 2 else "the notes"


async def test_h18_a_helper_that_cannot_be_recorded_stops_its_parent(
    runner: Callable[..., Any], settings: Callable[..., Any], store: Store
) -> None:
    tools = ("read_file", "research")
    with FullAt.open(store.path) as full, pytest.raises(StoreFull):
        await runner(ScriptedModel(said), store=full).start(
            "Ask.", settings(tools=tools), run_id="parent"
        )
    assert store.load("parent").status == "running"
    state = await runner(ScriptedModel(said)).resume("parent")
    children = store.runs(parent="parent")
    assert [child.status for child in children] == ["completed"]
    assert state.messages[-2]["content"] == "the notes"
    turns = [event for event in store.events("parent") if event.type == "turn"]
    spent = sum(event.total_tokens for event in turns)
    assert state.usage.total_tokens == spent + store.load(children[0].run_id).usage.total_tokens
