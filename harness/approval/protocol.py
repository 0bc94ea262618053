"""The seam for standing rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

Action = Literal["allow", "ask", "deny"]


class Ruling(NamedTuple):
    """What a policy says about one call, and by which rule, in words."""

    action: Action
    rule: str
    reason: str | None = None
    """For `deny`: why, for the model."""


class Policy(Protocol):
    """Decides without a person. `None` means that it has nothing to say: then a
    write is asked about and a read runs."""

    def rule_on(self, tool_name: str, args: Mapping[str, Any]) -> Ruling | None: ...
