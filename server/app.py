"""The HTTP surface: OpenAI's chat completions over one backend.

    POST /v1/chat/completions   whole and streamed
    GET  /v1/models, /v1/models/NAME
    GET  /health                503 until the model is ready; never waits for anything
    GET  /metrics               Prometheus text
    GET  /openapi.json          what all of these take and answer

Whoever asks is checked before anything else: a web page that a browser has open must not reach
a server on loopback. So there is no CORS header here at all, and no answer without `Host`.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Collection

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from local.guard import check
from server.backend import Backend
from server.errors import (
    ApiError,
    BadRequest,
    BodyTimeout,
    BodyTooLarge,
    EngineFailed,
    Forbidden,
    MethodNotAllowed,
    ModelNotFound,
    NotFound,
    Unauthorized,
    Unavailable,
    WrongContentType,
)
from server.openapi import DESCRIPTION
from server.parse import parse_request
from server.reply import ChatReply, send_error

MOST_BODY_BYTES = 16 * 1024 * 1024
BODY_SECONDS = 30.0
"""Time in which a body must have come whole."""


def create_app(
    backend: Backend,
    *,
    allowed_hosts: Collection[str],
    token: str | None = None,
    stopping: asyncio.Event | None = None,
) -> ASGIApp:
    """The server as an ASGI app.

    Args:
        backend: where replies come from; whoever made it also closes it.
        allowed_hosts: values of `Host` under which this server answers, see `local.guard`.
        token: if given, what a client must send as `Authorization: Bearer …`, except to /health.
        stopping: once set, the replies under way are broken off.
    """
    app = Starlette(
        routes=[
            Route("/v1/chat/completions", _chat, methods=["POST"]),
            Route("/v1/models", _models),
            Route("/v1/models/{name:path}", _model),
            Route("/health", _health),
            Route("/metrics", _metrics),
            Route("/openapi.json", _openapi),
        ],
        exception_handlers={
            ApiError: _api_error,
            HTTPException: _http_error,
            Exception: _unforeseen,
        },
    )
    app.router.redirect_slashes = False
    app.state.backend = backend
    app.state.stopping = stopping or asyncio.Event()
    return _Door(app, tuple(allowed_hosts), token)


class _Door:
    """Refuses those who may not ask at all, before the request is looked at."""

    def __init__(self, app: ASGIApp, allowed_hosts: Collection[str], token: str | None) -> None:
        self._app = app
        self._allowed_hosts = allowed_hosts
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (error := self._refusal(scope)) is not None:
            await send_error(send, error)
        else:
            await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> ApiError | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        host = hosts[0] if len(hosts) == 1 else None
        reason = check(scope["method"], host, headers.get("origin"), self._allowed_hosts)
        if reason is not None:
            return Forbidden(reason, code="forbidden", headers={"Connection": "close"})
        if self._token is None or scope["path"] == "/health":
            return None
        sent = headers.get("authorization", "")
        if hmac.compare_digest(sent.encode(), f"Bearer {self._token}".encode()):
            return None
        return Unauthorized(
            "This server wants a token: Authorization: Bearer …",
            code="invalid_api_key",
            headers={"WWW-Authenticate": "Bearer", "Connection": "close"},
        )


async def _chat(request: Request) -> ASGIApp:
    backend = _backend(request)
    _check_content_type(request)
    body = await _read_body(request)
    state = backend.state()
    if state["status"] == "loading":
        raise Unavailable(f"The model is loading: {state.get('detail', 'wait')}.")
    if state["status"] != "ok":
        detail = state.get("detail", "no reason known")
        raise Unavailable(f"No model: {detail}.", code="model_failed", retry_after_s=None)
    chat_request = parse_request(body)
    served = backend.models()
    model = chat_request.model or (str(served[0]["id"]) if served else "")
    return ChatReply(backend, chat_request, model, request.app.state.stopping)


async def _models(request: Request) -> Response:
    return JSONResponse({"object": "list", "data": _backend(request).models()})


async def _model(request: Request) -> Response:
    models = _backend(request).models()
    name = request.path_params["name"]
    for model in models:
        if model["id"] == name:
            return JSONResponse(model)
    raise ModelNotFound(name, [str(model["id"]) for model in models])


async def _health(request: Request) -> Response:
    state = _backend(request).state()
    return JSONResponse(dict(state), 200 if state["status"] == "ok" else 503)


async def _metrics(request: Request) -> Response:
    text = _backend(request).metrics()
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")


async def _openapi(_request: Request) -> Response:
    return JSONResponse(DESCRIPTION)


def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend


def _check_content_type(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise WrongContentType("Send the body as Content-Type: application/json.")


async def _read_body(request: Request) -> bytes:
    """The body, within bounds of size and time."""
    closing = {"Connection": "close"}
    too_large = BodyTooLarge(
        f"The body is larger than {MOST_BODY_BYTES // 1024**2} MiB.", headers=closing
    )
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > MOST_BODY_BYTES:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MOST_BODY_BYTES:
                    raise too_large
    except TimeoutError:
        raise BodyTimeout("The body did not come in time.", headers=closing) from None
    except ClientDisconnect:
        # Nobody hears this; raised as it is, it would stand in the log as a fault of ours.
        raise BadRequest("The connection ended within the body.") from None
    return bytes(body)


async def _api_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)  # noqa: S101 - what it is registered for
    return JSONResponse(error.body(), error.status, error.headers)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - what it is registered for
    method, path = request.method, request.url.path[:200]
    if error.status_code == 405:
        refused: ApiError = MethodNotAllowed(
            f"{method} is not allowed for {path}.", headers=error.headers
        )
    else:
        refused = NotFound(f"There is nothing at {path}.")
    return JSONResponse(refused.body(), refused.status, refused.headers)


async def _unforeseen(_request: Request, _error: Exception) -> Response:
    # Starlette raises the exception again after this, so that it stands in the log.
    failed = EngineFailed("The server failed at this request; its log says why.")
    return JSONResponse(failed.body(), failed.status)
