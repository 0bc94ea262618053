"""Token ids as arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int32]


class HasTokens(Protocol):
    """What was computed for some tokens."""

    @property
    def tokens(self) -> Ids:
        """Their ids."""
        ...


Held = TypeVar("Held", bound=HasTokens)


def shared_length(one: Ids, other: Ids) -> int:
    """Length of the common beginning."""
    size = min(len(one), len(other))
    differing = one[:size] != other[:size]
    first = int(differing.argmax()) if size else 0
    return first if size and differing[first] else size


def begins(beginning: Ids, whole: Ids) -> bool:
    """Whether `whole` begins with all of `beginning`."""
    return shared_length(beginning, whole) == len(beginning)


def most_shared(held: Iterable[Held], prompt: Ids) -> tuple[Held | None, int]:
    """The first of those that share most with a prompt, and how many tokens; None where none do."""
    best, most = None, 0
    for one in held:
        if (shared := shared_length(one.tokens, prompt)) > most:
            best, most = one, shared
    return best, most
