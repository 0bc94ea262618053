"""Answer from evidence: a model that goes in circles is asked once more, plainly.

A small model often repeats a call for ever instead of answering. When a whole
turn brought nothing that was not known (every call a read that had the same
arguments and the same result before, or one that could not run), when a stop
condition says that the run goes in circles, or when only one turn is left, the
model is asked in a clean window: the question, and what the tools returned, as
plain notes, without tools. It answers far better there. The run then ends
`completed`, marked as answered so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.dedupe import call_key
from harness.guidance.notes import Notes, gather, window
from harness.guidance.protocol import Answer, Guided, Policy
from harness.state import ConditionMet, RunState

if TYPE_CHECKING:
    from harness.stop import Stop
    from harness.tool import Tool

MOST_TOKENS = 160
"""Of an answer in a clean window: one sentence, or a short list."""

NOTHING = "The files that were looked at do not say."
"""The answer where no tool has returned anything."""


class AnswerFromEvidence(Policy):
    """See the module's docstring."""

    name = "evidence"

    async def before_ask(self, run: Guided) -> Answer | None:
        """Ask in a clean window when the last turn brought nothing new, or one turn is left."""
        if went_in_a_circle(run.state, run.tools):
            return await answer_from_notes(run, self.name, "The last turn brought nothing new")
        if last_turn(run.state) and run.state.calls:
            return await answer_from_notes(run, self.name, "Only one turn was left")
        return None

    async def before_stop(self, run: Guided, stop: Stop) -> Answer | None:
        """Answer when a stop condition says that the run goes in circles."""
        if isinstance(stop.interruption, ConditionMet) and run.state.calls:
            return await answer_from_notes(run, self.name, stop.reason.rstrip("."))
        return None


async def answer_from_notes(
    run: Guided, policy: str, why: str, notes: Notes | None = None
) -> Answer | None:
    """Ask the task once more in a clean window, with the notes; `None` when no reply came.

    Args:
        run: The run.
        policy: Whose doing it is.
        why: The reason, as the beginning of a sentence.
        notes: What to answer from; without it, all that the run's tools returned.
    """
    notes = notes or gather(run.state)
    if notes.empty:
        run.note(policy, f"{why}, and there is nothing to answer from.")
        return Answer(NOTHING, from_evidence=True)
    reply = await run.ask_aside(window(run.state.task, notes), MOST_TOKENS)
    text = (reply.content or "").strip() if reply else ""
    if not text:
        return None
    number = len(notes.call_ids)
    results = "the one result there is" if number == 1 else f"the {number} results there are"
    run.note(policy, f"{why}: the question was asked once more with {results}.", notes.call_ids)
    return Answer(text, from_evidence=True)


def last_turn(state: RunState) -> bool:
    """Whether the run may have one more turn and no other."""
    limit = state.settings.limits.max_turns
    return limit is not None and state.turns == limit - 1


def went_in_a_circle(state: RunState, tools: Mapping[str, Tool]) -> bool:
    """Whether each call of the last turn was a read that had this result before."""
    results = state.results()
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
