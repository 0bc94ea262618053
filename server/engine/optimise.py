"""Make a file that this machine's CPU reads quicker, and measure what that gained and lost.

Q4_0 weights, the output head too: the fewest bytes a step of all formats for which there are quick
kernels on every CPU, ours or llama.cpp's, that give the same bits for one row as for many (see
`context`).
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from server.engine.context import Context, ContextSettings, Rows
from server.engine.model import Model
from server.engine.native import NativeError, native

Q4_0 = 2
"""Both the file type and the tensor type have this number."""
_PIECE = 64
_ROUNDS = 5
_SPEED_PROMPT = 128
_SPEED_REPLY = 24


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


def measure(paths: Sequence[Path], text: str, threads: int) -> list[Measures]:
    """Load files, and measure each on a text.

    Speeds are the best of some rounds in which the files take turns, so that what else the
    machine does falls on all of them alike.
    """
    with ExitStack() as stack:
        loaded = [_load(path, threads, stack) for path in paths]
        ids = [model.tokenize(text, begin=True) for model, _ in loaded]
        surprise = [_perplexity(loaded[n][1], ids[n]) for n in range(len(paths))]
        rates = [[_rates(loaded[n][1], ids[n]) for n in range(len(paths))] for _ in range(_ROUNDS)]
    return [
        Measures(
            bytes=paths[n].stat().st_size,
            perplexity=surprise[n],
            prefill_rate=max(rounds[n][0] for rounds in rates),
            decode_rate=max(rounds[n][1] for rounds in rates),
        )
        for n in range(len(paths))
    ]


def _load(path: Path, threads: int, stack: ExitStack) -> tuple[Model, Context]:
    model = Model(native(), path)
    stack.callback(model.close)
    context = Context(native(), model, ContextSettings(2048, 4, threads, outputs=_PIECE))
    stack.callback(context.close)
    return model, context


def _perplexity(context: Context, ids: list[int]) -> float:
    """How surprised the model is by each next token: e to the mean negative log probability."""
    context.clear()
    lost = 0.0
    for begin in range(0, len(ids), _PIECE):
        piece = ids[begin : begin + _PIECE]
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
