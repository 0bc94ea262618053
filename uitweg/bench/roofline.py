"""How near the limit decoding is: memory bandwidth over the bytes that each token reads.

A token of one reply needs every weight once, and the keys and values of what came before; nothing
can be quicker than reading them. The embedding table is left out, of which one row is read. The
idea: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from models import gguf

_BYTES = 256 * 1024 * 1024
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Roofline:
    """Bandwidth in bytes a second, and what it allows."""

    bandwidth: float
    bytes_per_token: int

    @property
    def tokens_per_s(self) -> float:
        """The most that memory allows for one reply."""
        return self.bandwidth / self.bytes_per_token


def bandwidth(threads: int) -> float:
    """Bytes a second that so many threads read, each from its own part; the best of some rounds."""
    parts = [np.ones(_BYTES // threads // 8, np.float64) for _ in range(threads)]
    best = 0.0
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(_ROUNDS):
            begun = time.monotonic()
            # numpy lets go of the interpreter's lock while it adds.
            list(pool.map(np.sum, parts))
            best = max(best, sum(part.nbytes for part in parts) / (time.monotonic() - begun))
    return best


def bytes_per_token(path: Path) -> int:
    """Bytes of weights that one token reads.

    The whole file but for its header, and but for the embedding table where the output head is a
    matrix of its own; where it is not, the table is the head and is read whole.
    """
    sizes = gguf.check(path).sizes
    head_is_apart = "output.weight" in sizes
    return sum(sizes.values()) - (sizes["token_embd.weight"] if head_is_apart else 0)
