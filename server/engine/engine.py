"""The engine's thread: it alone touches the context.

Everything else puts jobs into its inbox, sets flags, and reads figures.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from server.engine.context import Context, ContextSettings, Rows
from server.engine.figures import Figures
from server.engine.job import Job
from server.engine.kept import KeptStates
from server.engine.lookup import StepCosts
from server.engine.model import Model
from server.engine.native import Native, NativeError, native
from server.engine.reply import Reply
from server.engine.scheduler import Scheduler
from server.engine.sequences import Sequences

log = logging.getLogger(__name__)

Status = Literal["loading", "ok", "failed", "closed"]


class QueueFull(Exception):
    """More jobs wait than may; `waiting` says how many."""

    def __init__(self, waiting: int) -> None:
        """`waiting`: how many there are."""
        super().__init__(f"{waiting} requests are waiting already")
        self.waiting = waiting


class NotReady(Exception):
    """The engine takes no jobs: it is loading, it failed or it is closed."""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Which model, and how much of the machine it may take. Sizes in tokens."""

    path: Path
    digest: str
    """Of the model file: what is kept on disk belongs to it."""
    threads: int
    kept_folder: Path
    context: int = 8192
    """The KV cache, shared by all sequences; less where the model was trained with less."""
    most_live: int = 8
    """Replies in the making at once."""
    most_waiting: int = 64
    sequences: int = 32
    """Live and parked ones."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What belongs to the engine's thread."""

    model: Model
    context: Context
    sequences: Sequences
    scheduler: Scheduler

    def close(self) -> None:
        self.context.close()
        self.model.close()


class Engine:
    """Takes jobs from any thread; `start` makes its own."""

    def __init__(self, settings: EngineSettings) -> None:
        """Nothing is loaded before `start`."""
        self.settings = settings
        self.figures = Figures()
        self.context_tokens = 0
        self.progress = 0.0
        self.problem: str | None = None
        self._status: Status = "loading"
        self._inbox: list[Job] = []
        self._wake = threading.Condition()
        self._closing = False
        self._ready = threading.Event()
        self._loaded: _Loaded | None = None
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    @property
    def status(self) -> Status:
        """Where it stands."""
        return self._status

    @property
    def live(self) -> int:
        """Replies in the making."""
        return self._loaded.scheduler.live if self._loaded else 0

    @property
    def waiting(self) -> int:
        """Jobs that nobody has begun."""
        return len(self._inbox) + (self._loaded.scheduler.waiting if self._loaded else 0)

    @property
    def cells_used(self) -> int:
        """Tokens in the KV cache."""
        return self._loaded.sequences.used if self._loaded else 0

    @property
    def parked(self) -> int:
        """Sequences kept in the KV cache for a next turn."""
        return self._loaded.sequences.count - self.live if self._loaded else 0

    @property
    def shelved(self) -> int:
        """Sequences kept in memory outside the KV cache."""
        return self._loaded.sequences.shelf.count if self._loaded else 0

    @property
    def model(self) -> Model:
        """The model, once it is loaded.

        Raises:
            NotReady: before that.
        """
        if self._loaded is None or self._status != "ok":
            raise NotReady(self.problem or f"the model is {self._status}")
        return self._loaded.model

    def start(self) -> None:
        """Begin to load; returns at once."""
        self._thread.start()

    def wait_ready(self, timeout_s: float | None = None) -> None:
        """Wait until it is loaded.

        Raises:
            NotReady: where it failed, or is not ready in time; says why.
        """
        self._ready.wait(timeout_s)
        if self._status != "ok":
            raise NotReady(self.problem or f"the model is {self._status}")

    def submit(self, job: Job) -> None:
        """Put a job into the queue.

        Raises:
            NotReady: it takes none.
            QueueFull: enough are waiting.
        """
        with self._wake:
            if self._status != "ok" or self._closing:
                raise NotReady(self.problem or f"the model is {self._status}")
            if self.waiting >= self.settings.most_waiting:
                self.figures.refused += 1
                raise QueueFull(self.waiting)
            self.figures.requests += 1
            self._inbox.append(job)
            self._wake.notify()

    def cancel(self, job: Job) -> None:
        """Nobody waits for this job any more; safe at any time, from any thread."""
        job.cancelled.set()
        if self._loaded is not None:
            self._loaded.scheduler.abort_if_alone(job)
        with self._wake:
            self._wake.notify()

    def close(self) -> None:
        """End everything and free the model. Safe to call twice."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._loaded is not None:
            self._loaded.scheduler.abort_all()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            self._loaded = loaded = self._load()
            self._status = "ok"
            self._ready.set()
            self._serve(loaded)
        except NativeError as error:
            self._give_up(str(error))
        except Exception as error:
            log.exception("The engine failed")
            self._give_up(f"the engine failed: {error}")
        finally:
            if self._status == "ok":
                self._status = "closed"
            self._end_jobs()
            self._ready.set()
            if self._loaded is not None:
                self._loaded.close()

    def _give_up(self, problem: str) -> None:
        if not self._closing:
            log.error("%s", problem)
        self.problem = problem
        self._status = "failed"

    def _end_jobs(self) -> None:
        error = NotReady(self.problem or "the server is ending")
        with self._wake:
            self._closing = True
            jobs, self._inbox = self._inbox, []
        for job in jobs:
            job.sink.fail(error)
        if self._loaded is not None:
            self._loaded.scheduler.fail_all(error)

    def _load(self) -> _Loaded:
        library = native()
        settings = self.settings
        model = Model(library, settings.path, self._on_progress)
        try:
            tokens = min(settings.context, model.trained_context)
            made_with = ContextSettings(tokens, settings.sequences, settings.threads)
            context = Context(library, model, made_with)
        except NativeError:
            model.close()
            raise
        sequences = Sequences(context, tokens, settings.sequences)
        costs = StepCosts()
        scheduler = Scheduler(
            context,
            sequences,
            KeptStates(settings.kept_folder, self._fits(library)),
            self.figures,
            costs,
            lambda job, sequence: Reply(library, model, job, sequence, self.figures, costs),
            settings.most_live,
        )
        # The first step of all is slow: memory is touched, threads start. Better now.
        context.decode([Rows(0, 0, [0], 1)])
        context.clear()
        self.context_tokens = tokens
        self.progress = 1.0
        return _Loaded(model, context, sequences, scheduler)

    def _fits(self, library: Native) -> dict[str, str]:
        return {"model": self.settings.digest, "build": library.build, "cache": "f16 bf16"}

    def _on_progress(self, done: float) -> bool:
        self.progress = done
        return not self._closing

    def _serve(self, loaded: _Loaded) -> None:
        scheduler, sequences = loaded.scheduler, loaded.sequences
        while True:
            with self._wake:
                while not self._inbox and scheduler.idle and not self._closing:
                    if not sequences.tidy():
                        self._wake.wait()
                if self._closing:
                    return
                jobs, self._inbox = self._inbox, []
            for job in jobs:
                scheduler.add(job)
            scheduler.step()
