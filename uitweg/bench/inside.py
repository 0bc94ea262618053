"""What is measured on our own server and inside the engine, without a peer."""

from __future__ import annotations

import asyncio
import json
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

import httpx
import numpy as np

from server.engine.calls import BegunArguments, CallGrammars
from server.engine.engine import Engine, EngineSettings
from server.engine.job import Ending, Job
from server.engine.prompt import Prompts
from server.parse import parse_request
from server.reader import CallReader
from uitweg.bench import work
from uitweg.bench.client import ask
from uitweg.bench.servers import Setup, ours


def restart(setup: Setup, rounds: int, say: Callable[[str], None]) -> tuple[float, float]:
    """Milliseconds to the first token of the first turn after a start: without, with kept state."""
    without: list[float] = []
    with_state: list[float] = []
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for figures in (without, with_state):
                with ours(setup, Path(folder)) as server:
                    figures.append(asyncio.run(_first_token_ms(server.root)))
        say(f"restart, round {number + 1}: {without[-1]:.0f} ms, kept {with_state[-1]:.0f} ms")
    return median(without), median(with_state)


async def _first_token_ms(root: str) -> float:
    async with httpx.AsyncClient(timeout=300) as client:
        return 1000 * (await ask(client, root, {**work.task(0), "max_tokens": 1})).first_s


def client_gone(root: str, rounds: int) -> tuple[float, float]:
    """Milliseconds from a closed connection to a free place: while writing, while prefilling."""
    writing = [_gone_ms(root, work.story(n, 500), after_text=True) for n in range(rounds)]
    prefilling = []
    for number in range(rounds):
        words = f"{time.time()} {number} " + "river stone " * 900
        body = {**work.story(0, 8), "messages": [{"role": "user", "content": words}]}
        prefilling.append(_gone_ms(root, body, after_text=False))
    return median(writing), median(prefilling)


def _gone_ms(root: str, body: dict[str, object], *, after_text: bool) -> float:
    host, port = urlsplit(root).hostname, urlsplit(root).port
    data = json.dumps({**body, "stream": True}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}:{port}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    with httpx.Client() as client, socket.create_connection((str(host), port or 0)) as connection:
        connection.sendall(head.encode() + data)
        if after_text:
            while b'"content":"' not in connection.recv(65536):
                pass
        while client.get(f"{root}/health").json()["live"] == 0:
            time.sleep(0.001)
        time.sleep(0.3)
        connection.close()
        begun = time.monotonic()
        while client.get(f"{root}/health").json()["live"]:
            time.sleep(0.001)
        return 1000 * (time.monotonic() - begun)


@dataclass
class _Calls:
    """A sink that reads calls, with the grammar or without."""

    names: list[str]
    grammars: CallGrammars | None
    over: threading.Event = field(default_factory=threading.Event)
    ending: Ending | None = None
    constrained: bool = False

    def __post_init__(self) -> None:
        self._reader = CallReader(self.names)

    def text(self, text: str) -> bool:
        self._reader.feed(text)
        return False

    def begun(self) -> BegunArguments | None:
        call = self._reader.begun
        found = self.grammars.for_call(call) if self.grammars and call else None
        self.constrained = self.constrained or found is not None
        return found

    def in_call(self) -> bool:
        return self._reader.begun is not None

    def end(self, ending: Ending) -> None:
        self.ending = ending
        self.over.set()

    def fail(self, _error: Exception) -> None:
        self.over.set()


def call_cost(setup: Setup, rounds: int) -> float:
    """Time a token of a constrained call over that of the same call unconstrained.

    The same tokens both times: the model's own call follows its schema, so that the grammar
    only looks on.
    """
    with tempfile.TemporaryDirectory() as folder:
        settings = EngineSettings(setup.model, setup.digest, setup.threads, Path(folder))
        engine = Engine(settings)
        engine.start()
        engine.wait_ready()
        try:
            return _call_cost(engine, rounds)
        finally:
            engine.close()


def _call_cost(engine: Engine, rounds: int) -> float:
    request = parse_request(json.dumps(work.task(2)).encode())
    prompt = Prompts(engine.model).tokens(request)
    tools = request.callable_tools
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for number in range(rounds + 1):
        for constrained in (False, True) if number % 2 else (True, False):
            grammars = CallGrammars(tools) if constrained else None
            sink = _Calls([tool.name for tool in tools], grammars)
            engine.submit(Job(np.array(prompt), 96, sink))
            sink.over.wait()
            if sink.ending is None or sink.constrained != constrained:
                raise RuntimeError("the engine failed, or the model made no call")
            each = sink.ending.decode_s / max(1, sink.ending.completion_tokens - 1)
            # The first round only makes the two alike: it fills the cache.
            if number:
                seconds[constrained].append(each)
    return median(seconds[True]) / median(seconds[False])
