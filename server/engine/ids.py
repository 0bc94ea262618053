"""Token ids as arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int32]


def shared_length(one: Ids, other: Ids) -> int:
    """Length of the common beginning."""
    size = min(len(one), len(other))
    differing = one[:size] != other[:size]
    first = int(differing.argmax()) if size else 0
    return first if size and differing[first] else size
