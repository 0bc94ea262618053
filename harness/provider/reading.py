"""A chat completion put together from its pieces, or from one whole JSON reply.

Tolerant of what servers are known to leave out or get wrong (missing ids,
indexes, finish reasons, arguments as an object), strict about everything that
is no chat completion at all. Nothing here believes a tool call's arguments:
they stay text.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.ports import Reply, ReplyUsage, WireCall
from harness.provider.errors import ContextTooLong, ReplyBroken, ReplyUnreadable, RequestRefused

MAX_CALLS = 128
"""More tool calls in one reply are a fault of the server, not a plan of the model."""

MOST_TOKENS = 10**12
"""A count above this is nonsense, and would not fit where counts are kept."""


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class Assembly:
    """Takes pieces as they come; `partial` is what there is at any moment.

    Args:
        on_delta: Called with each piece of the reply's text.
        on_first: Called once, with the first text or tool call.
    """

    def __init__(
        self,
        on_delta: Callable[[str], None] | None = None,
        on_first: Callable[[], None] | None = None,
    ) -> None:
        self._on_delta = on_delta
        self._on_first = on_first
        self._text: list[str] = []
        self._calls: list[_Call] = []
        self._by_index: dict[Any, _Call] = {}
        self._finish_reason = ""
        self._seen_message = False
        self._pieces = 0
        self.usage: ReplyUsage | None = None
        self.model: str | None = None

    def feed(self, chunk: object) -> None:
        """Take one chunk of a stream, or a whole reply. Raises a `ProviderError`."""
        if not isinstance(chunk, dict):
            raise ReplyUnreadable(f"The endpoint sent {_short(chunk)} instead of a reply.")
        if chunk.get("error"):
            raise error_in_reply(chunk["error"])
        if isinstance(chunk.get("usage"), dict):
            self.usage = _usage(chunk["usage"])
        if self.model is None and isinstance(chunk.get("model"), str):
            self.model = _clean(chunk["model"])
        choices = chunk.get("choices")
        if not choices:
            return
        if not isinstance(choices, list) or not isinstance(choices[0], dict):
            raise ReplyUnreadable(f"The reply's `choices` are {_short(choices)}.")
        self._take_choice(choices[0])

    def _take_choice(self, choice: dict[str, Any]) -> None:
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._finish_reason = _clean(reason)
        message = choice.get("delta", choice.get("message"))
        if message is None:
            return
        if not isinstance(message, dict):
            raise ReplyUnreadable(f"The reply's message is {_short(message)}.")
        self._seen_message = True
        content = message.get("content") or message.get("refusal")
        if content:
            self._take_text(content)
        calls = message.get("tool_calls")
        if calls:
            self._take_calls(calls)

    def _take_text(self, content: object) -> None:
        if isinstance(content, list):
            parts = [part.get("text") for part in content if isinstance(part, dict)]
            content = "".join(part for part in parts if isinstance(part, str))
        if not isinstance(content, str):
            raise ReplyUnreadable(f"The reply's content is {_short(content)}.")
        self._count()
        self._text.append(content)
        if self._on_delta is not None:
            self._on_delta(content)

    def _take_calls(self, calls: object) -> None:
        if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
            raise ReplyUnreadable(f"The reply's `tool_calls` are {_short(calls)}.")
        for item in calls:
            self._count()
            call = self._call_for(item)
            function = item.get("function")
            if not isinstance(function, dict):
                continue
            name = function.get("name")
            if isinstance(name, str) and not call.name:
                call.name = name
            arguments = function.get("arguments")
            if isinstance(arguments, str):
                call.arguments.append(arguments)
            elif arguments is not None:
                # Some servers send the object itself: as text it is judged like any other.
                call.arguments.append(_compact(arguments))

    def _call_for(self, item: dict[str, Any]) -> _Call:
        """The call that a piece belongs to: by index, else by id, else the last one."""
        given = item.get("id")
        call_id = given if isinstance(given, str) else ""
        index = item.get("index")
        known: _Call | None
        if isinstance(index, int):
            known = self._by_index.get(index)
        else:
            known = self._calls[-1] if self._calls and not call_id and _goes_on(item) else None
        if known is not None and (not call_id or known.id in ("", call_id)):
            known.id = known.id or call_id
            return known
        if len(self._calls) >= MAX_CALLS:
            raise ReplyUnreadable(f"The reply has more than {MAX_CALLS} tool calls.")
        call = _Call(id=call_id)
        self._calls.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        return call

    def _count(self) -> None:
        self._pieces += 1
        if self._pieces == 1 and self._on_first is not None:
            self._on_first()

    def finish(self, taken_ids: Iterable[str] = ()) -> Reply:
        """The whole reply. Raises `ReplyUnreadable` where there is none.

        Every call gets an id that is not empty and occurs neither twice nor in
        `taken_ids`, since a transcript answers its calls by id.
        """
        if not self._seen_message:
            raise ReplyUnreadable("The endpoint's reply holds no message.")
        return self._reply(set(taken_ids))

    @property
    def complete(self) -> bool:
        """Whether the server said that the reply is at its end."""
        return bool(self._finish_reason)

    @property
    def begun(self) -> bool:
        """Whether any text or call has come."""
        return self._pieces > 0

    def partial(self) -> Reply:
        """What has come so far. Unfinished calls are left out: nobody may run them.

        Where the server gave no count yet, each piece counts as one completion
        token: never too many.
        """
        usage = self.usage or ReplyUsage(completion=self._pieces)
        text = "".join(self._text)
        return Reply(content=_clean(text) or None, usage=usage, model=self.model)

    def _reply(self, taken: set[str]) -> Reply:
        calls = []
        for call in self._calls:
            if not call.id or call.id in taken:
                call.id = f"call_{secrets.token_hex(8)}"
            taken.add(call.id)
            calls.append(
                WireCall(_clean(call.id), _clean(call.name), _clean("".join(call.arguments)))
            )
        text = _clean("".join(self._text))
        return Reply(
            content=text if text or not calls else None,
            tool_calls=tuple(calls),
            finish_reason=self._finish_reason or ("tool_calls" if calls else "stop"),
            usage=self.usage or ReplyUsage(),
            model=self.model,
        )


def error_in_reply(error: object) -> RequestRefused | ReplyBroken | ContextTooLong:
    """An error that came in the body: refused, or worth another try."""
    fields: Mapping[str, Any] = error if isinstance(error, dict) else {"message": error}
    message = _short(fields.get("message") or error)
    kind = f"{fields.get('code')} {fields.get('type')}"
    if "context_length" in kind or "exceed_context" in kind:
        return ContextTooLong(f"The conversation is too long for the model: {message}")
    if "invalid" in kind or "not_found" in kind or "authentication" in kind:
        return RequestRefused(f"The endpoint refused the request: {message}")
    return ReplyBroken(f"The endpoint broke the reply off: {message}")


def _goes_on(item: dict[str, Any]) -> bool:
    """Whether a piece without index and id continues a call: it names no function."""
    function = item.get("function")
    return isinstance(function, dict) and not function.get("name")


def _usage(usage: dict[str, Any]) -> ReplyUsage:
    details = usage.get("prompt_tokens_details")
    return ReplyUsage(
        prompt=_count_of(usage.get("prompt_tokens")),
        cached=_count_of(details.get("cached_tokens")) if isinstance(details, dict) else 0,
        completion=_count_of(usage.get("completion_tokens")),
    )


def _count_of(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 < value <= MOST_TOKENS else 0


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _clean(text: str) -> str:
    """`text` with lone surrogates replaced: they can be neither stored nor sent on."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _short(value: object) -> str:
    text = value if isinstance(value, str) else _compact(value)
    return _clean(text if len(text) <= 300 else text[:300] + "…")
