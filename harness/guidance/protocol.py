"""The seam for guidance: policies that help a small model, each off or on.

The loop asks the policies that a run names, in that order, at fixed points. A
policy derives from `Policy` and overrides the points that it cares about; it
sees the run through `Guided` and keeps nothing between runs that is not in the
run's state. Whatever it does it says with `Guided.note`, which is an event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias

from harness.cancel import CancelToken
from harness.ports import Reply
from harness.state import Message, RunState, Settings

if TYPE_CHECKING:
    from harness.stop import Stop
    from harness.tool import Tool
    from harness.workspace import Workspace


class Answer(NamedTuple):
    """The run ends `completed` with this answer."""

    text: str
    from_evidence: bool = False
    """It was asked for in a clean window."""
    unsupported: tuple[str, ...] = ()
    """What it names and no tool result holds."""


class Calls(NamedTuple):
    """The policy asks for these calls in the model's stead: tool name and arguments.

    They go through the same gate as the model's own."""

    calls: Sequence[tuple[str, Mapping[str, Any]]]


Move: TypeAlias = Answer | Calls


class Guided(Protocol):
    """The run, as a policy sees it."""

    @property
    def state(self) -> RunState: ...
    @property
    def workspace(self) -> Workspace: ...
    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools that the run may use, by name, in their order."""
        ...

    @property
    def cancel(self) -> CancelToken: ...

    async def ask_aside(self, messages: Sequence[Message], max_tokens: int) -> Reply | None:
        """Ask the model in a clean window, without tools; counted as a turn of the run.

        `None` when no reply came, or the run was cancelled meanwhile."""
        ...

    def note(self, policy: str, detail: str, call_ids: Sequence[str] = ()) -> None:
        """Record that a policy did something: an event of the run."""
        ...


class Policy:
    """Base of the policies: does nothing at every point."""

    name: ClassVar[str]

    def first_prompt(self, settings: Settings, workspace: Workspace, prompt: str) -> str:  # noqa: ARG002 - for overriding
        """The system prompt of a new run. It stays the same, so that the cache holds."""
        return prompt

    def shape_tools(self, run: Guided, tools: list[dict[str, Any]]) -> list[dict[str, Any]]:  # noqa: ARG002
        """The tools as they go over the wire, before each turn."""
        return tools

    async def before_ask(self, run: Guided) -> Move | None:  # noqa: ARG002
        """Nothing is owed and the model would be asked next; another move, or `None`."""
        return None

    async def on_answer(self, run: Guided, answer: Answer) -> Answer | None:  # noqa: ARG002
        """The model has answered: another answer in its stead, or `None` for this one."""
        return None

    async def before_stop(self, run: Guided, stop: Stop) -> Answer | None:  # noqa: ARG002
        """The run would stop without an answer: an answer, or `None`."""
        return None
