"""The trace: one typed event a line.

Everything that shows or exports a run reads only these. `seq` counts from 1
within a run and gives the order; `time` is for people. Field names go out in
camelCase (`runId`), one JSON object a line.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, TypeAdapter
from pydantic.alias_generators import to_camel

from harness.state import Interruption, Outcome, Status

Money = Annotated[Decimal, PlainSerializer(float, return_type=float, when_used="json")]
"""US dollars; a plain number in JSON."""


class Base(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )
    run_id: str
    seq: int = 0
    """Given when the event is recorded."""
    time: str = ""
    """UTC, ISO 8601 with milliseconds; given when the event is recorded."""


class RunStarted(Base):
    type: Literal["run_started"] = "run_started"
    task: str
    model: str
    workspace: str
    tools: tuple[str, ...]
    guidance: tuple[str, ...]
    parent_run_id: str | None = None


class Turn(Base):
    """One model reply. Costs are US dollars; `None` is unknown."""

    type: Literal["turn"] = "turn"
    turn: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    total_tokens: int
    cost_usd: Money | None
    """Of this turn."""
    run_cost_usd: Money | None
    """Of the run up to and with this turn."""
    finish_reason: str
    ms: float
    first_token_ms: float | None = None
    content: str = ""
    tool_calls: tuple[str, ...] = ()
    """The ids of its calls."""
    purpose: Literal["step", "evidence"] = "step"
    """`evidence`: a question in a clean window, asked by a guidance policy."""


class Retry(Base):
    """The provider failed in a way that is worth another try."""

    type: Literal["retry"] = "retry"
    attempt: int
    error: str
    wait_seconds: float


class ToolStart(Base):
    type: Literal["tool_start"] = "tool_start"
    call_id: str
    tool_name: str
    args: dict[str, Any]
    idempotency_key: str


class ToolProgress(Base):
    type: Literal["tool_progress"] = "tool_progress"
    call_id: str
    tool_name: str
    message: str
    done: int | None = None
    total: int | None = None


class ToolResult(Base):
    """How a call was settled. `content` is the tool message as the model reads it."""

    type: Literal["tool_result"] = "tool_result"
    call_id: str
    tool_name: str
    outcome: Outcome
    content: str
    ms: float = 0.0
    reused_from: str | None = None
    """The call id whose result was used again."""
    left_out_bytes: int = 0
    child_run_id: str | None = None


class ApprovalRequired(Base):
    type: Literal["approval_required"] = "approval_required"
    call_id: str
    tool_name: str
    args: dict[str, Any]
    digest: str
    effect: str
    """What the tool would do, in words."""


class ApprovalDecided(Base):
    type: Literal["approval_decided"] = "approval_decided"
    call_id: str
    tool_name: str
    action: str
    args: dict[str, Any]
    """What will run, or would have."""
    reason: str | None = None
    decided_by: str


class Guidance(Base):
    """A guidance policy did something. `detail` says what, for people."""

    type: Literal["guidance"] = "guidance"
    policy: str
    detail: str
    call_ids: tuple[str, ...] = ()
    """The results it rests on."""


class RunResumed(Base):
    type: Literal["run_resumed"] = "run_resumed"
    from_status: Status
    model: str = ""
    changed: dict[str, Any] = {}
    """Limits that were raised: name to new value."""


class RunStopped(Base):
    """The ending. `reason` answers "why did it end" in one line."""

    type: Literal["run_stopped"] = "run_stopped"
    status: Status
    reason: str
    interruption: Interruption | None = None
    answer: str = ""
    turns: int
    tool_runs: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: Money | None
    stop_ms: float | None = None
    """For a cancelled run: from Stop to this event."""
    abandoned: tuple[str, ...] = ()
    """Calls whose tool did not stop."""


Event = Annotated[
    RunStarted
    | Turn
    | Retry
    | ToolStart
    | ToolProgress
    | ToolResult
    | ApprovalRequired
    | ApprovalDecided
    | Guidance
    | RunResumed
    | RunStopped,
    Field(discriminator="type"),
]

EVENT: TypeAdapter[Event] = TypeAdapter(Event)
