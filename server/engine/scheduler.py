"""Which replies are in the making, and what comes of each step.

Jobs are let in in their order, and replies join and leave between steps: see `step`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from server.engine.context import ABORTED, NO_ROOM, Context, Rows
from server.engine.figures import Figures
from server.engine.ids import shared_length
from server.engine.job import Job
from server.engine.kept import KeptStates
from server.engine.lookup import StepCosts
from server.engine.native import NativeError
from server.engine.plan import plan
from server.engine.reply import Reply
from server.engine.sequences import Sequence, Sequences

log = logging.getLogger(__name__)

WORTH_WAITING = 32
"""A request waits for another's prefill if that saves it so many tokens."""


class Scheduler:
    """Owned by the engine's thread; only the two `abort_…` are for others."""

    def __init__(
        self,
        context: Context,
        sequences: Sequences,
        kept: KeptStates,
        figures: Figures,
        costs: StepCosts,
        begin: Callable[[Job, Sequence], Reply],
        most_live: int,
    ) -> None:
        """`begin` makes a reply of a job; `most_live`: replies in the making at once.

        `costs` hears what steps without prompt tokens take.
        """
        self._context = context
        self._sequences = sequences
        self._kept = kept
        self._figures = figures
        self._costs = costs
        self._begin = begin
        self._most_live = most_live
        self._live: list[Reply] = []
        self._waiting: deque[Job] = deque()
        self._lock = threading.Lock()
        self._in_step: list[Reply] = []

    @property
    def idle(self) -> bool:
        """Nothing to do."""
        return not self._live and not self._waiting

    @property
    def live(self) -> int:
        """Replies in the making."""
        return len(self._live)

    @property
    def waiting(self) -> int:
        """Jobs that nobody has begun."""
        return len(self._waiting)

    def add(self, job: Job) -> None:
        """A job to be done when there is room."""
        self._waiting.append(job)

    def abort_if_alone(self, job: Job) -> None:
        """A cancelled job: break the running step off, if that costs nobody else much.

        Any thread may call this. A step that only cancelled jobs are in is broken off, and so
        is one that computes a cancelled prompt; the others in it lose that step's work.
        """
        with self._lock:
            if not self._in_step:
                return
            prefilling = any(r.job is job and r.missing for r in self._in_step)
            if prefilling or all(r.job.cancelled.is_set() for r in self._in_step):
                self._context.abort.raise_()

    def abort_all(self) -> None:
        """Break the running step off, whoever is in it. Any thread may call this."""
        with self._lock:
            if self._in_step:
                self._context.abort.raise_()

    def step(self) -> None:
        """Do the next piece of work, if there is any."""
        self._drop_cancelled()
        self._admit()
        with self._lock:
            self._context.abort.lower()
            rows, replies = plan(self._live, self._figures, self._context.settings.batch)
            self._sequences.make_room(sum(len(group.tokens) for group in rows))
            self._in_step = replies
        if not rows:
            return
        started = time.monotonic()
        try:
            status = self._context.decode(rows)
        except NativeError as error:
            log.exception("A step failed")
            self._fail(replies, error)
            return
        finally:
            with self._lock:
                self._in_step = []
        self._account(rows, replies, time.monotonic() - started)
        if status == ABORTED:
            return
        if status == NO_ROOM:
            self._shed(replies)
            return
        self._take(rows, replies)

    def fail_all(self, error: Exception) -> None:
        """End everything that is live or waits."""
        self._fail(list(self._live), error)
        while self._waiting:
            self._waiting.popleft().sink.fail(error)

    def _drop_cancelled(self) -> None:
        for reply in [r for r in self._live if r.job.cancelled.is_set()]:
            self._figures.cancelled += 1
            self._leave(reply)
        waiting = [job for job in self._waiting if not job.cancelled.is_set()]
        if len(waiting) < len(self._waiting):
            self._figures.cancelled += len(self._waiting) - len(waiting)
            self._waiting = deque(waiting)

    def _admit(self) -> None:
        """Let jobs in, in their order, as long as there is room for all that they may need."""
        held_back: list[Job] = []
        while self._waiting and len(self._live) < self._most_live:
            job = self._waiting.popleft()
            _, shared = self._sequences.best(job.prompt)
            if self._someone_computes_it(job, shared):
                held_back.append(job)
                continue
            outstanding = sum(reply.outstanding for reply in self._live)
            if self._sequences.live_cells() + outstanding + job.need > self._sequences.room:
                held_back.append(job)
                break
            self._let_in(job)
        self._waiting.extendleft(reversed(held_back))

    def _someone_computes_it(self, job: Job, shared: int) -> bool:
        """Whether a live prefill is about to compute what this job's prompt begins with."""
        for reply in self._live:
            if reply.missing:
                prompt = reply.job.prompt
                common = shared_length(prompt, job.prompt)
                if common >= max(shared, reply.sequence.length) + WORTH_WAITING:
                    return True
        return False

    def _let_in(self, job: Job) -> None:
        source, shared = self._sequences.best(job.prompt)
        sequence = self._sequences.begin(source)
        try:
            reply = self._begin(job, sequence)
        except Exception as error:  # noqa: BLE001 - one job's fault must not end the others
            self._figures.failed += 1
            self._sequences.forget(sequence)
            job.sink.fail(error)
            return
        self._live.append(reply)
        # The last token of a prompt is always computed: its logits give the first of the reply.
        most = len(job.prompt) - 1
        if self._restored(reply, min(shared, most), most):
            shared = sequence.length
        else:
            # Asked again: room that was made in vain may have cost the source.
            source, shared = self._sequences.best(job.prompt)
            shared = min(shared, most)
            if source is not None and shared:
                self._sequences.share(source, sequence, shared)
        reply.cached = shared
        self._figures.prompt_tokens += len(job.prompt)
        self._figures.cached_tokens += shared
        self._figures.cache_hits += shared > 0

    def _restored(self, reply: Reply, shared: int, most: int) -> bool:
        """Begin with a state from the shelf or from disk, if there is one that is worth it."""
        prompt = reply.job.prompt
        shelved = self._sequences.shelf.find(prompt, shared)
        kept = self._kept.find(prompt, shelved[1] if shelved else shared)
        if kept:
            tokens, usable, state = kept[0].tokens, kept[1], self._kept.load(kept[0])
        elif shelved:
            tokens, usable, state = shelved[0].tokens, shelved[1], shelved[0].state
        else:
            return False
        if state is None or not self._sequences.make_room(len(tokens)):
            return False
        if not self._context.restore(reply.sequence.number, state):
            if kept:
                self._kept.discard(kept[0])
            return False
        self._sequences.append(reply.sequence, tokens)
        self._sequences.cut(reply.sequence, min(usable, most), newest=True)
        self._figures.kept_loads += bool(kept)
        self._figures.shelf_loads += not kept
        return True

    def _account(self, rows: list[Rows], replies: list[Reply], seconds: float) -> None:
        prefilled = sum(
            len(group.tokens) for group, r in zip(rows, replies, strict=True) if r.next is None
        )
        self._figures.steps += 1
        self._figures.prefill_tokens += prefilled
        if prefilled:
            self._figures.prefill_seconds += seconds
        else:
            self._figures.decode_seconds += seconds
            self._costs.add(sum(len(group.tokens) for group in rows), seconds)

    def _take(self, rows: list[Rows], replies: list[Reply]) -> None:
        first = 0
        for group, reply in zip(rows, replies, strict=True):
            self._sequences.append(reply.sequence, group.tokens)
        for group, reply in zip(rows, replies, strict=True):
            end = first + len(group.tokens)
            self._keep(reply)
            if group.outputs:
                self._choose(reply, range(end - group.outputs, end), newest=group is rows[-1])
            first = end

    def _choose(self, reply: Reply, rows: range, *, newest: bool) -> None:
        """Let a reply choose its next tokens, and leave if that was its end."""
        before = reply.sequence.length - len(rows)
        try:
            stand = reply.take([self._context.logits(row) for row in rows])
        except Exception as error:  # noqa: BLE001 - one reply's fault is not the others'
            self._fail([reply], error)
            return
        self._sequences.cut(reply.sequence, before + stand, newest=newest)
        if reply.done:
            reply.finish(reply.done)
            self._leave(reply)

    def _keep(self, reply: Reply) -> None:
        """Write the state to disk where the part that others begin with has been computed."""
        tokens = reply.sequence.tokens
        if reply.next is None and len(tokens) == reply.job.keep and not self._kept.has(tokens):
            state = self._context.save(reply.sequence.number)
            self._figures.kept_saves += self._kept.save(tokens, state)

    def _shed(self, replies: list[Reply]) -> None:
        """The cache had no room after all: give up what is parked, then the newest reply."""
        log.error("The KV cache is fuller than was reckoned with")
        parked = self._sequences.parked
        if parked:
            self._sequences.forget(parked[0])
            return
        newest = max(replies, key=lambda reply: reply.job.asked_at)
        self._fail([newest], NativeError("there is no room left in the KV cache"))

    def _fail(self, replies: list[Reply], error: Exception) -> None:
        for reply in replies:
            self._figures.failed += 1
            reply.job.sink.fail(error)
            self._leave(reply, keep=False)

    def _leave(self, reply: Reply, *, keep: bool = True) -> None:
        self._live.remove(reply)
        reply.close()
        if keep:
            self._sequences.park(reply.sequence)
        else:
            self._sequences.forget(reply.sequence)
