"""The shapes of what goes back over OpenAI's wire: whole replies, chunks, calls, usage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def usage(prompt_tokens: int, cached_tokens: int, completion_tokens: int) -> dict[str, Any]:
    """OpenAI's usage object."""
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": cached_tokens},
    }


def reply_body(
    head: dict[str, Any],
    content: str | None,
    calls: Sequence[dict[str, Any]],
    finish_reason: str,
    used: dict[str, Any],
) -> dict[str, Any]:
    """A whole reply; `head` is id, created and model. Beside calls, empty content is null."""
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
    if calls:
        message["content"] = content or None
        message["tool_calls"] = list(calls)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
    return {
        "id": head["id"],
        "object": "chat.completion",
        "created": head["created"],
        "model": head["model"],
        "choices": [choice],
        "usage": used,
    }


def call_object(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """A tool call as it stands in a message."""
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def chunk_body(
    head: dict[str, Any],
    delta: dict[str, Any] | None,
    finish_reason: str | None = None,
    used: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """One chunk of a stream; without a delta it is the closing chunk with the usage."""
    choices = (
        []
        if delta is None
        else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}]
    )
    chunk = {
        "id": head["id"],
        "object": "chat.completion.chunk",
        "created": head["created"],
        "model": head["model"],
        "choices": choices,
    }
    return chunk if used is None else {**chunk, "usage": used}
