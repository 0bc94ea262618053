"""The page's description of itself, as OpenAPI 3.1: its addresses, forms and answers.

Served at /openapi.json to whoever has access. `tests/web/test_openapi.py` holds it against
the routes.
"""

from __future__ import annotations

from typing import Any, get_args

from harness.state import ENDINGS, DecisionAction

Json = dict[str, Any]

TEXT: Json = {"type": "string"}
HTML = ("text/html",)
EITHER = ("text/html", "application/json")
"""Errors, and answers to forms: JSON where a script asks."""
RUN: Json = {"name": "run_id", "in": "path", "required": True, "schema": TEXT}
AFTER = {"after": {"type": "integer", "minimum": 0}}
FILTERS = {"q": TEXT, "ending": {"enum": ["", "running", *ENDINGS]}, "model": TEXT}
LIMITS = {"max_turns": TEXT, "max_cost_usd": TEXT}

_WORDS = {
    303: "Done; the address of what to look at.",
    400: "The request cannot be read.",
    401: "This browser has no access.",
    403: "Host, Origin or the form's token is wrong. Nothing was changed.",
    404: "There is no such run, event or page.",
    405: "Another method is wanted.",
    409: "The run is not in a state for this, or somebody was first. Nothing was changed.",
    413: "The form is too large.",
    422: "Something in the form is wrong; it says what. Nothing was changed.",
    503: "The store cannot be used just now, or too many pages watch.",
}


STREAM = "text/event-stream"
EVENT: Json = {"type": "object", "properties": {"data": TEXT}, "required": ["data"]}
"""One server-sent event of a stream: how tools that read descriptions see it."""


def _content(kinds: tuple[str, ...]) -> Json:
    shapes = {"application/json": {}, STREAM: EVENT}
    return {kind: {"schema": shapes.get(kind, TEXT)} for kind in kinds}


def _errors(*codes: int) -> Json:
    return {str(code): {"description": _WORDS[code], "content": _content(EITHER)} for code in codes}


def _get(what: str, *kinds: str, query: Json | None = None, run: bool = False) -> Json:
    codes = (401, 403, 404, 405, 422, 503) if run or query else (401, 403, 405, 503)
    return {
        "get": {
            "summary": what,
            "parameters": [
                *([RUN] if run else []),
                *({"name": n, "in": "query", "schema": s} for n, s in (query or {}).items()),
            ],
            "responses": {
                "200": {"description": what, "content": _content(kinds or HTML)},
                # An address with a start-up token leads to the one without it.
                "303": {"description": _WORDS[303]},
                **_errors(*codes),
            },
        }
    }


def _post(what: str, form: Json, *required: str, run: bool = True) -> Json:
    schema = {"type": "object", "properties": form, "required": list(required)}
    return {
        "post": {
            "summary": what,
            "parameters": [RUN] if run else [],
            "security": [{"session": [], "form": []}],
            "requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": schema}}},
            "responses": {
                "200": {"description": "Done.", "content": _content(("application/json",))},
                "303": {"description": _WORDS[303], "content": _content(HTML)},
                **_errors(400, 401, 403, 404, 405, 409, 413, 422, 503),
            },
        }
    }


_EVENT = _get("One event's whole text.", "text/html", "text/plain", query={"piece": TEXT}, run=True)
_EVENT["get"]["parameters"].append(
    {"name": "seq", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 0}}
)
_FILE = _get("Style, script and icons.", "text/css", "text/javascript", "image/svg+xml")
_FILE["get"]["parameters"].append(
    {"name": "filename", "in": "path", "required": True, "schema": TEXT}
)
_FILE["get"]["security"] = []
_FILE["get"]["responses"] |= _errors(404)
_DECIDE = {
    "action": {"enum": list(get_args(DecisionAction))},
    "call_id": TEXT,
    "digest": TEXT,
    "args": TEXT,
    "reason": TEXT,
}

DESCRIPTION: Json = {
    "openapi": "3.1.0",
    "info": {"title": "Uitweg's page", "version": "1"},
    "security": [{"session": []}],
    "paths": {
        "/static/{filename}": _FILE,
        "/": _get(
            "The form of a new task, and the runs.",
            query={**FILTERS, "before": {"type": "integer"}, "example": TEXT, "like": TEXT},
        ),
        "/runs": _post(
            "Start a run.", {"task": TEXT, "model": TEXT, "workspace": TEXT, **LIMITS},
            "task", "model", run=False,
        ),
        "/runs/{run_id}": _get("One run.", run=True),
        "/runs/{run_id}/transcript": _get("The messages as the model saw them.", run=True),
        "/runs/{run_id}/trace": _get("Its events.", query=AFTER, run=True),
        "/runs/{run_id}/trace.jsonl": _get("Its events as a file.", "application/jsonl", run=True),
        "/runs/{run_id}/events/{seq}": _EVENT,
        "/runs/{run_id}/stop": _post("Stop it.", {}),
        "/runs/{run_id}/resume": _post("Go on with it, perhaps with other limits.", LIMITS),
        "/runs/{run_id}/decide": _post(
            "Say whether the call that waits may run.", _DECIDE, "action", "call_id", "digest"
        ),
        "/runs/{run_id}/live": _get("It, as it happens.", STREAM, query=AFTER, run=True),
        "/runs/{run_id}/news": _get("The same once.", "application/json", query=AFTER, run=True),
        "/live": _get("The list, as it changes.", STREAM, query=FILTERS),
        "/news": _get("The same once.", "application/json", query=FILTERS),
        "/compare": _get(
            "Runs side by side.", query={"run": {"type": "array", "items": TEXT, "maxItems": 60}}
        ),
        "/model": _get("The model servers."),
        "/model/state": _get("Their state just now."),
        "/openapi.json": _get("This.", "application/json"),
    },
    "components": {
        "securitySchemes": {
            "session": {"type": "apiKey", "in": "cookie", "name": "uitweg_8000"},
            "form": {"type": "apiKey", "in": "header", "name": "X-CSRF-Token"},
        }
    },
}  # fmt: skip
