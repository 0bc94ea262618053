"""Policies of the harness that help a small model finish; each is off unless named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harness.errors import SettingsError
from harness.guidance.check import CheckAnswer
from harness.guidance.done import SayWhatWasDone
from harness.guidance.evidence import AnswerFromEvidence
from harness.guidance.look_first import LookFirst
from harness.guidance.names_exist import NamesThatExist
from harness.guidance.plan import ReadThenAnswer
from harness.guidance.protocol import Answer, Calls, Guided, Move, Policy
from harness.guidance.repair import Repair

__all__ = ["Answer", "Calls", "Guided", "Move", "Policy", "policies", "policies_named"]


def policies() -> dict[str, Policy]:
    """All policies that come with the harness, by name, in the order they are asked."""
    all_of_them: tuple[Policy, ...] = (
        LookFirst(),
        NamesThatExist(),
        Repair(),
        ReadThenAnswer(),
        SayWhatWasDone(),
        AnswerFromEvidence(),
        CheckAnswer(),
    )
    return {policy.name: policy for policy in all_of_them}


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
