"""What a step costs by its number of rows: what prompt lookup, several replies at once and prefill
live by. Inside the engine, without a server.
"""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from statistics import median

import numpy as np

from server.engine.context import Context, ContextSettings, Rows
from server.engine.model import Model
from server.engine.native import native
from uitweg.bench.servers import Setup

ROWS = (1, 2, 4, 8, 16)
BEFORE = 512
"""Tokens in the cache before the step."""
_PIECE = 128
_TEXT = Path(__file__).with_name("text.txt")


def steps(setup: Setup, rounds: int) -> tuple[dict[int, float], float]:
    """Milliseconds of a step with so many rows, and tokens a second of prefill; medians."""
    library = native()
    with closing(Model(library, setup.model)) as model:
        tokens = model.tokenize(_TEXT.read_text(encoding="utf-8"))
        tokens = (tokens * (1 + (BEFORE + max(ROWS)) // len(tokens)))[: BEFORE + max(ROWS)]
        settings = ContextSettings(1024, 1, setup.threads)
        with closing(Context(library, model, settings)) as context:
            return _measure(context, np.array(tokens, np.int32), rounds)


def _measure(context: Context, tokens: np.ndarray, rounds: int) -> tuple[dict[int, float], float]:
    prefills: list[float] = []
    spent: dict[int, list[float]] = {rows: [] for rows in ROWS}
    for _ in range(rounds):
        context.clear()
        begun = time.perf_counter()
        for at in range(0, BEFORE, _PIECE):
            context.decode([Rows(0, at, tokens[at : at + _PIECE], 1)])
        context.logits(_PIECE - 1)
        prefills.append(BEFORE / (time.perf_counter() - begun))
        for rows in ROWS:
            begun = time.perf_counter()
            context.decode([Rows(0, BEFORE, tokens[BEFORE : BEFORE + rows], rows)])
            context.logits(rows - 1)
            spent[rows].append(1000 * (time.perf_counter() - begun))
            context.remove(0, BEFORE, -1)
    return {rows: median(figures) for rows, figures in spent.items()}, median(prefills)
