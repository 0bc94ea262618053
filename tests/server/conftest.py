"""A real server on a real socket, and a backend that says what a test wants it to say."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openai
import pytest

from server.backend import Backend, CallPiece, Finish, Piece, TextPiece
from server.run import Server, bind
from server.wire import ChatRequest

HERE = Path(__file__).parent
STOP = Finish("stop", prompt_tokens=7, cached_tokens=3, completion_tokens=2)


@dataclass
class FakeBackend:
    """Plays `pieces`; an exception among them is raised, an event is waited for."""

    pieces: Sequence[Piece | Exception | asyncio.Event] = (TextPiece("hello"), STOP)
    status: str = "ok"
    requests: list[ChatRequest] = field(default_factory=list)
    closed_early: threading.Event = field(default_factory=threading.Event)
    closed: bool = False

    def state(self) -> Mapping[str, Any]:
        return {"status": self.status, "detail": f"a fake that is {self.status}"}

    def models(self) -> list[dict[str, Any]]:
        return [{"id": "fake", "object": "model", "created": 0, "owned_by": "tests"}]

    def metrics(self) -> str:
        return "# TYPE fake_total counter\nfake_total 1\n"

    async def chat(self, request: ChatRequest) -> AsyncIterator[Piece]:
        self.requests.append(request)
        ended = False
        try:
            for piece in self.pieces:
                if isinstance(piece, Exception):
                    ended = True
                    raise piece
                if isinstance(piece, asyncio.Event):
                    await piece.wait()
                else:
                    ended = isinstance(piece, Finish)
                    yield piece
        finally:
            if not ended:
                self.closed_early.set()

    def close(self) -> None:
        self.closed = True


@dataclass(frozen=True)
class Served:
    """A running server."""

    port: int
    server: Server

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def openai(self, **options: Any) -> openai.OpenAI:
        options = {"api_key": "none", "max_retries": 0, "timeout": 60, **options}
        return openai.OpenAI(base_url=f"{self.root}/v1", **options)


@contextmanager
def _serving(backend: Backend, *, token: str | None = None) -> Iterator[Served]:
    bound = bind("127.0.0.1", 0)
    port = bound.getsockname()[1]
    server = Server(backend, host="127.0.0.1", port=port, token=token)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        yield Served(port, server)
    finally:
        server.should_exit = True
        thread.join()
        bound.close()


@pytest.fixture(scope="session")
def serving() -> Callable[..., Any]:
    """`with serving(backend) as served:` runs a server for a while."""
    return _serving


@pytest.fixture
def fake() -> type[FakeBackend]:
    return FakeBackend


@pytest.fixture(scope="session")
def stop() -> Finish:
    return STOP


@pytest.fixture(scope="session")
def call_pieces() -> list[Piece]:
    """A call in three pieces, and the end."""
    return [
        CallPiece(0, id="call_1", name="read_file"),
        CallPiece(0, '{"path":'),
        CallPiece(0, '"notes.txt"}'),
        STOP,
    ]


@pytest.fixture(scope="session")
def template_texts() -> dict[str, str]:
    """The chat templates of real models, as they stand in their GGUF files."""
    return {file.stem: file.read_text() for file in sorted((HERE / "templates").glob("*.jinja"))}


@pytest.fixture(scope="session")
def real_replies() -> list[dict[str, Any]]:
    """What the stand-in model wrote when it was offered four file tools, and the calls in it."""
    replies: list[dict[str, Any]] = json.loads((HERE / "replies.json").read_text())
    return replies
