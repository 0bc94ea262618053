"""How near the limit decoding is: memory bandwidth over the bytes that each step reads.

A step needs every weight once, and the keys and values of what came before; nothing can be quicker
than reading them. The embedding table is left out, of which one row is read. A step gives one
token of a reply, and one more for each guess that comes true (see `server/engine/lookup.py`). The
idea: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009.
"""

from __future__ import annotations

import ctypes
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import numpy.typing as npt

from models import gguf
from uitweg.bench import work

_BYTES = 256 * 1024 * 1024
_ROUNDS = 20
_TOKENS = 96
_PATIENCE = 600.0


@dataclass(frozen=True, slots=True)
class Roofline:
    """Bandwidth in bytes a second, and what it allows."""

    bandwidth: float
    bytes_per_step: int

    @property
    def steps_per_s(self) -> float:
        """The most that memory allows."""
        return self.bandwidth / self.bytes_per_step


def bandwidth(threads: int) -> float:
    """Bytes a second that so many threads read, each from its own part; the best of some rounds.

    They look for a byte that is not there, with the C library's `memchr`: of what comes with
    Python it is the one that reads as fast as memory can. `numpy.sum` gives half of that.
    """
    parts = [np.ones(_BYTES // threads, np.uint8) for _ in range(threads)]
    look = ctypes.CDLL(None).memchr
    look.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]

    def read(part: npt.NDArray[np.uint8]) -> None:
        look(part.ctypes.data, 0, part.nbytes)

    best = 0.0
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(_ROUNDS):
            begun = time.monotonic()
            # ctypes lets go of the interpreter's lock meanwhile.
            list(pool.map(read, parts))
            best = max(best, sum(part.nbytes for part in parts) / (time.monotonic() - begun))
    return best


def steps_per_s(root: str) -> float:
    """Steps a second while our server, at `root`, writes one reply and does nothing else."""
    before = _counters(root)
    answer = httpx.post(
        f"{root}/v1/chat/completions", json=work.story(0, _TOKENS), timeout=_PATIENCE
    )
    answer.raise_for_status()
    steps, seconds = (b - a for a, b in zip(before, _counters(root), strict=True))
    return (steps - 1) / seconds  # the first was the prompt's


def _counters(root: str) -> tuple[float, float]:
    text = httpx.get(f"{root}/metrics").raise_for_status().text
    found = dict(re.findall(r"(?m)^uitweg_engine_(steps|decode_seconds)_total (\S+)$", text))
    return float(found["steps"]), float(found["decode_seconds"])


def bytes_per_step(path: Path) -> int:
    """Bytes of weights that one step reads.

    The whole file but for its header, and but for the embedding table where the output head is a
    matrix of its own; where it is not, the table is the head and is read whole.
    """
    sizes = gguf.check(path).sizes
    head_is_apart = "output.weight" in sizes
    return sum(sizes.values()) - (sizes["token_embd.weight"] if head_is_apart else 0)
