"""A request's bytes to the checked request, or to words for what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import ValidationError

from server.errors import BadRequest
from server.json_text import parse_json
from server.wire import ChatRequest

MOST_VALUES = 200_000
"""Values in a body: more would keep all other requests waiting for seconds."""
_UNSUPPORTED = (
    "n", "logprobs", "top_logprobs", "logit_bias", "presence_penalty", "frequency_penalty",
    "functions", "function_call", "audio", "modalities",
)  # fmt: skip
"""Fields that `ChatRequest` takes only in the form that asks for nothing."""


def parse_request(body: bytes) -> ChatRequest:
    """The checked request out of a body's bytes.

    Raises:
        BadRequest: naming the first field that is wrong.
    """
    # Separators inside texts count too, but no text with so many would fit a context.
    if body.count(b",") + body.count(b"[") + body.count(b"{") > MOST_VALUES:
        raise BadRequest(f"The body holds more than {MOST_VALUES} values.", code="too_many_values")
    try:
        raw = parse_json(body)
    except ValueError as error:
        raise BadRequest(f"The body is not valid JSON: {error}.", code="invalid_json") from None
    if not isinstance(raw, dict):
        raise BadRequest("The body must be a JSON object.", code="invalid_json")
    try:
        return ChatRequest.model_validate({**raw, "raw": raw})
    except ValidationError as error:
        field, reason = _first_fault(error)
        raise BadRequest(
            f"Invalid value for {field!r}: {reason}.", param=field, code="invalid_value"
        ) from None


def _first_fault(error: ValidationError) -> tuple[str, str]:
    """The first wrong field's name and what is wrong with it."""
    first = error.errors(include_url=False, include_context=False)[0]
    kind, field = first["type"], _field_name(first["loc"])
    if kind.startswith("field:"):
        inner = kind.removeprefix("field:")
        return (f"{field}.{inner}" if field else inner), first["msg"]
    if field.partition("[")[0] in _UNSUPPORTED:
        return field, "this server does not support it"
    if kind == "missing":
        return field, "this field is required"
    return field, first["msg"].removeprefix("Value error, ")


def _field_name(loc: Sequence[int | str]) -> str:
    """`messages[2].content` from pydantic's location, without its names for union branches."""
    name = ""
    for part in loc:
        if isinstance(part, int):
            name += f"[{part}]"
        elif re.fullmatch(r"[a-z_]+", part):
            name += f".{part}" if name else part
    return name
