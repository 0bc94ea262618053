"""A real engine on the small model, and replies collected from it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from server.engine.calls import BegunArguments
from server.engine.engine import Engine, EngineSettings
from server.engine.job import Ending, Job


@dataclass
class Collected:
    """A sink that keeps what comes; `stop_after` characters are enough."""

    stop_after: int | None = None
    parts: list[str] = field(default_factory=list)
    ending: Ending | None = None
    error: Exception | None = None
    over: threading.Event = field(default_factory=threading.Event)
    begun_text: threading.Event = field(default_factory=threading.Event)

    @property
    def whole(self) -> str:
        return "".join(self.parts)

    def text(self, text: str) -> bool:
        self.parts.append(text)
        self.begun_text.set()
        return self.stop_after is not None and len(self.whole) >= self.stop_after

    def begun(self) -> BegunArguments | None:
        return None

    def in_call(self) -> bool:
        return False

    def end(self, ending: Ending) -> None:
        self.ending = ending
        self.over.set()

    def fail(self, error: Exception) -> None:
        self.error = error
        self.over.set()

    def wait(self) -> Collected:
        assert self.over.wait(240)
        if self.error:
            raise self.error
        return self


class Asked:
    """Asks an engine for replies."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def job(self, text: str, limit: int = 16, **options: Any) -> Job:
        ids = self.engine.model.tokenize(text, begin=True)
        sink = options.pop("sink", None) or Collected()
        return Job(np.array(ids, np.int32), limit, sink, **options)

    def begin(self, text: str, limit: int = 16, **options: Any) -> tuple[Job, Any]:
        job = self.job(text, limit, **options)
        self.engine.submit(job)
        return job, job.sink

    def reply(self, text: str, limit: int = 16, **options: Any) -> Any:
        return self.begin(text, limit, **options)[1].wait()


@pytest.fixture(scope="session")
def started(small_model: Any) -> Callable[..., Engine]:
    """Makes engines that are ready; whoever makes one closes it."""

    def start(folder: Path, **settings: Any) -> Engine:
        engine = Engine(
            EngineSettings(
                path=small_model.path,
                digest=small_model.sha256,
                kept_folder=folder,
                **{"threads": 2, "context": 2048, **settings},
            )
        )
        engine.start()
        engine.wait_ready(120)
        return engine

    return start


@pytest.fixture(scope="module")
def engine(started: Callable[..., Engine], tmp_path_factory: Any) -> Iterator[Engine]:
    engine = started(tmp_path_factory.mktemp("kept"))
    yield engine
    engine.close()


@pytest.fixture
def ask(engine: Engine) -> Asked:
    return Asked(engine)


@pytest.fixture(scope="session")
def asked() -> type[Asked]:
    return Asked


@pytest.fixture
def collected() -> type[Collected]:
    return Collected
