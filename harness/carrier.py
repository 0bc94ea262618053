"""Everything that one run is carried with, and how it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness import ask
from harness.approval import Policy as Rules
from harness.cancel import CancelToken
from harness.dedupe import Memory
from harness.endings import finish, settle
from harness.events import Guidance
from harness.guidance import Policy
from harness.journal import Journal
from harness.ports import Executor, Provider, Reply
from harness.state import CallRecord, Message, Outcome, RunState
from harness.stop import Stop, StopCondition

if TYPE_CHECKING:
    from harness.subagent import Children
    from harness.tool import Tool
    from harness.workspace import Workspace

OnDelta = Callable[[str, int, str], None]
"""Run id, turn, and the next piece of the model's words."""


@dataclass(slots=True)
class Carrier:
    """One run on its way, with all that it needs. It is `harness.guidance.Guided`, too."""

    journal: Journal
    provider: Provider
    execute: Executor
    tools: Mapping[str, Tool]
    """Those that the run may use, by name, in their order."""
    workspace: Workspace
    cancel: CancelToken
    rules: Rules
    policies: Sequence[Policy]
    stop_conditions: Sequence[StopCondition]
    memory: Memory
    children: Callable[[CallRecord], Children]
    """What a call needs to start subagents; see `harness.subagent`."""
    on_delta: OnDelta | None = None
    abandoned: list[str] = field(default_factory=list)
    """Calls whose tool did not stop."""

    @property
    def state(self) -> RunState:
        return self.journal.state

    def settle(self, record: CallRecord, content: str, outcome: Outcome, **more: Any) -> None:
        """Give the call its one tool message; see `harness.endings.settle`."""
        settled = settle(self.journal, record, content, outcome, **more)
        self.memory.note(settled, content)

    async def finish(self, stop: Stop, answer: str = "", **head: Any) -> None:
        """End the run; its ending is on the disk, and told, when this returns."""
        finish(
            self.journal,
            stop,
            answer,
            cancelled_at=self.cancel.cancelled_at,
            abandoned=tuple(self.abandoned),
            **head,
        )
        await self.journal.durable()

    # What a guidance policy may do besides looking

    async def ask_aside(self, messages: Sequence[Message], max_tokens: int) -> Reply | None:
        """See `harness.guidance.Guided`."""
        return await ask.ask_aside(self, messages, max_tokens)

    def note(self, policy: str, detail: str, call_ids: Sequence[str] = ()) -> None:
        """See `harness.guidance.Guided`."""
        self.journal.stage(
            Guidance(
                run_id=self.state.run_id, policy=policy, detail=detail, call_ids=tuple(call_ids)
            )
        )
