"""The client of an OpenAI-compatible endpoint.

Always streams, so that a cancel reaches the read at once and words can be shown
as they come; a server that answers with whole JSON all the same is understood.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.cancel import CancelToken
from harness.ports import BrokenOff, OnDelta, OnRetry, Reply, ReplyUsage
from harness.provider.body import Body
from harness.provider.connection import Connection
from harness.provider.errors import ProviderError
from harness.provider.reading import Assembly
from harness.provider.refusal import refusal
from harness.provider.retry import RetryPolicy
from harness.state import Message


class HttpProvider:
    """`harness.ports.Provider` over HTTP. One connection pool for any number of runs.

    Args:
        base_url: Such as `http://127.0.0.1:8080/v1`.
        api_key: Sent as a bearer token.
        policy: When to try again.
        read_timeout: Seconds without a byte after which a reply counts as broken.
            Generous, since a long prompt on a slow CPU is silent for minutes.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        policy: RetryPolicy | None = None,
        read_timeout: float = 600.0,
    ) -> None:
        url = f"{base_url.rstrip('/')}/chat/completions"
        self._connection = Connection(url, api_key, read_timeout)
        self._policy = policy or RetryPolicy()

    async def aclose(self) -> None:
        await self._connection.aclose()

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
        tool_choice: str | Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Reply:
        """One reply to `messages`.

        Raises `BrokenOff` when `cancel` is set, and a `ProviderError` when no
        usable reply came; both carry what was counted by then. Tokens of tries
        that failed after they were counted are part of the reply's usage.
        """
        body: dict[str, Any] = {"model": model, "messages": messages}
        if tools:
            body["tools"] = tools
            if tool_choice is not None:
                body["tool_choice"] = tool_choice
        body["temperature"] = temperature
        if max_tokens is not None:
            body["max_tokens"] = max_tokens
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
        body.update(extra or {})
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "replace"
        )
        wasted = ReplyUsage()
        failed = 0
        while True:
            attempt = _Attempt(self._connection, data, failed, on_delta)
            try:
                reply = await attempt.carry(cancel, messages)
                return replace(reply, usage=_sum(wasted, reply.usage))
            except ProviderError as error:
                failed += 1
                partial = attempt.partial()
                wasted = _sum(wasted, partial.usage)
                error.reply = replace(partial, usage=wasted)
                if not error.retryable or failed >= self._policy.tries:
                    raise
                seconds = self._policy.wait(failed, error.retry_after)
                if on_retry is not None:
                    on_retry(failed, str(error), seconds)
            except BrokenOff as broken:
                broken.reply = replace(broken.reply, usage=_sum(wasted, broken.reply.usage))
                raise
            await _pause(seconds, cancel, wasted)


class _Attempt:
    """One request and its reply."""

    def __init__(
        self,
        connection: Connection,
        data: bytes,
        number: int,
        on_delta: OnDelta | None,
    ) -> None:
        self._connection = connection
        self._data = data
        self._number = number
        self._assembly = Assembly(on_delta, self._note_first)
        self._started = time.monotonic()
        self._first_ms: float | None = None

    def _note_first(self) -> None:
        self._first_ms = self._elapsed_ms()

    def _elapsed_ms(self) -> float:
        return (time.monotonic() - self._started) * 1000

    def _timed(self, reply: Reply) -> Reply:
        return replace(reply, ms=self._elapsed_ms(), first_token_ms=self._first_ms)

    def partial(self) -> Reply:
        return self._timed(self._assembly.partial())

    async def carry(self, cancel: CancelToken, messages: Sequence[Message]) -> Reply:
        """The reply. Raises `BrokenOff` as soon as `cancel` is set."""
        if cancel.cancelled:
            raise BrokenOff(self.partial())
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._read())

        def stop() -> None:
            # A loop that has closed has nothing left to stop.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(task.cancel)

        unregister = cancel.on_cancel(stop)
        try:
            await task
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if cancel.cancelled and not (caller and caller.cancelling()):
                raise BrokenOff(self.partial()) from None
            raise
        finally:
            unregister()
        return self._timed(self._assembly.finish(_ids(messages)))

    async def _read(self) -> None:
        connection = self._connection
        response = await connection.post(self._data, self._number)
        try:
            if response.status != 200:
                raise await refusal(response, connection.read)
            body = Body(self._assembly)
            while chunk := await connection.read(response):
                body.take(chunk)
                if body.done:
                    await connection.read_rest(response)
                    return
            body.end()
        finally:
            response.close()


def _ids(messages: Sequence[Message]) -> list[str]:
    return [call["id"] for message in messages for call in message.get("tool_calls") or ()]


def _sum(one: ReplyUsage, other: ReplyUsage) -> ReplyUsage:
    return ReplyUsage(
        one.prompt + other.prompt, one.cached + other.cached, one.completion + other.completion
    )


async def _pause(seconds: float, cancel: CancelToken, wasted: ReplyUsage) -> None:
    """Wait before the next try. Raises `BrokenOff` when cancelled meanwhile."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await cancel.wait()
        raise BrokenOff(Reply(content=None, usage=wasted))
