"""One chat request over HTTP, and when its pieces came."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True, slots=True)
class Timed:
    """A streamed reply. Times in seconds since the request."""

    first_s: float
    whole_s: float
    tokens: int
    cached: int
    text: str
    calls: tuple[dict[str, str], ...]

    @property
    def decode_rate(self) -> float:
        """Tokens a second after the first."""
        return (self.tokens - 1) / max(self.whole_s - self.first_s, 1e-9)


async def ask(client: httpx.AsyncClient, root: str, body: dict[str, Any]) -> Timed:
    """Stream one reply.

    Raises:
        httpx.HTTPError: where the server does not give one.
    """
    body = {**body, "stream": True, "stream_options": {"include_usage": True}}
    begun = time.monotonic()
    first: float | None = None
    texts: list[str] = []
    calls: dict[int, dict[str, str]] = {}
    usage: dict[str, Any] = {}
    pieces = 0
    async with client.stream("POST", f"{root}/v1/chat/completions", json=body) as response:
        if response.status_code != httpx.codes.OK:
            await response.aread()
            response.raise_for_status()
        async for line in response.aiter_lines():
            if not line.startswith("data: {"):
                continue
            chunk = json.loads(line[6:])
            usage = chunk.get("usage") or usage
            for choice in chunk["choices"]:
                delta = choice["delta"]
                if delta.get("content") or delta.get("tool_calls") or choice["finish_reason"]:
                    first = first or time.monotonic() - begun
                texts.append(delta.get("content") or "")
                pieces += bool(delta.get("content"))
                _add_calls(calls, delta.get("tool_calls") or ())
    whole = time.monotonic() - begun
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
    # Where a server gives no usage in a stream, its pieces are counted: one is one token.
    made = usage.get("completion_tokens") or pieces
    return Timed(first or whole, whole, made, cached, "".join(texts), tuple(calls.values()))


async def ask_together(
    client: httpx.AsyncClient, root: str, bodies: Sequence[dict[str, Any]]
) -> list[Timed]:
    """Several at once."""
    return list(await asyncio.gather(*[ask(client, root, body) for body in bodies]))


def _add_calls(calls: dict[int, dict[str, str]], deltas: Sequence[dict[str, Any]]) -> None:
    for delta in deltas:
        call = calls.setdefault(delta["index"], {"name": "", "arguments": ""})
        function = delta.get("function") or {}
        call["name"] += function.get("name") or ""
        call["arguments"] += function.get("arguments") or ""
