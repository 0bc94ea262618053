"""What can go wrong between the harness and a model's endpoint.

ProviderFailed                 (harness.errors)
├── EndpointUnreachable        nobody listens, no such host
├── EndpointBusy               429 or 5xx, after all tries
├── ReplyBroken                the connection broke off or went silent in mid-reply
├── ReplyUnreadable            a reply came and is no chat completion
└── RequestRefused             4xx: asking again would not help
    └── ContextTooLong         the conversation no longer fits the model

`retryable` says whether the same request may do better a moment later: that is
the first three. After the last try the error goes up to the run.
"""

from __future__ import annotations

from harness.errors import ProviderFailed
from harness.ports import Reply


class ProviderError(ProviderFailed):
    """Base of all below. `reply` holds what had come by then, for its tokens."""

    retryable = False
    retry_after: float | None = None
    """Seconds that the endpoint asked to wait."""
    reply: Reply | None = None


class EndpointUnreachable(ProviderError):
    retryable = True


def nobody_answers(url: object) -> EndpointUnreachable:
    """The error for an address where nobody listens."""
    return EndpointUnreachable(
        f"Nobody answers at {url}. Start the model server with `uitweg serve`, "
        "or set LLM_BASE_URL to where one listens."
    )


class EndpointBusy(ProviderError):
    retryable = True


class ReplyBroken(ProviderError):
    retryable = True


class ReplyUnreadable(ProviderError):
    pass


class RequestRefused(ProviderError):
    pass


class ContextTooLong(RequestRefused):
    pass
