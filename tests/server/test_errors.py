"""Errors in OpenAI's shape."""

from __future__ import annotations

import pytest

from server import errors


def test_s11_context_length_exceeded_says_both_numbers() -> None:
    error = errors.ContextLengthExceeded(5000, 4096)
    body = error.body()["error"]
    assert error.status == 400
    assert body["code"] == "context_length_exceeded"
    assert (body["prompt_tokens"], body["context_tokens"]) == (5000, 4096)
    assert "5000" in body["message"]
    assert "4096" in body["message"]


@pytest.mark.parametrize(
    ("error", "status", "after"),
    [
        (errors.Busy("full", retry_after_s=3), 429, "3"),
        (errors.Unavailable("loading"), 503, "1"),
        (errors.Unavailable("broken", retry_after_s=None), 503, None),
        (errors.ModelNotFound("x", ["a", "b"]), 404, None),
    ],
)
def test_status_and_retry_after(error: errors.ApiError, status: int, after: str | None) -> None:
    assert error.status == status
    assert error.headers.get("Retry-After") == after
    assert set(error.body()["error"]) == {"message", "type", "param", "code"}
