"""A reply in the making: a job with its sequence, its words and its clock."""

from __future__ import annotations

import time
from collections.abc import Sequence as Many

from server.engine.context import Logits
from server.engine.figures import Figures
from server.engine.job import Ending, Job, Reason
from server.engine.lookup import Lookup, StepCosts
from server.engine.model import Model
from server.engine.native import Native
from server.engine.picker import Grammar, GrammarError, Greedy, Picker, Sampled
from server.engine.sequences import Sequence
from server.engine.words import Words


class Reply:
    """Owned by the engine's thread."""

    def __init__(
        self,
        native: Native,
        model: Model,
        job: Job,
        sequence: Sequence,
        figures: Figures,
        costs: StepCosts,
    ) -> None:
        """Make what choosing its tokens takes; `costs`: of steps, shared by all replies.

        Raises:
            GrammarError: where the job's grammar cannot be used.
        """
        self.job = job
        self.sequence = sequence
        self.cached = 0
        self.next: int | None = None
        """The token that comes next, chosen but not computed yet; None while prefilling."""
        self.done: Reason | None = None
        self.guessed: Many[int] = ()
        """Tokens that may follow `next`, to be computed in the same step."""
        self._costs = costs
        self._lookup: Lookup | None = None
        self._native = native
        self._model = model
        self._figures = figures
        self._words = Words(job.stops)
        self._made = 0
        self._grammar: Grammar | None = None
        self._lazy = False
        """Whether a call's arguments are being written that no grammar was asked for."""
        if job.grammar is not None:
            self._grammar = Grammar(native, model, job.grammar)
        self._picker: Picker = Sampled(native, job.sampling) if job.sampling else Greedy()
        self._begun_at = time.monotonic()
        self._first_at: float | None = None

    @property
    def missing(self) -> int:
        """Prompt tokens that are still to be computed."""
        return max(0, len(self.job.prompt) - self.sequence.length)

    @property
    def outstanding(self) -> int:
        """Cells that it may still take."""
        return max(0, self.job.need - self.sequence.length)

    def guess(self, most: int) -> None:
        """Look for tokens to compute ahead with the next step, at most so many."""
        room = min(most, self.job.limit - self._made - 1)
        if self._lookup is None and self.next is not None:
            # Made after the reply's first token, which would have to wait for it.
            self._lookup = Lookup(self.job.prompt.tolist(), self._costs, self.job.usual)
            self._lookup.add(self.next)
        self.guessed = self._lookup.guess(room) if self._lookup and room > 0 else ()

    def take(self, rows: Many[Logits]) -> int:
        """Choose the next tokens: one, and one more for each guess that was right.

        Returns:
            How many of the rows stand; the others computed what the model did not choose.
        """
        for number, logits in enumerate(rows):
            self._take(logits)
            if self.done or number == len(self.guessed) or self.next != self.guessed[number]:
                break
        self._count_guesses(number)
        return number + 1

    def _count_guesses(self, right: int) -> None:
        self._figures.drafted_tokens += len(self.guessed)
        self._figures.accepted_tokens += right
        self.guessed = ()

    def _take(self, logits: Logits) -> None:
        """Choose one token, and give out what text is certain now."""
        token = self._choose(logits)
        if self._first_at is None:
            self._first_at = time.monotonic()
        if token in self._model.ends:
            self.done = "stop"
            return
        self._made += 1
        self._figures.decode_tokens += 1
        self.next = token
        if self._lookup is not None:
            self._lookup.add(token)
        text = self._words.feed(self._model.piece(token))
        enough = bool(text) and self.job.sink.text(text)
        if enough or self._words.stopped:
            self.done = "stop"
        elif self._made >= self.job.limit:
            self.done = "length"
        elif text and self.job.grammar is None:
            self._follow_calls(text)

    def finish(self, reason: Reason) -> None:
        """Give out the rest, and the ending."""
        if rest := self._words.finish():
            self.job.sink.text(rest)
        now = time.monotonic()
        first = self._first_at or now
        self.job.sink.end(
            Ending(
                reason=reason,
                prompt_tokens=len(self.job.prompt),
                cached_tokens=self.cached,
                completion_tokens=self._made,
                queue_s=self._begun_at - self.job.asked_at,
                prefill_s=first - self._begun_at,
                decode_s=now - first,
            )
        )

    def close(self) -> None:
        """Free what choosing its tokens took."""
        self._picker.close()
        self._drop_grammar()

    def _choose(self, logits: Logits) -> int:
        token = self._picker.pick(logits)
        if self._grammar is None:
            return token
        if not self._grammar.allows(token):
            self._figures.grammar_refusals += 1
            token = self._grammar.pick(logits, self._picker)
        self._grammar.accept(token)
        return token

    def _follow_calls(self, text: str) -> None:
        """Put a grammar on where a call's arguments begin, and take it off where the call ends."""
        if self._lazy:
            if not self.job.sink.in_call():
                self._drop_grammar()
            return
        begun = self.job.sink.begun()
        if begun is None:
            return
        self._lazy = True
        if len(begun.covered) > len(text):
            return
        try:
            grammar = Grammar(self._native, self._model, begun.grammar)
        except GrammarError:
            return
        if grammar.begins_with(begun.covered):
            self._grammar = grammar
        else:
            grammar.close()

    def _drop_grammar(self) -> None:
        if self._grammar is not None:
            self._grammar.close()
        self._grammar, self._lazy = None, False
