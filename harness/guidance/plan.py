"""Plan for it: for a question, the harness reads the files and the model only answers.

The files that the question is about are found by the words it uses. Each is
read as an ordinary tool call, in the model's stead, and the model is then asked
once, in a clean window, to answer from notes. An order ("Delete old.log") is
left to the model until it has asked for a read itself; from its first write on,
the harness keeps out of it. Where there are other reading tools than the bundled
ones, a question is the model's as well: one of them may be what it needs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.guidance.evidence import answer_from_notes
from harness.guidance.notes import arguments_of, gather
from harness.guidance.protocol import Calls, Guided, Move, Policy
from harness.guidance.search import named_files

MOST_FILES = 24
"""Files that are read for one question; with more, the model goes its own way."""

MOST_BYTES = 256 * 1024
"""Of all of them together."""

_FILES = frozenset({"list_files", "read_file"})
_BUNDLED_READS = _FILES | {"scan_archive", "research"}

_QUESTION = re.compile(
    r"\s*(what|which|who|whom|whose|when|where|why|how|is|are|was|were|do|does|did|has|have|had"
    r"|in which|at which|on which|to which|from which|until when|since when|by whom)\b",
    re.IGNORECASE,
)


class ReadThenAnswer(Policy):
    """See the module's docstring."""

    name = "plan"

    async def before_ask(self, run: Guided) -> Move | None:
        """List, read what is to be read, then answer; or `None` where it is not for us."""
        if not self._ours(run):
            return None
        notes = gather(run.state)
        if notes.listing is None:
            return Calls([("list_files", {})])
        tried = {arguments_of(record).get("path") for record in run.state.calls.values()}
        unread = [name for name in self._wanted(run, notes.listing) if name not in tried]
        if unread:
            return Calls([("read_file", {"path": name}) for name in unread])
        return await answer_from_notes(run, self.name, "The files were read for the question")

    def _ours(self, run: Guided) -> bool:
        """A question, or something the model began to read for; never once a write came up."""
        if not run.tools.keys() >= _FILES:
            return False
        asked = [run.tools.get(record.tool_name) for record in run.state.calls.values()]
        if any(tool is not None and tool.effect != "read" for tool in asked):
            return False
        if any(tool is not None and tool.name not in _FILES for tool in asked):
            return False
        reads = {name for name, tool in run.tools.items() if tool.effect == "read"}
        return bool(asked) or (reads <= _BUNDLED_READS and is_question(run.state.task))

    def _wanted(self, run: Guided, listing: Sequence[str]) -> Sequence[str]:
        """The files that the task names, or all of them where they are not too many."""
        named = named_files(run.state.task, listing)
        names = named or listing
        return names if len(names) <= MOST_FILES and self._small(run, names) else ()

    def _small(self, run: Guided, names: Sequence[str]) -> bool:
        return sum(run.workspace.size(name) for name in names) <= MOST_BYTES


def is_question(task: str) -> bool:
    """Whether a task asks for something to be said, not done: so it changes nothing."""
    return bool(_QUESTION.match(task)) and task.rstrip().endswith("?")
