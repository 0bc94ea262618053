"""Many requests of mixed length with random cancels: no leak, and no wrong text."""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from server.engine.calls import BegunArguments
from server.engine.engine import Engine, EngineSettings, QueueFull
from server.engine.figures import resident_bytes
from server.engine.job import Ending, Job
from uitweg.bench.servers import Setup

CANCELLED = 0.25
"""Share of the requests that are cancelled at a random moment."""
AT_ONCE = 12
CONTEXT = 4096
PROMPTS = 24
"""Different ones; each is asked alone first."""


@dataclass(frozen=True, slots=True)
class SoakResult:
    """What came of it. `slope`: bytes of memory a request, over the second half."""

    requests: int
    cancelled: int
    wrong: int
    failed: int
    slope: float
    seconds: float


@dataclass
class _Sink:
    text_parts: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    ending: Ending | None = None

    def text(self, text: str) -> bool:
        self.text_parts.append(text)
        return False

    def begun(self) -> BegunArguments | None:
        return None

    def in_call(self) -> bool:
        return False

    def end(self, ending: Ending) -> None:
        self.ending = ending
        self.over.set()

    def fail(self, _error: Exception) -> None:
        self.over.set()


def soak(setup: Setup, requests: int, say: Callable[[str], None], seed: int = 1) -> SoakResult:
    """Ask every prompt alone first, on an engine of its own; then all of them in a crowd."""
    chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
    work = [_prompt(chance) for _ in range(min(PROMPTS, requests))]
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        engine = _engine(setup, Path(folder))
        try:
            alone = [_text(_wait(_ask(engine, text, limit)[1])) for text, limit in work]
        finally:
            engine.close()
        engine = _engine(setup, Path(folder))
        try:
            return _crowd(engine, work, alone, requests, chance, say, begun)
        finally:
            engine.close()


def _crowd(
    engine: Engine,
    work: list[tuple[str, int]],
    alone: list[str],
    requests: int,
    chance: random.Random,
    say: Callable[[str], None],
    begun: float,
) -> SoakResult:
    slots = threading.Semaphore(AT_ONCE)
    memory: list[int] = []
    counts = {"cancelled": 0, "wrong": 0, "failed": 0}
    threads = []

    def one(number: int, cancel_after: float | None) -> None:
        try:
            job, sink = _ask(engine, *work[number])
            if cancel_after is not None and not sink.over.wait(cancel_after):
                engine.cancel(job)
                counts["cancelled"] += 1
                return
            sink.over.wait()
            if sink.ending is None:
                counts["failed"] += 1
            elif _text(sink) != alone[number]:
                counts["wrong"] += 1
        except QueueFull:
            counts["failed"] += 1
        finally:
            slots.release()

    for done in range(requests):
        slots.acquire()
        cancel_after = chance.uniform(0, 2) if chance.random() < CANCELLED else None
        thread = threading.Thread(target=one, args=(chance.randrange(len(work)), cancel_after))
        thread.start()
        threads.append(thread)
        memory.append(resident_bytes())
        if (done + 1) % 50 == 0:
            mb = memory[-1] / 1e6
            say(f"{done + 1} requests, {counts['wrong']} wrong, {mb:.0f} MB")
    for thread in threads:
        thread.join()
    late = np.array(memory[len(memory) // 2 :], float)
    slope = float(np.polyfit(np.arange(len(late)), late, 1)[0]) if len(late) > 1 else 0.0
    return SoakResult(
        requests,
        counts["cancelled"],
        counts["wrong"],
        counts["failed"],
        slope,
        time.monotonic() - begun,
    )


def _prompt(chance: random.Random) -> tuple[str, int]:
    """Some begin alike, some do not; some are long."""
    opening = chance.choice(["The rules of the house are these. ", "A report on tides. ", ""])
    words = ["river", "stone", "boat", "tide", "lamp", "clock", "snow", "field"]
    body = " ".join(chance.choice(words) for _ in range(chance.choice([5, 20, 80, 300])))
    return f"{opening * chance.choice([1, 8])}{body}:", chance.choice([4, 16, 48])


def _engine(setup: Setup, folder: Path) -> Engine:
    settings = EngineSettings(setup.model, setup.digest, setup.threads, folder, context=CONTEXT)
    engine = Engine(settings)
    engine.start()
    engine.wait_ready()
    return engine


def _ask(engine: Engine, text: str, limit: int) -> tuple[Job, _Sink]:
    sink = _Sink()
    ids = np.array(engine.model.tokenize(text, begin=True), np.int32)
    job = Job(ids, limit, sink)
    engine.submit(job)
    return job, sink


def _wait(sink: _Sink) -> _Sink:
    sink.over.wait()
    return sink


def _text(sink: _Sink) -> str:
    return "".join(sink.text_parts)
