"""Answer from evidence: a model that goes in circles is asked once more, plainly.

A small model often repeats a call for ever instead of answering. When a whole
turn brought nothing that was not known (every call a read that had the same
arguments and the same result before), the model is asked in a clean window:
the question, and what the tools returned, as prose, without tools. It answers
far better there. The run then ends `completed`, marked as answered so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from harness.dedupe import call_key
from harness.guidance.protocol import Answer, Guided, Policy
from harness.state import CallRecord, RunState

if TYPE_CHECKING:
    from harness.tool import Tool

PROMPT = (
    "Answer the question from the notes. Use only what the notes say. "
    "If they do not say it, say that the files do not tell. One short sentence."
)


class Note(NamedTuple):
    """One distinct result: which call, and what it returned."""

    record: CallRecord
    content: str


class AnswerFromEvidence(Policy):
    """See the module's docstring."""

    name = "evidence"

    async def before_ask(self, run: Guided) -> Answer | None:
        """Ask in a clean window when the last turn brought nothing new."""
        if not went_in_a_circle(run.state, run.tools):
            return None
        notes = evidence(run.state)
        reply = await run.ask_aside(
            [
                {"role": "system", "content": PROMPT},
                {"role": "user", "content": _question(run.state.task, notes)},
            ]
        )
        text = (reply.content or "").strip() if reply else ""
        if not text:
            return None
        run.note(
            self.name,
            "The last turn brought nothing new, so the question was asked once more "
            f"with the {len(notes)} results there are.",
            [note.record.call_id for note in notes],
        )
        return Answer(text, from_evidence=True)


def went_in_a_circle(state: RunState, tools: Mapping[str, Tool]) -> bool:
    """Whether each call of the last turn was a read that had this result before."""
    results = _results(state)
    latest = max((record.turn for record in state.calls.values()), default=0)
    seen: set[tuple[str, str]] = set()
    repeated: list[bool] = []
    for record in state.calls.values():
        content = results.get(record.call_id)
        tool = tools.get(record.tool_name)
        if tool is not None and tool.effect != "read" and record.outcome == "ok":
            seen.clear()
        if content is None:
            continue
        key = (call_key(record), content)
        if record.turn == latest:
            repeated.append(key in seen and (tool is None or tool.effect == "read"))
        seen.add(key)
    return bool(repeated) and all(repeated)


def evidence(state: RunState) -> list[Note]:
    """What the tools returned, each result once, in the order in which it came."""
    results = _results(state)
    notes: dict[tuple[str, str], Note] = {}
    for record in state.calls.values():
        content = results.get(record.call_id)
        if content is not None and record.outcome in ("ok", "error"):
            notes.setdefault((call_key(record), content), Note(record, content))
    return list(notes.values())


def _results(state: RunState) -> dict[str, str]:
    return {m["tool_call_id"]: m["content"] for m in state.messages if m["role"] == "tool"}


def _question(task: str, notes: list[Note]) -> str:
    lines = [f"{note.record.tool_name} {note.record.arguments}:\n{note.content}" for note in notes]
    return f"Question: {task}\n\nNotes:\n\n" + "\n\n".join(lines) + f"\n\nQuestion: {task}"
