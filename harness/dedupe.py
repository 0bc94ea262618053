"""Results of earlier calls, used again when the same call is asked for.

`reads` remembers what reads returned until a write ran, because the write may
have changed it. `all` remembers everything for ever: it is there because the
figures show what harm that does. `none` remembers nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.state import CallRecord, DedupePolicy, RunState

if TYPE_CHECKING:
    from harness.tool import Tool

TOUCHED = ("ok", "error", "cancelled", "abandoned", "unknown")
"""Outcomes of a call whose tool ran, or may have."""


class Remembered(NamedTuple):
    """An earlier call, and the tool message that it got."""

    call_id: str
    content: str


class Memory:
    """What one run's calls returned so far. Tell it of every settled call, in order."""

    def __init__(self, policy: DedupePolicy, tools: Mapping[str, Tool]) -> None:
        self._policy = policy
        self._tools = tools
        self._kept: dict[str, Remembered] = {}

    @classmethod
    def of(cls, run: RunState, tools: Mapping[str, Tool]) -> Memory:
        """What a run remembers that goes on: all that its settled calls have told before."""
        memory = cls(run.settings.dedupe, tools)
        results = run.results()
        for record in run.calls.values():
            if record.state == "settled":
                memory.note(record, results[record.call_id])
        return memory

    def note(self, record: CallRecord, content: str) -> None:
        """Learn of a call that has been settled with the tool message `content`."""
        if self._policy == "none" or record.outcome not in TOUCHED:
            return
        tool = self._tools.get(record.tool_name)
        is_read = tool is not None and tool.effect == "read"
        if self._policy == "reads" and not is_read:
            self._kept.clear()
        elif record.outcome == "ok":
            self._kept[call_key(record)] = Remembered(record.call_id, content)

    def find(self, tool: Tool, args: Mapping[str, Any]) -> Remembered | None:
        """The earlier call with this tool and these arguments, if it may stand for a new one."""
        return self._kept.get(key_of(tool.name, args)) if self._kept else None


def call_key(record: CallRecord) -> str:
    """The same text for two calls that ask for the same thing."""
    if record.ran_args is not None:
        return key_of(record.tool_name, record.ran_args)
    try:
        return key_of(record.tool_name, json.loads(record.arguments))
    except (ValueError, RecursionError):
        return f"{record.tool_name} {record.arguments}"


def key_of(tool_name: str, args: object) -> str:
    """`call_key` of a call with these arguments. Key order does not count."""
    return f"{tool_name} {json.dumps(args, sort_keys=True, separators=(',', ':'))}"
