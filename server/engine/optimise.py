"""Make a file that this machine's CPU reads quicker, and measure what that gained and lost.

Q4_0 weights, the output head too: the fewest bytes a token for which llama.cpp has its quickest
kernels on every CPU, and kernels that give the same bits for one row as for many (see `context`).
"""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from server.engine.context import Context, ContextSettings, Rows
from server.engine.model import Model
from server.engine.native import NativeError, native

Q4_0 = 2
"""Both the file type and the tensor type have this number."""
_ROWS = 64
_SPEED_PROMPT = 256
_SPEED_REPLY = 48


@dataclass(frozen=True, slots=True)
class Measures:
    """Of one file on this machine. Rates in tokens a second."""

    bytes: int
    perplexity: float
    prefill_rate: float
    decode_rate: float


def quantise(source: Path, target: Path, threads: int) -> None:
    """Write `target`: `source` with every matrix as Q4_0.

    Raises:
        NativeError: with the library's reason; `target` may be there in part.
    """
    library = native()
    lib = library.lib
    params = lib.llama_model_quantize_default_params()
    params.nthread = threads
    params.ftype = Q4_0
    params.output_tensor_type = params.token_embedding_type = Q4_0
    params.allow_requantize = True
    params.pure = True
    library.forget_errors()
    status = lib.llama_model_quantize(
        str(source).encode(), str(target).encode(), ctypes.byref(params)
    )
    if status != 0:
        reason = library.last_errors() or "the library gave no reason"
        raise NativeError(f"{source} could not be made smaller: {reason}")


def measure(path: Path, text: str, threads: int) -> Measures:
    """Load a file, and measure it on a text."""
    library = native()
    model = Model(library, path)
    try:
        context = Context(library, model, ContextSettings(2048, 4, threads, outputs=_ROWS))
        try:
            ids = model.tokenize(text, begin=True)
            perplexity = _perplexity(context, ids)
            prefill, decode = _rates(context, ids)
        finally:
            context.close()
        return Measures(path.stat().st_size, perplexity, prefill, decode)
    finally:
        model.close()


def _perplexity(context: Context, ids: list[int]) -> float:
    """How surprised the model is by each next token: e to the mean negative log probability."""
    context.clear()
    lost = 0.0
    for begin in range(0, len(ids), _ROWS):
        piece = ids[begin : begin + _ROWS]
        context.decode([Rows(0, begin, piece, len(piece))])
        for row in range(min(len(piece), len(ids) - begin - 1)):
            logits = context.logits(row).astype(np.float64)
            most = logits.max()
            whole = most + np.log(np.exp(logits - most).sum())
            lost += whole - logits[ids[begin + row + 1]]
    return float(np.exp(lost / (len(ids) - 1)))


def _rates(context: Context, ids: list[int]) -> tuple[float, float]:
    prompt = (ids * (1 + _SPEED_PROMPT // len(ids)))[:_SPEED_PROMPT]
    context.clear()
    context.decode([Rows(0, 0, prompt[:32], 1)])
    context.clear()
    begun = time.monotonic()
    context.decode([Rows(0, 0, prompt, 1)])
    prefilled = time.monotonic()
    for number in range(_SPEED_REPLY):
        context.decode([Rows(0, _SPEED_PROMPT + number, prompt[number : number + 1], 1)])
    ended = time.monotonic()
    return _SPEED_PROMPT / (prefilled - begun), _SPEED_REPLY / (ended - prefilled)
