"""What a status other than 200 stands for."""

from __future__ import annotations

import json
from typing import Any

import httpx

from harness.provider.body import excerpt
from harness.provider.errors import ContextTooLong, EndpointBusy, ProviderError, RequestRefused
from harness.provider.reading import error_in_reply
from harness.provider.retry import read_retry_after

_MAX_ERROR_BYTES = 64 * 1024


async def refusal(response: httpx.Response) -> ProviderError:
    """The error to raise for `response`; reads a bounded part of its body."""
    status = response.status_code
    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > _MAX_ERROR_BYTES:
            break
    detail = _detail(body)
    if status == 429 or status >= 500:
        busy = EndpointBusy(f"The endpoint answered {status}: {_words(body, detail)}")
        busy.retry_after = read_retry_after(response.headers.get("retry-after"))
        return busy
    if detail is not None:
        known = error_in_reply(detail)
        if isinstance(known, ContextTooLong):
            return known
    where = response.headers.get("location")
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
