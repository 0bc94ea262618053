"""The engine behind the HTTP surface: a checked request in, pieces of the reply out."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from local import cpus, folders
from server.backend import Finish, Piece
from server.engine.calls import BegunArguments, CallGrammars
from server.engine.engine import Engine, EngineSettings, NotReady, QueueFull
from server.engine.figures import prometheus, resident_bytes
from server.engine.ids import Ids
from server.engine.job import Ending, Job
from server.engine.native import NativeError
from server.engine.picker import GrammarError, Sampling
from server.engine.prompt import Prompts
from server.errors import (
    ApiError,
    BadRequest,
    Busy,
    ContextLengthExceeded,
    EngineFailed,
    ModelNotFound,
    Unavailable,
)
from server.grammar import request_grammar
from server.reader import CallReader
from server.wire import ChatRequest

USUAL_LIMIT = 1024
"""Most tokens of a reply for which the client names no limit."""
USUAL_TEMPERATURE = 0.7
USUAL_TOP_P = 0.95
"""Where the client says nothing: small models make little sense at 1.0."""


class LlamaBackend:
    """A `server.backend.Backend`. It begins to load when it is made."""

    def __init__(
        self,
        path: Path,
        *,
        name: str,
        digest: str,
        about: Mapping[str, Any] | None = None,
        context: int = 8192,
        kept_folder: Path | None = None,
    ) -> None:
        """`digest`: SHA-256 of the model file; `about`: what else clients are told of the model."""
        self._name = name
        self._about = dict(about or {})
        self._made_at = int(time.time())
        settings = EngineSettings(
            path=path,
            digest=digest,
            threads=cpus.threads(),
            kept_folder=kept_folder or folders.cache() / "prefilled",
            context=context,
        )
        self.engine = Engine(settings)
        self.engine.start()

    def state(self) -> Mapping[str, Any]:
        """How far loading is, or what is being done."""
        engine = self.engine
        if engine.status == "loading":
            detail = f"loading {self._name}: {engine.progress:.0%}"
            return {"status": "loading", "detail": detail, "progress": engine.progress}
        if engine.status != "ok":
            return {"status": "failed", "detail": engine.problem or "the server is ending"}
        detail = f"{self._name}: {engine.live} in the making, {engine.waiting} waiting"
        return {"status": "ok", "detail": detail, "live": engine.live, "waiting": engine.waiting}

    def models(self) -> list[dict[str, Any]]:
        """The one model."""
        about: dict[str, Any] = {"scripted": False, **self._about}
        if self.engine.context_tokens:
            about["context_tokens"] = self.engine.context_tokens
        return [
            {
                "id": self._name,
                "object": "model",
                "created": self._made_at,
                "owned_by": "uitweg",
                "uitweg": about,
            }
        ]

    def metrics(self) -> str:
        """Prometheus text."""
        engine = self.engine
        gauges: dict[str, tuple[str, float]] = {
            "live": ("Replies in the making.", engine.live),
            "queue": ("Requests that wait.", engine.waiting),
            "kv_tokens": ("Tokens in the KV cache.", engine.cells_used),
            "kv_room": ("Tokens that the KV cache has room for.", engine.context_tokens),
            "parked": ("Ended replies whose tokens are still in the KV cache.", engine.parked),
            "shelved": ("Ended replies whose tokens are in memory beside it.", engine.shelved),
            "resident_bytes": ("Memory of this process.", resident_bytes()),
        }
        return prometheus(engine.figures, gauges)

    async def chat(self, request: ChatRequest) -> AsyncIterator[Piece]:
        """Pieces of the reply; closing the iterator stops the work at once."""
        if self.engine.status != "ok":
            raise _unavailable(self.engine)
        if request.model not in (None, self._name):
            raise ModelNotFound(request.model, [self._name])
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[list[Piece] | Exception] = asyncio.Queue()
        sink = _Sink(request, loop, pieces)
        try:
            job = await asyncio.to_thread(self._job, request, sink)
            self.engine.submit(job)
        except QueueFull as full:
            raise Busy(f"{full}; try again later.", retry_after_s=_wait_s(full.waiting)) from None
        except (NotReady, NativeError):
            raise _unavailable(self.engine) from None
        try:
            while True:
                arrived = await pieces.get()
                if isinstance(arrived, Exception):
                    raise _as_api_error(arrived)
                for piece in arrived:
                    yield piece
                if arrived and isinstance(arrived[-1], Finish):
                    return
        finally:
            self.engine.cancel(job)

    def close(self) -> None:
        """Stop all work and free the model."""
        self.engine.close()

    @cached_property
    def _prompts(self) -> Prompts:
        return Prompts(self.engine.model)

    def _job(self, request: ChatRequest, sink: _Sink) -> Job:
        grammar = request_grammar(request)
        prompt = self._prompts.tokens(request)
        return Job(
            prompt=prompt,
            limit=self._limit(request, prompt),
            sink=sink,
            sampling=_sampling(request),
            stops=request.stop,
            grammar=grammar,
            keep=self._prompts.common_part(request, prompt),
            usual=self._prompts.usual(request),
        )

    def _limit(self, request: ChatRequest, prompt: Ids) -> int:
        room = self.engine.context_tokens
        left = room - len(prompt)
        if left < 1:
            raise ContextLengthExceeded(len(prompt), room)
        asked = request.token_limit
        if asked is None:
            return min(left, USUAL_LIMIT)
        if asked > left:
            field = "max_completion_tokens" if request.max_completion_tokens else "max_tokens"
            raise BadRequest(
                f"This model's maximum context length is {room} tokens. However, you requested "
                f"{len(prompt) + asked} tokens ({len(prompt)} in the messages, {asked} in the "
                f"completion). Ask for at most {left}, or shorten the messages.",
                param=field,
                code="context_length_exceeded",
                extra={"prompt_tokens": len(prompt), "context_tokens": room},
            )
        return asked


class _Sink:
    """Takes a reply's text in the engine's thread, and hands pieces to the event loop."""

    def __init__(
        self,
        request: ChatRequest,
        loop: asyncio.AbstractEventLoop,
        pieces: asyncio.Queue[list[Piece] | Exception],
    ) -> None:
        tools = request.callable_tools
        names = [tool.name for tool in tools]
        self._grammars = CallGrammars(tools)
        one_call = request.tool_choice.mode == "required" or request.parallel_tool_calls is False
        self._reader = CallReader(names, most=1 if one_call else None)
        self._loop = loop
        self._pieces = pieces

    def text(self, text: str) -> bool:
        """Read on; a reply that has all its calls is over."""
        self._hand_over(list(self._reader.feed(text)))
        return self._reader.full

    def begun(self) -> BegunArguments | None:
        """If a call's arguments begin just here: what they must follow."""
        call = self._reader.begun
        return None if call is None else self._grammars.for_call(call)

    def in_call(self) -> bool:
        """Whether a call is being written."""
        return self._reader.begun is not None

    def end(self, ending: Ending) -> None:
        """What was held back, and the finish."""
        rest: list[Piece] = list(self._reader.finish(cut=ending.reason == "length"))
        calls = self._reader.calls and ending.reason == "stop"
        finish = Finish(
            reason="tool_calls" if calls else ending.reason,
            prompt_tokens=ending.prompt_tokens,
            cached_tokens=ending.cached_tokens,
            completion_tokens=ending.completion_tokens,
            timings={
                "queue_ms": round(1000 * ending.queue_s, 3),
                "prefill_ms": round(1000 * ending.prefill_s, 3),
                "decode_ms": round(1000 * ending.decode_s, 3),
            },
        )
        self._hand_over([*rest, finish])

    def fail(self, error: Exception) -> None:
        """The client is told."""
        self._put(error)

    def _hand_over(self, pieces: list[Piece]) -> None:
        if pieces:
            self._put(pieces)

    def _put(self, item: list[Piece] | Exception) -> None:
        # A loop that is closed has nobody left who waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._pieces.put_nowait, item)


def _sampling(request: ChatRequest) -> Sampling | None:
    temperature = USUAL_TEMPERATURE if request.temperature is None else request.temperature
    if temperature == 0:
        return None
    seed = secrets.randbits(32) if request.seed is None else request.seed
    top_p = USUAL_TOP_P if request.top_p is None else request.top_p
    return Sampling(temperature, top_p, seed % 2**32)


def _unavailable(engine: Engine) -> Unavailable:
    if engine.status == "loading":
        return Unavailable(f"The model is loading ({engine.progress:.0%}). Try again soon.")
    if engine.problem:
        return Unavailable(
            f"The model did not load: {engine.problem}", code="model_failed", retry_after_s=None
        )
    return Unavailable("The server is ending.", code="server_ending", retry_after_s=None)


def _as_api_error(error: Exception) -> ApiError:
    if isinstance(error, ApiError):
        return error
    if isinstance(error, GrammarError):
        return BadRequest(f"The grammar of this request cannot be used: {error}", param="tools")
    if isinstance(error, NotReady):
        return Unavailable(f"{error}.", code="server_ending", retry_after_s=None)
    return EngineFailed(f"The reply failed: {error}")


def _wait_s(waiting: int) -> int:
    """A guess at when there is room again: some seconds a request."""
    return max(1, waiting // 4)
