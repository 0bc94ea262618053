"""A run inside a run: what a tool needs to start one.

A child has a transcript and limits of its own, and its parent's token, prices
and what is left of its parent's budget. Its tokens and cost count for the
parent when the call that started it is settled. Its run id follows from the
parent's call, so that after a crash the same child goes on instead of a second
one being paid for.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

from harness.cancel import CancelledByToken, CancelToken
from harness.errors import LeaseLost, StoreError
from harness.ports import ChildResult
from harness.state import CallRecord, Limits, RunState, Settings, Usage

if TYPE_CHECKING:
    from harness.tool import Tool


class StartChild(Protocol):
    """Carries a child run to its ending, or goes on with one that was broken off."""

    async def __call__(
        self, run_id: str, task: str, settings: Settings, parent: str, cancel: CancelToken
    ) -> RunState: ...


class Children:
    """The subagents of one call. `spawn` is `harness.ports.Spawn`.

    Args:
        parent: The run as it is when the call begins.
        record: The call.
        tools: The parent's tools.
        cancel: The parent's token.
        start: Carries a child.
    """

    def __init__(
        self,
        parent: RunState,
        record: CallRecord,
        tools: Mapping[str, Tool],
        cancel: CancelToken,
        start: StartChild,
    ) -> None:
        self._parent = parent
        self._record = record
        self._tools = tools
        self._cancel = cancel
        self._start = start
        self._tasks: list[asyncio.Task[RunState]] = []
        self.run_id: str | None = None
        """The latest child's."""

    @property
    def allowed(self) -> bool:
        """A helper cannot ask another helper."""
        return self._parent.parent_run_id is None

    async def spawn(
        self,
        task: str,
        *,
        tools: Sequence[str] | None = None,
        max_turns: int | None = None,
        system_prompt: str | None = None,
        model: str | None = None,
    ) -> ChildResult:
        """Carry a child to its ending and say in words what came of it."""
        run_id = child_id(self._parent.run_id, self._record.call_id, len(self._tasks))
        limits = self._left(max_turns)
        if limits is None:
            return ChildResult(run_id, "budget_exceeded", "There is no budget left for a helper.")
        settings = self._parent.settings.model_copy(
            update={
                "tools": self._names(tools),
                "limits": limits,
                "system_prompt": system_prompt or self._parent.settings.system_prompt,
                "model": model or self._parent.settings.model,
            }
        )
        child = asyncio.get_running_loop().create_task(
            self._start(run_id, task, settings, self._parent.run_id, self._cancel)
        )
        self._tasks.append(child)
        self.run_id = run_id
        # The child ends by the same token; it is not torn out of its last step.
        state = await asyncio.shield(child)
        if self._cancel.cancelled:
            raise CancelledByToken(self._cancel.reason or "")
        return ChildResult(run_id, state.status, _words(state))

    async def ended(self) -> Usage | None:
        """Wait until every child has ended; what they used, or `None` where there were none.

        Raises what kept a child from being recorded: then it has not ended, what it
        spent is not known here, and it goes on when its parent does.
        """
        if not self._tasks:
            return None
        await asyncio.wait(self._tasks)
        for task in self._tasks:
            if isinstance(error := task.exception(), StoreError | LeaseLost):
                raise error
        done = [task.result() for task in self._tasks if task.exception() is None]
        return sum((state.usage for state in done), start=Usage())

    def _names(self, wanted: Sequence[str] | None) -> tuple[str, ...]:
        """The tools of the child: of the parent's, those asked for, or else all reads."""
        if wanted is not None:
            return tuple(name for name in wanted if name in self._tools)
        reads = (name for name, tool in self._tools.items() if tool.effect == "read")
        return tuple(name for name in reads if name != self._record.tool_name)

    def _left(self, max_turns: int | None) -> Limits | None:
        """The child's limits: its own turns, and what is left of the parent's budget."""
        limits, parent = self._parent.settings.limits, self._parent
        used = sum(
            (task.result().usage for task in self._tasks if task.done() and not task.exception()),
            start=parent.usage,
        )
        money = limits.max_cost_usd
        if money is not None:
            money -= used.cost_usd or Decimal(0)
        tokens = limits.max_total_tokens
        if tokens is not None:
            tokens -= used.total_tokens
        if (money is not None and money <= 0) or (tokens is not None and tokens <= 0):
            return None
        return limits.model_copy(
            update={
                "max_turns": max_turns or limits.max_turns,
                "max_cost_usd": money,
                "max_total_tokens": tokens,
            }
        )


def child_id(parent: str, call_id: str, number: int) -> str:
    """The run id of the call's child `number`, the same in every process."""
    return hashlib.sha256(f"{parent}:{call_id}:{number}".encode()).hexdigest()[:12]


def _words(state: RunState) -> str:
    """What the parent's model reads of its helper; never empty."""
    if state.status == "completed":
        return state.answer
    return f"The helper stopped without an answer. {state.reason}"
