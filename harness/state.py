"""The run as a plain value.

A `RunState` holds everything that the loop needs to go on: it is built from
the store, carried through the loop, and written back step by step. It goes to
JSON and back without loss; `STATE_VERSION` names the form it is written in,
and `tests/harness/fixtures/state_v*.json` are frozen examples of every version
that must load for ever.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

STATE_VERSION = 1

Message = dict[str, Any]
"""One chat message exactly as it goes over the wire; key order is kept."""

Status = Literal[
    "running", "completed", "failed", "max_turns_exceeded", "budget_exceeded", "interrupted"
]
ENDINGS: tuple[Status, ...] = (
    "completed", "failed", "max_turns_exceeded", "budget_exceeded", "interrupted",
)  # fmt: skip
RESUMABLE: tuple[Status, ...] = ("max_turns_exceeded", "budget_exceeded", "interrupted")


class Value(BaseModel):
    """Base of every value here: frozen, and unknown fields are an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ApprovalNeeded(Value):
    """A call waits for a person. `digest` is `call_digest` of what would run.

    A decision is good only for this digest."""

    kind: Literal["approval"] = "approval"
    call_id: str
    tool_name: str
    args: dict[str, Any]
    digest: str


class InDoubt(Value):
    """A write started and its end is not known: a crash lies between."""

    kind: Literal["in_doubt"] = "in_doubt"
    call_id: str
    tool_name: str
    args: dict[str, Any]
    digest: str


class MaxTurns(Value):
    kind: Literal["max_turns"] = "max_turns"
    turns: int
    limit: int


class MaxBudget(Value):
    """`resource` is what ran out: money in US dollars, tokens, or seconds."""

    kind: Literal["max_budget"] = "max_budget"
    resource: Literal["cost_usd", "total_tokens", "seconds"]
    spent: Decimal
    limit: Decimal


class Cancelled(Value):
    kind: Literal["cancelled"] = "cancelled"
    reason: str


class ConditionMet(Value):
    """Any other stop condition: repeated identical calls, or the caller's own."""

    kind: Literal["condition"] = "condition"
    name: str
    detail: str


class NoReply(Value):
    """The model's endpoint gave nothing to go on with: it failed, or said nothing."""

    kind: Literal["no_reply"] = "no_reply"
    detail: str


Interruption = Annotated[
    ApprovalNeeded | InDoubt | MaxTurns | MaxBudget | Cancelled | ConditionMet | NoReply,
    Field(discriminator="kind"),
]


class Limits(Value):
    """What a run may use; `None` means no limit. Money and tokens can be
    exceeded by at most one turn, because a turn's cost is known only after it."""

    max_turns: int | None = Field(default=20, ge=1)
    max_cost_usd: Decimal | None = Field(default=None, gt=0)
    max_total_tokens: int | None = Field(default=None, ge=1)
    max_seconds: float | None = Field(default=None, gt=0)
    max_repeats: int | None = Field(default=None, ge=2)
    """Stop when the same call with the same arguments came this often in a row."""


class Prices(Value):
    """US dollars per million tokens. `None` is unknown, which is not free."""

    input_per_million: Decimal | None = Field(default=None, ge=0)
    output_per_million: Decimal | None = Field(default=None, ge=0)

    def cost(self, prompt_tokens: int, completion_tokens: int) -> Decimal | None:
        """Dollars for so many tokens, or `None` where a price is unknown."""
        if self.input_per_million is None or self.output_per_million is None:
            return None
        return (
            prompt_tokens * self.input_per_million + completion_tokens * self.output_per_million
        ) / Decimal(1_000_000)


ErrorPolicy = Literal["fatal", "vague", "told"]
DedupePolicy = Literal["none", "reads", "all"]


class Settings(Value):
    """How a run is carried out. Fixed at its start; a resume may raise `limits`."""

    base_url: str
    model: str
    workspace: str
    tools: tuple[str, ...]
    limits: Limits = Limits()
    prices: Prices = Prices()
    error_policy: ErrorPolicy = "told"
    dedupe: DedupePolicy = "reads"
    guidance: tuple[str, ...] = ()
    """Names of the guidance policies that are on, in the order they are asked."""
    system_prompt: str | None = None
    temperature: float = 0.0
    max_completion_tokens: int | None = 1024


class Usage(Value):
    """Tokens of one turn or one run. `cost_usd` is `None` when not known."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: Decimal | None = Decimal(0)

    def __add__(self, other: Usage) -> Usage:
        known = self.cost_usd is not None and other.cost_usd is not None
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost_usd=self.cost_usd + other.cost_usd if known else None,  # type: ignore[operator]
        )

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


DecisionAction = Literal["approve", "edit", "reject", "happened", "run_again", "abandon"]


class Decision(Value):
    """What a person, or a standing rule, said about one call.

    `digest` binds it to the exact arguments that may run: those that were shown,
    or for `edit` the edited ones. A decision is used once."""

    call_id: str
    action: DecisionAction
    digest: str
    args: dict[str, Any] | None = None
    """The edited arguments, for `edit` only."""
    reason: str | None = None
    """Required for `reject`; goes to the model in words. For `happened`: what came
    of it, where the person knows."""
    decided_by: str = "person"


Outcome = Literal[
    "ok", "error", "invalid", "reused", "rejected", "unknown", "cancelled", "abandoned", "skipped"
]


class CallRecord(Value):
    """The journal's entry for one tool call of the transcript.

    `owed` → (`started` →) `settled`. `started` is committed before the tool
    runs, `settled` together with the tool message."""

    call_id: str
    turn: int
    tool_name: str
    arguments: str
    """As the model wrote them: JSON text, or what should have been."""
    state: Literal["owed", "started", "settled"] = "owed"
    ran_args: dict[str, Any] | None = None
    """What was run, where that is not what the model wrote."""
    outcome: Outcome | None = None
    child_run_id: str | None = None


class RunState(Value):
    """One run. See the module's docstring."""

    version: Literal[1] = 1
    run_id: str
    task: str
    settings: Settings
    created_at: str
    """UTC, ISO 8601. For people; order comes from sequence numbers."""
    parent_run_id: str | None = None
    status: Status = "running"
    reason: str = ""
    """The ending in one line, for people."""
    interruption: Interruption | None = None
    answer: str = ""
    answered_from_evidence: bool = False
    unsupported: tuple[str, ...] = ()
    """What the answer names and no tool result holds: it is marked with these."""
    turns: int = 0
    tool_runs: int = 0
    seconds: float = Field(default=0.0, ge=0, le=1e9, allow_inf_nan=False)
    """Time spent while somebody carried the run, over all processes."""
    usage: Usage = Usage()
    """Its subagents' tokens and cost included."""
    last_seq: int = 0
    """The sequence number of its latest event."""
    messages: tuple[Message, ...] = ()
    calls: dict[str, CallRecord] = {}
    decisions: dict[str, Decision] = {}

    def results(self) -> dict[str, str]:
        """The tool messages of the transcript, by call id, in order."""
        return {m["tool_call_id"]: m["content"] for m in self.messages if m["role"] == "tool"}

    def owed(self) -> tuple[CallRecord, ...]:
        """The calls of the last assistant message without a tool message, in order."""
        if not self.messages:
            return ()
        last = next((m for m in reversed(self.messages) if m["role"] == "assistant"), None)
        ids = [c["id"] for c in (last or {}).get("tool_calls") or ()]
        return tuple(self.calls[i] for i in ids if self.calls[i].state != "settled")


def call_digest(
    run_id: str,
    call_id: str,
    tool_name: str,
    args: Mapping[str, Any],
    fingerprint: str | None = None,
) -> str:
    """SHA-256 over the run, the call, the tool and the exact arguments, as hex.

    Arguments are compared as JSON values: key order does not count. `fingerprint`
    is what the tool says its effect depends on (a file's content, say), so that
    an approval does not outlive a change of it."""
    text = json.dumps(
        [run_id, call_id, tool_name, args, fingerprint],
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    )
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
