"""Which tokens go into the next step.

A step computes one token for every reply that is being written and a piece of a waiting prompt,
in one batch. Prompts are computed in the order they came; the piece is small when others are
being written, so that they keep flowing.
"""

from __future__ import annotations

from collections.abc import Sequence

from server.engine.context import Rows
from server.engine.figures import Figures
from server.engine.lookup import MOST_GUESSED
from server.engine.reply import Reply

PIECE_ALONE = 128
"""Prompt tokens of a step when no reply is being written: newcomers wait for a step's end."""
PIECE_SECONDS = 0.25
"""How long a piece of a prompt may keep the replies waiting that are being written."""
SMALLEST_PIECE = 16
"""Tokens; every piece beside others is a multiple of it."""


def plan(live: Sequence[Reply], figures: Figures, batch: int) -> tuple[list[Rows], list[Reply]]:
    """The rows of the next step, and the reply that each group of them is of.

    Args:
        live: The replies in the making, in the order they came.
        figures: What was computed so far, and how long that took.
        batch: Most tokens of one step.
    """
    writing = [reply for reply in live if reply.next is not None]
    rows = [_next_rows(reply, alone=len(writing) == 1) for reply in writing]
    replies = list(writing)
    budget = _piece_beside(figures) if writing else PIECE_ALONE
    budget = min(budget, batch - sum(len(group.tokens) for group in rows))
    for reply in live:
        if reply.next is None and budget > 0:
            piece = _piece(reply, budget)
            rows.append(piece)
            replies.append(reply)
            budget -= len(piece.tokens)
    return rows, replies


def _piece_beside(figures: Figures) -> int:
    """Prompt tokens that take `PIECE_SECONDS`, by all that was computed so far."""
    if not figures.prefill_seconds:
        return SMALLEST_PIECE
    fitting = int(PIECE_SECONDS * figures.prefill_tokens / figures.prefill_seconds)
    pieces = max(1, min(fitting, PIECE_ALONE) // SMALLEST_PIECE)
    return pieces * SMALLEST_PIECE


def _next_rows(reply: Reply, *, alone: bool) -> Rows:
    """A reply's next token and what is guessed to follow, if it is written alone."""
    reply.guess(min(MOST_GUESSED, reply.outstanding - 1) if alone else 0)
    tokens = [reply.next or 0, *reply.guessed]
    return Rows(reply.sequence.number, reply.sequence.length, tokens, len(tokens))


def _piece(reply: Reply, budget: int) -> Rows:
    """The next piece of a prompt; one ends where the state is to be kept."""
    begin, prompt = reply.sequence.length, reply.job.prompt
    end = min(begin + budget, len(prompt))
    if begin < reply.job.keep < end:
        end = reply.job.keep
    return Rows(reply.sequence.number, begin, prompt[begin:end], 1 if end == len(prompt) else 0)
