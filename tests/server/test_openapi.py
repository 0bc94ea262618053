"""The server's description of itself says what there is, and what comes fits it."""

import http.client
import json
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from server.app import create_app
from server.openapi import DESCRIPTION
from server.scripted import ScriptedBackend

HELLO = [{"role": "user", "content": "Which file mentions a timeout?"}]
PLAN = {"model": "plan", "messages": HELLO}


def test_it_describes_every_route_and_no_other() -> None:
    app = create_app(ScriptedBackend(), allowed_hosts=["localhost"])
    while not isinstance(app, Starlette):
        app = app._app  # type: ignore[attr-defined]  # the layers in front of the routes
    routes = {
        (route.path.replace(":path", ""), method)
        for route in app.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    described = {
        (path, method.upper())
        for path, item in DESCRIPTION["paths"].items()
        for method in item.keys() - {"parameters"}
    }
    assert described == routes


@pytest.fixture
def ask(serving: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    with serving(ScriptedBackend()) as served:
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)

        def one(method: str, path: str, body: object = None) -> tuple[int, str, bytes]:
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, sent, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            kind = answer.headers.get_content_type()
            return answer.status, kind, answer.read()

        yield one
        connection.close()


@pytest.mark.parametrize(
    ("method", "path", "described", "body"),
    [
        ("POST", "/v1/chat/completions", None, PLAN),
        ("POST", "/v1/chat/completions", None, {"model": "none", "messages": HELLO}),
        ("POST", "/v1/chat/completions", None, {"messages": []}),
        ("POST", "/v1/chat/completions", None, {**PLAN, "stream": True}),
        ("GET", "/v1/models", None, None),
        ("GET", "/v1/models/plan", "/v1/models/{name}", None),
        ("GET", "/v1/models/none", "/v1/models/{name}", None),
        ("GET", "/health", None, None),
        ("GET", "/metrics", None, None),
        ("GET", "/openapi.json", None, None),
    ],
)  # fmt: skip
def test_what_comes_fits_the_description(
    ask: Callable[..., Any], method: str, path: str, described: str | None, body: object
) -> None:
    status, kind, data = ask(method, path, body)
    responses = DESCRIPTION["paths"][described or path][method.lower()]["responses"]
    schema = responses[str(status)]["content"][kind]["schema"]
    if kind == "application/json":
        whole = {**schema, "components": DESCRIPTION["components"]}
        jsonschema.validate(json.loads(data), whole)
