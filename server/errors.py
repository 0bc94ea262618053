"""Everything the endpoint refuses, in OpenAI's error shape.

    ApiError
    ├── BadRequest               400  names the field in `param`
    │   └── ContextLengthExceeded     with both numbers
    ├── Unauthorized             401
    ├── Forbidden                403  Host or Origin not allowed
    ├── NotFound                 404
    │   └── ModelNotFound
    ├── MethodNotAllowed         405
    ├── BodyTimeout              408
    ├── BodyTooLarge             413
    ├── WrongContentType         415
    ├── Busy                     429  with Retry-After
    ├── EngineFailed             500  our fault, never the client's
    └── Unavailable              503  with Retry-After: loading, failed or shutting down

`RawReply` is apart: a backend that plays a broken provider raises it to have these exact
bytes sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar


class ApiError(Exception):
    """A reply other than 200: `message` says what happened and what to do next."""

    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep what the client is told; `extra` is added to the error object."""
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code
        self.headers = dict(headers or {})
        self.extra = dict(extra or {})

    def body(self) -> dict[str, Any]:
        """The JSON object that goes to the client."""
        error = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        return {"error": {**error, **self.extra}}


class BadRequest(ApiError):
    """The request asks for something that cannot be done; `param` names the field."""

    status = 400
    type = "invalid_request_error"


class ContextLengthExceeded(BadRequest):
    """The prompt does not fit the model's context. Both figures are in tokens."""

    def __init__(self, prompt_tokens: int, context_tokens: int) -> None:
        """`prompt_tokens`: what the messages came to; `context_tokens`: what there is room for."""
        super().__init__(
            f"This model's maximum context length is {context_tokens} tokens. However, your "
            f"messages resulted in {prompt_tokens} tokens. Shorten the messages.",
            param="messages",
            code="context_length_exceeded",
            extra={"prompt_tokens": prompt_tokens, "context_tokens": context_tokens},
        )


class Unauthorized(ApiError):
    """No token, or a wrong one."""

    status = 401
    type = "invalid_request_error"


class Forbidden(ApiError):
    """A request that a web page of somebody else could have made."""

    status = 403
    type = "invalid_request_error"


class NotFound(ApiError):
    """No such path."""

    status = 404
    type = "invalid_request_error"


class ModelNotFound(NotFound):
    """The request names a model that is not served here."""

    def __init__(self, model: str, served: Iterable[str]) -> None:
        """`served`: the names that would have worked."""
        names = ", ".join(served) or "none"
        super().__init__(
            f"The model {model[:100]!r} is not served here. Served: {names}.",
            param="model",
            code="model_not_found",
        )


class MethodNotAllowed(ApiError):
    """The path exists, but not for this method."""

    status = 405
    type = "invalid_request_error"


class BodyTimeout(ApiError):
    """The body did not arrive in time."""

    status = 408
    type = "invalid_request_error"


class BodyTooLarge(ApiError):
    """The body is larger than the server reads."""

    status = 413
    type = "invalid_request_error"


class WrongContentType(ApiError):
    """The body is not declared as JSON."""

    status = 415
    type = "invalid_request_error"


class Busy(ApiError):
    """Too many requests are waiting already."""

    status = 429
    type = "rate_limit_error"

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        """`retry_after_s`: whole seconds after which trying again makes sense."""
        super().__init__(
            message, code="rate_limit_exceeded", headers={"Retry-After": str(retry_after_s)}
        )


class EngineFailed(ApiError):
    """The server itself failed; the message says at what."""


class Unavailable(ApiError):
    """No reply now: the model is loading, did not load, or the server is ending."""

    status = 503

    def __init__(
        self, message: str, *, code: str = "model_loading", retry_after_s: int | None = 1
    ) -> None:
        """`retry_after_s`: whole seconds, or None when trying again is of no use."""
        headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
        super().__init__(message, code=code, headers=headers)


class RawReply(Exception):
    """Send exactly this instead of a chat completion; `cut` breaks the connection after it."""

    def __init__(
        self,
        body: bytes,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        cut: bool = False,
    ) -> None:
        """`headers` come in addition to Content-Length, which is left out when `cut`."""
        super().__init__(f"a raw reply of {len(body)} bytes")
        self.body = body
        self.status = status
        self.headers = dict(headers or {})
        self.cut = cut
