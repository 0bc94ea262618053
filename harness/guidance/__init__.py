"""Policies of the harness that help a small model finish; each is off unless named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harness.errors import SettingsError
from harness.guidance.evidence import AnswerFromEvidence
from harness.guidance.protocol import Answer, Calls, Guided, Move, Policy

__all__ = ["Answer", "Calls", "Guided", "Move", "Policy", "policies", "policies_named"]


def policies() -> dict[str, Policy]:
    """All policies that come with the harness, by name."""
    return {policy.name: policy for policy in (AnswerFromEvidence(),)}


def policies_named(names: Iterable[str], known: Mapping[str, Policy]) -> tuple[Policy, ...]:
    """The policies of these names, in this order. Raises `SettingsError`."""
    found = []
    for name in names:
        if name not in known:
            raise SettingsError(
                f"There is no guidance policy {name}. There are: {', '.join(known) or 'none'}."
            )
        found.append(known[name])
    return tuple(found)
