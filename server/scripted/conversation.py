"""What a scenario sees of a conversation, and what it may reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from server.json_text import compact_json
from server.scripted import tokens
from server.shapes import call_object
from server.wire import ChatRequest


@dataclass(frozen=True, slots=True)
class Result:
    """One tool message: which turn's call it answers (from 1), the tool, what it said."""

    turn: int
    tool: str
    content: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """A request as a scenario sees it."""

    turn: int
    """How many replies the conversation holds: the index of the one to come."""
    results: tuple[Result, ...] = ()
    """What the tools said, in order."""
    calls_so_far: int = 0
    offered: frozenset[str] = frozenset()
    """The tools that may be called."""
    task: str = ""
    """The first message of the user."""

    @property
    def last(self) -> str:
        """What the last tool said, or nothing."""
        return self.results[-1].content if self.results else ""

    def said(self, tool: str) -> tuple[str, ...]:
        """What this tool said, in order."""
        return tuple(result.content for result in self.results if result.tool == tool)


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. `arguments` is its JSON text; without an `id` it gets the next `c<number>`."""

    tool: str
    arguments: str = "{}"
    id: str | None = None


def call(name: str, /, **arguments: Any) -> Reply:
    """A reply that is one call."""
    return Reply(calls=(Call(name, compact_json(arguments)),))


def answer(text: str) -> Reply:
    """A reply that is text only."""
    return Reply(text=text)


@dataclass(frozen=True, slots=True)
class Reply:
    """Text, calls, or both."""

    text: str | None = None
    calls: tuple[Call, ...] = ()
    finish_reason: str | None = None
    """Only where it is not the one that follows from text and calls."""
    note: str | None = field(default=None, compare=False)
    """For the server's log: what is unusual about this reply."""

    @property
    def reason(self) -> str:
        """The finish reason as the wire names it."""
        return self.finish_reason or ("tool_calls" if self.calls else "stop")

    def wire_calls(self) -> list[dict[str, Any]]:
        """The calls as they stand in a message."""
        return [call_object(call.id or "", call.tool, call.arguments) for call in self.calls]

    def completion_tokens(self) -> int:
        """What the reply costs."""
        return tokens.count_completion(self.text, self.wire_calls())


def read_conversation(request: ChatRequest) -> Conversation:
    """The conversation out of a checked request.

    A tool message is put to the turn and the tool of the latest call with its id.
    """
    turn, calls_so_far, results = 0, 0, []
    asked: dict[str, tuple[int, str]] = {}
    for message in request.messages:
        if message.role == "assistant":
            turn += 1
            calls_so_far += len(message.tool_calls)
            asked.update({call.id: (turn, call.function.name) for call in message.tool_calls})
        elif message.role == "tool":
            of_turn, tool = asked.get(message.tool_call_id or "", (turn, message.name or ""))
            results.append(Result(of_turn, tool, message.content or ""))
    return Conversation(
        turn=turn,
        results=tuple(results),
        calls_so_far=calls_so_far,
        offered=frozenset(tool.name for tool in request.callable_tools),
        task=next((m.content or "" for m in request.messages if m.role == "user"), ""),
    )


def with_ids(reply: Reply, calls_so_far: int) -> Reply:
    """The reply with an id for each call that has none: c1, c2, … through the conversation.

    So ids never repeat, and are the same for the same conversation. They are this short
    because the published figures count them: a call of list_files is 23 tokens.
    """
    calls = tuple(
        call if call.id is not None else Call(call.tool, call.arguments, f"c{number}")
        for number, call in enumerate(reply.calls, start=calls_so_far + 1)
    )
    return Reply(reply.text, calls, reply.finish_reason, reply.note)


def offered_only(reply: Reply, offered: Mapping[str, Any] | frozenset[str]) -> Reply:
    """The reply, or words instead of a call that the request does not allow."""
    missing = next((call.tool for call in reply.calls if call.tool not in offered), None)
    if missing is None:
        return reply
    return answer(f"I was not given the tool {missing}, so I cannot go on.")
