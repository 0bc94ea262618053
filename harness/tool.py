"""A tool: a typed function that a model may ask for.

    @tool(effect="read")
    def read_file(path: Annotated[str, "File to read."], context: ToolContext) -> str:
        '''Read one file of the workspace.'''

The first paragraph of the docstring is what the model reads. The JSON schema
and the validation come from the types. A tool that does not say it is a read
counts as a write, and a write needs a person's approval.

Errors that a tool raises:

    ToolError                 goes to the model in words; the run goes on
    └── PermanentToolError    no use trying again: the run ends `failed` with the reason
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from pydantic import BaseModel

from harness.schema import (
    InvalidArguments,
    arguments_model,
    check_arguments,
    parameters_schema,
    read_arguments,
)

if TYPE_CHECKING:
    from harness.cancel import CancelToken
    from harness.ports import OnProgress, Spawn
    from harness.workspace import Workspace

__all__ = [
    "InvalidArguments",
    "PermanentToolError",
    "Tool",
    "ToolContext",
    "ToolError",
    "tool",
]

Effect = Literal["read", "write"]

DEFAULT_TIMEOUT = 120.0
"""Seconds that a call may take where the tool says nothing else."""


class ToolError(Exception):
    """The tool could not do it. Its text goes to the model."""


class PermanentToolError(ToolError):
    """The tool could not do it and never will: the run ends `failed` with this text."""


def _nowhere(_message: str, _done: int | None, _total: int | None) -> None:
    """Progress that nobody follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What one call may use. A tool asks for it with a parameter of this type."""

    run_id: str
    call_id: str
    workspace: Workspace
    cancel: CancelToken
    idempotency_key: str = ""
    fingerprint: str = ""
    """What `Tool.fingerprint` said when the call was approved, where somebody approved it."""
    report: OnProgress = _nowhere
    spawn: Spawn | None = None
    """Carries a subagent's run, where this run may have one."""

    def progress(self, message: str, done: int | None = None, total: int | None = None) -> None:
        """Tell whoever watches how far the call is. Safe from any thread, cheap to call often."""
        self.report(message, done, total)


DescribeEffect: TypeAlias = "Callable[[Mapping[str, Any], Workspace], str]"
Fingerprint: TypeAlias = "Callable[[Mapping[str, Any], Workspace], str]"


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One tool. Make it with `@tool`."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of the arguments."""
    function: Callable[..., Any] = field(repr=False)
    model: type[BaseModel] = field(repr=False)
    context_name: str | None
    """The parameter that receives the `ToolContext`."""
    effect: Effect = "write"
    idempotent: bool = False
    """Running it twice is the same as once: it may run again after a crash."""
    killable: bool = False
    """It runs in a process group of its own, which is killed when the call is cancelled."""
    timeout: float | None = DEFAULT_TIMEOUT
    describe: DescribeEffect | None = field(default=None, repr=False)
    take_fingerprint: Fingerprint | None = field(default=None, repr=False)

    @property
    def needs_approval(self) -> bool:
        """Whether a person is asked where no standing rule says otherwise."""
        return self.effect != "read"

    @cached_property
    def wire(self) -> dict[str, Any]:
        """The tool as it goes to the provider, keys always in this order."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": self.parameters,
            },
        }

    def validate(self, arguments: str | None) -> dict[str, Any]:
        """The arguments out of the model's JSON text, as what would run.

        Raises `InvalidArguments` with a message for the model.
        """
        return self._plain(read_arguments(self.model, arguments, dict(self.parameters)))

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The same for arguments that are an object already, such as edited ones."""
        return self._plain(check_arguments(self.model, dict(arguments), dict(self.parameters)))

    def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        """Call the function: its result, or what it returns to be awaited or iterated."""
        checked = check_arguments(self.model, dict(arguments), dict(self.parameters))
        values = {name: getattr(checked, name) for name in type(checked).model_fields}
        if self.context_name:
            values[self.context_name] = context
        return self.function(**values)

    def describe_effect(self, arguments: Mapping[str, Any], workspace: Workspace) -> str:
        """What the call would do, in words for the person who decides."""
        if self.describe is not None:
            return self.describe(arguments, workspace)
        shown = json.dumps(arguments, ensure_ascii=False)
        return f"Runs {self.name} with {shown}. What it changes is not known."

    def fingerprint(self, arguments: Mapping[str, Any], workspace: Workspace) -> str:
        """What the call's effect depends on, as a short text: another text means ask again.

        Empty where the tool does not say.
        """
        return self.take_fingerprint(arguments, workspace) if self.take_fingerprint else ""

    @staticmethod
    def _plain(checked: BaseModel) -> dict[str, Any]:
        return checked.model_dump(mode="json", exclude_unset=True)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    effect: Effect = ...,
    idempotent: bool = ...,
    killable: bool = ...,
    timeout: float | None = ...,
    describe: DescribeEffect | None = ...,
    fingerprint: Fingerprint | None = ...,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    effect: Effect = "write",
    idempotent: bool = False,
    killable: bool = False,
    timeout: float | None = DEFAULT_TIMEOUT,
    describe: DescribeEffect | None = None,
    fingerprint: Fingerprint | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a `Tool` of a typed function, plain or async.

    Args:
        function: Given when the decorator stands without brackets.
        effect: "read" changes nothing anywhere; all else is a "write".
        idempotent: Running it twice is the same as once.
        killable: Run it in a process of its own that can be killed. The function
            must be importable by its module's or file's name.
        timeout: Seconds that a call may take; `None` is no limit.
        describe: Says in words what a call would do, for its approval.
        fingerprint: Says what a call's effect depends on; asked before the
            approval and again before the call.
    """

    def make(wrapped: Callable[..., Any]) -> Tool:
        if effect not in ("read", "write"):
            raise TypeError(f'{wrapped.__name__}: effect is {effect!r}, not "read" or "write"')
        model = arguments_model(wrapped, leave_out=ToolContext)
        return Tool(
            name=wrapped.__name__,
            description=_first_paragraph(wrapped),
            parameters=parameters_schema(model),
            function=wrapped,
            model=model,
            context_name=_context_parameter(wrapped),
            effect=effect,
            idempotent=idempotent,
            killable=killable,
            timeout=timeout,
            describe=describe,
            take_fingerprint=fingerprint,
        )

    return make if function is None else make(function)


def _first_paragraph(function: Callable[..., Any]) -> str:
    text = inspect.getdoc(function)
    if not text:
        raise TypeError(f"{function.__name__}: a docstring is needed, the model reads it")
    return " ".join(text.split("\n\n")[0].split())


def _context_parameter(function: Callable[..., Any]) -> str | None:
    hints = inspect.get_annotations(function, eval_str=True)
    return next((name for name, hint in hints.items() if hint is ToolContext), None)
