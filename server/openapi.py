"""The endpoint's description of itself, as OpenAPI 3.1: what it takes, and all that it may answer.

Served at /openapi.json. `tests/server/test_openapi.py` holds it against the routes.
"""

from __future__ import annotations

from typing import Any

from server.wire import MOST_STOPS, MOST_TOKENS

Json = dict[str, Any]

TEXT: Json = {"type": "string"}
OPTIONAL_TEXT: Json = {"type": ["string", "null"]}
OBJECT: Json = {"type": "object"}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: Json, *required: str) -> Json:
    return {"type": "object", "properties": properties, "required": list(required)}


def _list(of: Json, **more: Any) -> Json:
    return {"type": "array", "items": of, **more}


def _or_null(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}


def _number(low: float, high: float, kind: str = "number") -> Json:
    return {"type": [kind, "null"], "minimum": low, "maximum": high}


EVENT = _object({"data": TEXT}, "data")
"""One server-sent event of a stream: how tools that read descriptions see it."""


def _body(kind: str, schema: Json) -> Json:
    return {kind: {"schema": schema}}


_FUNCTION_CALL = _object({"name": TEXT, "arguments": TEXT}, "name", "arguments")
_TOOL_CALL = _object(
    {"id": TEXT, "type": {"const": "function"}, "function": _FUNCTION_CALL},
    "id", "type", "function",
)  # fmt: skip
_TEXT_PART = _object({"type": {"const": "text"}, "text": TEXT}, "type", "text")
_CONTENT = {"anyOf": [TEXT, _list(_TEXT_PART)]}

SCHEMAS: Json = {
    "Message": {
        "oneOf": [
            _object(
                {"role": {"enum": ["system", "developer", "user"]}, "content": _CONTENT,
                 "name": OPTIONAL_TEXT},
                "role", "content",
            ),
            _object(
                {"role": {"const": "assistant"}, "content": _or_null(_CONTENT),
                 "tool_calls": _or_null(_list(_TOOL_CALL))},
                "role",
            ),
            _object(
                {"role": {"const": "tool"}, "tool_call_id": TEXT, "content": _CONTENT},
                "role", "tool_call_id", "content",
            ),
        ]
    },
    "Tool": _object(
        {"type": {"const": "function"},
         "function": _object(
             {"name": {"type": "string", "pattern": r"^[A-Za-z0-9_.\-]{1,128}$"},
              "description": OPTIONAL_TEXT, "parameters": _or_null(OBJECT)},
             "name",
         )},
        "type", "function",
    ),
    "ToolChoice": {
        "anyOf": [
            {"enum": ["auto", "none", "required", None]},
            _object(
                {"type": {"const": "function"}, "function": _object({"name": TEXT}, "name")},
                "type", "function",
            ),
        ]
    },
    "ResponseFormat": {
        "oneOf": [
            _object({"type": {"enum": ["text", "json_object"]}}, "type"),
            _object(
                {"type": {"const": "json_schema"},
                 "json_schema": _object({"name": TEXT, "schema": OBJECT}, "schema")},
                "type", "json_schema",
            ),
        ]
    },
    "ChatRequest": _object(
        {
            "model": OPTIONAL_TEXT,
            "messages": _list(_ref("Message"), minItems=1),
            "tools": _or_null(_list(_ref("Tool"))),
            "tool_choice": _ref("ToolChoice"),
            "parallel_tool_calls": {"type": ["boolean", "null"]},
            "temperature": _number(0, 2),
            "top_p": _number(0, 1),
            "seed": _number(-(2**63), 2**63 - 1, "integer"),
            "stop": {
                "anyOf": [
                    {"type": ["string", "null"], "minLength": 1},
                    _list({"type": "string", "minLength": 1}, maxItems=MOST_STOPS),
                ]
            },
            "max_tokens": _number(1, MOST_TOKENS, "integer"),
            "max_completion_tokens": _number(1, MOST_TOKENS, "integer"),
            "response_format": _or_null(_ref("ResponseFormat")),
            "stream": {"type": ["boolean", "null"]},
            "stream_options": _or_null(_object({"include_usage": {"type": ["boolean", "null"]}})),
        },
        "messages",
    ),
    "Usage": _object(
        {name: {"type": "integer", "minimum": 0}
         for name in ("prompt_tokens", "completion_tokens", "total_tokens")},
        "prompt_tokens", "completion_tokens", "total_tokens",
    ),
    "ChatReply": _object(
        {
            "id": TEXT,
            "object": {"const": "chat.completion"},
            "created": {"type": "integer"},
            "model": TEXT,
            "choices": _list(
                _object(
                    {
                        "index": {"const": 0},
                        "message": _object(
                            {"role": {"const": "assistant"}, "content": OPTIONAL_TEXT,
                             "tool_calls": _list(_TOOL_CALL, minItems=1)},
                            "role", "content",
                        ),
                        "finish_reason": {"enum": ["stop", "length", "tool_calls"]},
                    },
                    "index", "message", "finish_reason",
                ),
                minItems=1, maxItems=1,
            ),
            "usage": _ref("Usage"),
        },
        "id", "object", "created", "model", "choices", "usage",
    ),
    "Model": _object(
        {"id": TEXT, "object": {"const": "model"}, "created": {"type": "integer"},
         "owned_by": TEXT},
        "id", "object",
    ),
    "Models": _object({"object": {"const": "list"}, "data": _list(_ref("Model"))}, "data"),
    "Health": _object({"status": {"enum": ["ok", "loading", "failed"]}, "detail": TEXT}, "status"),
    "Error": _object(
        {"error": _object({"message": TEXT, "type": TEXT, "param": OPTIONAL_TEXT,
                           "code": OPTIONAL_TEXT}, "message", "type")},
        "error",
    ),
}  # fmt: skip

_ERROR_WORDS = {
    400: "The request is wrong; `param` names the field.",
    401: "The token is missing or wrong.",
    403: "Host or Origin is not one of this server's.",
    404: "There is no such model.",
    405: "Another method is wanted.",
    408: "The body did not come in time.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    429: "Too many requests wait; `Retry-After` says when to come again.",
    500: "The server failed; its log says why.",
    503: "The model is loading, has failed, or is shutting down.",
}


def _errors(*codes: int) -> Json:
    content = _body("application/json", _ref("Error"))
    return {str(code): {"description": _ERROR_WORDS[code], "content": content} for code in codes}


def _get(what: str, kind: str, schema: Json, *errors: int, **more: Any) -> Json:
    good = {"description": what, "content": _body(kind, schema)}
    return {"get": {"summary": what, "responses": {"200": good, **_errors(*errors)}, **more}}


_CHAT: Json = {
    "post": {
        "summary": "One reply of the model, whole or streamed.",
        "requestBody": {
            "required": True,
            "content": _body("application/json", _ref("ChatRequest")),
        },
        "responses": {
            "200": {
                "description": "The reply; with `stream` as server-sent events.",
                "content": {
                    **_body("application/json", _ref("ChatReply")),
                    **_body("text/event-stream", EVENT),
                },
            },
            **_errors(400, 401, 403, 404, 405, 408, 413, 415, 429, 500, 503),
        },
    }
}
_NAMED: Json = {
    "parameters": [{"name": "name", "in": "path", "required": True, "schema": TEXT}],
    **_get("One model.", "application/json", _ref("Model"), 401, 403, 404, 405),
}
_HEALTH = _get("Whether it can answer.", "application/json", _ref("Health"), 403, 405, security=[])
_HEALTH["get"]["responses"]["503"] = {
    "description": "Not yet, or no longer.",
    "content": _body("application/json", _ref("Health")),
}

DESCRIPTION: Json = {
    "openapi": "3.1.0",
    "info": {"title": "Uitweg's model server", "version": "1"},
    "security": [{}, {"token": []}],
    "paths": {
        "/v1/chat/completions": _CHAT,
        "/v1/models": _get("The models.", "application/json", _ref("Models"), 401, 403, 405),
        "/v1/models/{name}": _NAMED,
        "/health": _HEALTH,
        "/metrics": _get("Counters, for Prometheus.", "text/plain", TEXT, 401, 403, 405),
        "/openapi.json": _get("This.", "application/json", OBJECT, 401, 403, 405),
    },
    "components": {
        "schemas": SCHEMAS,
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
    },
}
