"""Say what was done: an order that is carried out ends the run.

After a write a small model tends to ask for the same write again. When the
writes of the last turn went well, or a person declined them, and no file that
the task names is left over, the model is asked once, in a clean window, to say
what was done. An order over several files that it does not name is left to the
model.
"""

from __future__ import annotations

import re

from harness.guidance.evidence import MOST_TOKENS
from harness.guidance.notes import arguments_of, gather
from harness.guidance.protocol import Answer, Guided, Policy
from harness.guidance.search import named_files
from harness.state import CallRecord, Message

SYSTEM = (
    "You report what was done with the files of a folder. Use only the report. "
    "Answer in one short sentence."
)

_MANY = re.compile(r"\b(?:all|both|each|every|any|and|files|several)\b", re.IGNORECASE)


class SayWhatWasDone(Policy):
    """See the module's docstring."""

    name = "done"

    async def before_ask(self, run: Guided) -> Answer | None:
        """Ask for the report when the order is carried out."""
        writes = _writes(run)
        latest = max((record.turn for record in run.state.calls.values()), default=0)
        last = [record for record in writes if record.turn == latest]
        if not last or any(record.outcome not in ("ok", "rejected") for record in last):
            return None
        if self._something_left(run, writes):
            return None
        reply = await run.ask_aside(_window(run, last), MOST_TOKENS)
        text = (reply.content or "").strip() if reply else ""
        if not text:
            return None
        ids = [record.call_id for record in last]
        run.note(self.name, "The order is carried out; the model was asked what was done.", ids)
        return Answer(text, from_evidence=True)

    def _something_left(self, run: Guided, writes: list[CallRecord]) -> bool:
        touched = {str(arguments_of(record).get("path")) for record in writes}
        names = [*run.workspace.listing(), *(gather(run.state).listing or ()), *touched]
        named = named_files(run.state.task, dict.fromkeys(names))
        if named:
            return not set(named) <= touched
        return bool(_MANY.search(run.state.task))


def _writes(run: Guided) -> list[CallRecord]:
    found = []
    for record in run.state.calls.values():
        tool = run.tools.get(record.tool_name)
        if tool is not None and tool.effect != "read":
            found.append(record)
    return found


def _window(run: Guided, last: list[CallRecord]) -> list[Message]:
    results = run.state.results()
    lines = []
    for record in last:
        shown = ", ".join(str(value) for value in arguments_of(record).values())
        lines.append(f"{record.tool_name} {shown}: {results.get(record.call_id, '')}")
    report = "\n".join(lines)
    user = f"Order: {run.state.task}\n\nReport:\n{report}\n\nWhat was done?"
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": user}]
