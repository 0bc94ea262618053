"""What a status other than 200 stands for."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import ClientResponse

from harness.provider.body import excerpt
from harness.provider.errors import ContextTooLong, EndpointBusy, ProviderError, RequestRefused
from harness.provider.reading import error_in_reply
from harness.provider.retry import read_retry_after

_MAX_ERROR_BYTES = 64 * 1024


async def refusal(
    response: ClientResponse, read: Callable[[ClientResponse], Awaitable[bytes]]
) -> ProviderError:
    """The error to raise for `response`; a bounded part of its body is read."""
    status, headers = response.status, response.headers
    body = b""
    while len(body) <= _MAX_ERROR_BYTES and (chunk := await read(response)):
        body += chunk
    detail = _detail(body)
    if status == 429 or status >= 500:
        busy = EndpointBusy(f"The endpoint answered {status}: {_words(body, detail)}")
        busy.retry_after = read_retry_after(headers.get("retry-after"))
        return busy
    if detail is not None:
        known = error_in_reply(detail)
        if isinstance(known, ContextTooLong):
            return known
    where = headers.get("location")
    told = f"it points to {where[:200]}" if where else _words(body, detail)
    return RequestRefused(f"The endpoint refused the request with {status}: {told}")


def _detail(body: bytes) -> Any:
    """OpenAI's error object, or what other servers put in its place."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict):
        return value.get("error") or value.get("detail") or value.get("message")
    return None


def _words(body: bytes, detail: Any) -> str:
    if isinstance(detail, dict) and isinstance(detail.get("message"), str):
        return str(detail["message"])[:500]
    return excerpt(detail.encode() if isinstance(detail, str) else body)
