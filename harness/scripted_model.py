"""A model that says what it is told to: for tests of one's own tools and loops."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from harness.cancel import CancelToken
from harness.ports import BrokenOff, OnDelta, OnRetry, Reply, ReplyUsage, WireCall
from harness.state import Message


class Call(NamedTuple):
    """A tool call that the scripted model makes."""

    name: str
    arguments: Mapping[str, Any] | str = "{}"
    id: str | None = None
    """Made from the turn and the call's place in it where it is not given."""


Line = str | Call | Sequence[Call] | Reply | Exception
"""One turn: an answer, a call, several calls, a whole reply, or a failure."""


class ScriptedModel:
    """`harness.ports.Provider` without a model.

    Turn n of the script answers a conversation with n assistant messages, so a
    run can be resumed in another process with the same script. The last line is
    said again when the script is over.

    Args:
        script: The lines, or a function from the messages to a line.
        latency: Seconds that each reply takes.
    """

    def __init__(
        self, *script: Line | Callable[[Sequence[Message]], Line], latency: float = 0.0
    ) -> None:
        self._script = script
        self._latency = latency
        self.requests: list[list[Message]] = []
        """The messages of each request so far."""

    async def complete(
        self,
        *,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]],
        model: str,
        temperature: float,  # noqa: ARG002 - a script has none
        max_tokens: int | None,  # noqa: ARG002 - a script is as long as it is
        cancel: CancelToken,
        on_delta: OnDelta | None = None,
        on_retry: OnRetry | None = None,  # noqa: ARG002 - a script does not fail and try again
    ) -> Reply:
        """The next line. Tokens are counted as words."""
        self.requests.append(list(messages))
        prompt = sum(len(json.dumps(item).split()) for item in (*messages, *tools))
        if self._latency:
            waiting = asyncio.ensure_future(cancel.wait())
            await asyncio.wait((waiting,), timeout=self._latency)
            waiting.cancel()
        if cancel.cancelled:
            raise BrokenOff(Reply(content=None, usage=ReplyUsage(prompt)))
        turn = sum(message["role"] == "assistant" for message in messages)
        line = self._script[min(turn, len(self._script) - 1)]
        if callable(line):
            line = line(messages)
        if isinstance(line, Exception):
            raise line
        if isinstance(line, Reply):
            return line
        if isinstance(line, str):
            if on_delta is not None:
                on_delta(line)
            usage = ReplyUsage(prompt, 0, len(line.split()))
            return Reply(content=line, usage=usage, model=model)
        calls = [line] if isinstance(line, Call) else list(line)
        wire = tuple(_wire(call, turn, place) for place, call in enumerate(calls))
        usage = ReplyUsage(prompt, 0, len(wire))
        return Reply(None, wire, "tool_calls", usage, model=model)

    async def aclose(self) -> None:
        """Nothing to close."""


def _wire(call: Call, turn: int, place: int) -> WireCall:
    arguments = call.arguments
    text = arguments if isinstance(arguments, str) else json.dumps(dict(arguments))
    return WireCall(call.id or f"call_{turn + 1}_{place + 1}", call.name, text)
