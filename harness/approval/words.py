"""What the model is told about a call that a person, a rule or a crash touched."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def declined(reason: str) -> str:
    """A person refused."""
    return f"The user declined this call: {reason}"


def declined_by_rule(reason: str | None) -> str:
    """A standing rule refused."""
    return f"This call was declined by a standing rule of the user: {reason or 'not allowed'}"


def edited(arguments: str, ran: Mapping[str, Any], result: str) -> str:
    """A person changed the arguments; says so, that the model does not try its own again."""
    shown = json.dumps(ran, ensure_ascii=False)
    return (
        f"The user changed the arguments of this call before it ran, on purpose. "
        f"You asked for {arguments}; what ran was {shown}. Do not ask for the first form again. "
        f"Result: {result}"
    )


def happened(note: str | None) -> str:
    """A person says that a write in doubt took effect."""
    result = f" Result: {note}" if note else " Its result is not known."
    return f"The program ended while this call ran. The user has checked: it took effect.{result}"


UNKNOWN = (
    "The program ended while this call ran, so its outcome is unknown: it may or may not have "
    "taken effect. It was not run again."
)


def skipped(reason: str) -> str:
    """The run ended before the call's turn came."""
    return f"This call was not run: {reason}"
