"""What stands behind the HTTP surface: the llama.cpp engine or a scripted scenario.

The surface (`server/app.py`) turns a request into a `ChatRequest`, hands it to a
`Backend` and turns the pieces that come back into one JSON reply or a stream.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from server.wire import ChatRequest

FinishReason = Literal["stop", "length", "tool_calls"]


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Some more of the reply's text."""

    text: str


@dataclass(frozen=True, slots=True)
class CallPiece:
    """The beginning of a tool call (`id` and `name` given) or more of its arguments."""

    index: int
    arguments: str = ""
    id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """The last piece of every reply."""

    reason: FinishReason
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    timings: Mapping[str, float] | None = None
    """Milliseconds: `queue_ms`, `prefill_ms`, `decode_ms`; for people and benchmarks."""


Piece = TextPiece | CallPiece | Finish


class Backend(Protocol):
    """A source of replies. Every method but `chat` answers at once."""

    def state(self) -> Mapping[str, Any]:
        """For `/health`: at least `status`: "loading", "ok" or "failed", and `detail`."""
        ...

    def models(self) -> list[dict[str, Any]]:
        """For `/v1/models`: OpenAI's model objects, with what else is known of each."""
        ...

    def metrics(self) -> str:
        """For `/metrics`: Prometheus text."""
        ...

    def chat(self, request: ChatRequest) -> AsyncIterator[Piece]:
        """Pieces of the reply, ending with one `Finish`.

        Closing the iterator stops the work. Raises `server.errors.ApiError` for
        whatever the client can be told, before the first piece where possible.
        """
        ...

    def close(self) -> None:
        """Stop all work and free the model. Safe to call twice."""
        ...
