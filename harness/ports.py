"""The seams of the loop: what it needs from others, as protocols.

`Provider` talks to a model, `Executor` runs one tool call, `Policy` (in
`harness.guidance`) helps small models, `StopCondition` (in `harness.stop`) ends
a run. Everything is structural: a class with these members fits, whatever it
inherits from.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from harness.cancel import CancelToken
from harness.state import Message, Outcome

if TYPE_CHECKING:
    from harness.tool import Tool, ToolContext


class WireCall(NamedTuple):
    """One tool call as the model wrote it. `arguments` is text, not yet believed."""

    id: str
    name: str
    arguments: str


class ReplyUsage(NamedTuple):
    """Tokens as the provider counted them; 0 where it did not say."""

    prompt: int = 0
    cached: int = 0
    completion: int = 0


NO_USAGE = ReplyUsage()


@dataclass(frozen=True, slots=True)
class Reply:
    """One model reply, whatever was wrong with it: what was read counts."""

    content: str | None
    tool_calls: tuple[WireCall, ...] = ()
    finish_reason: str = "stop"
    usage: ReplyUsage = NO_USAGE
    ms: float = 0.0
    first_token_ms: float | None = None
    model: str | None = None
    """The model that the server says has answered."""


class BrokenOff(Exception):
    """The request was ended by its cancel token. `reply` holds what had come by then."""

    def __init__(self, reply: Reply) -> None:
        super().__init__("the request was broken off")
        self.reply = reply


OnDelta = Callable[[str], None]
OnRetry = Callable[[int, str, float], None]
"""Attempt that failed (from 1), what went wrong, seconds until the next."""


class Provider(Protocol):
    """A model. `complete` raises `BrokenOff` when the token is set meanwhile, and
    a `harness.errors.ProviderFailed` (or a subclass) when no usable reply came."""

    async def complete(
        self,
        *,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]],
        model: str,
        temperature: float,
        max_tokens: int | None,
        cancel: CancelToken,
        on_delta: OnDelta | None = None,
        on_retry: OnRetry | None = None,
    ) -> Reply: ...

    async def aclose(self) -> None: ...


OnProgress = Callable[[str, int | None, int | None], None]
"""What is going on, how much is done, of how much."""


@dataclass(frozen=True, slots=True)
class ChildResult:
    """What a subagent brought back: `content` is never empty and never a crash."""

    run_id: str
    status: str
    content: str


class Spawn(Protocol):
    """Handed to a tool as `context.spawn`: carries a child run to its ending.

    The child has its own transcript and limits, the parent's cancel token and
    prices; its tokens and cost count for the parent. Without `tools` it gets
    the parent's reads."""

    def __call__(
        self,
        task: str,
        *,
        tools: Sequence[str] | None = None,
        max_turns: int | None = None,
        system_prompt: str | None = None,
        model: str | None = None,
    ) -> Awaitable[ChildResult]: ...


@dataclass(frozen=True, slots=True)
class Executed:
    """How one tool call went. `content` is what the model reads, never empty.

    outcome `ok`; `error` (the tool raised; `content` is its message); `invalid`
    (it did not take these arguments); `cancelled` (it stopped because of the
    token); `abandoned` (it did not stop in time: its late result is dropped by
    the executor)."""

    outcome: Outcome
    content: str
    ms: float = 0.0
    left_out_bytes: int = 0
    permanent: bool = False
    """The tool said that there is no use trying again (`PermanentToolError`)."""


class Executor(Protocol):
    """`harness.execute.execute`: runs one validated call to its end.

    It never raises for anything the tool does. Time limit, output cap, worker
    thread, process group, progress and cancellation are its business."""

    def __call__(
        self, tool: Tool, args: Mapping[str, Any], context: ToolContext, /
    ) -> Awaitable[Executed]: ...
