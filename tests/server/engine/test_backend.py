"""The backend: a request's limits, its refusals, its figures."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from server.backend import Finish, TextPiece
from server.engine.backend import USUAL_LIMIT, LlamaBackend
from server.errors import BadRequest, ContextLengthExceeded, Unavailable
from server.parse import parse_request

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def backend(small_model, tmp_path_factory):
    made = LlamaBackend(
        small_model.path,
        name="small",
        digest=small_model.sha256,
        context=1024,
        kept_folder=tmp_path_factory.mktemp("kept"),
    )
    assert made.state()["status"] in ("loading", "ok")
    made.engine.wait_ready(120)
    yield made
    made.close()
    assert made.state()["status"] == "failed"


async def pieces(backend, **body):
    body = {"messages": [{"role": "user", "content": "Say hello."}], "temperature": 0, **body}
    return [piece async for piece in backend.chat(parse_request(json.dumps(body).encode()))]


async def test_s11_both_numbers(backend) -> None:
    long = [{"role": "user", "content": "word " * 1500}]
    with pytest.raises(ContextLengthExceeded) as refused:
        await pieces(backend, messages=long)
    assert refused.value.extra["context_tokens"] == 1024
    assert refused.value.extra["prompt_tokens"] > 1500


async def test_a_reply_that_could_not_fit_is_refused_by_the_field_that_asked(backend) -> None:
    with pytest.raises(BadRequest, match="Ask for at most") as refused:
        await pieces(backend, max_completion_tokens=1024)
    assert refused.value.param == "max_completion_tokens"
    assert refused.value.code == "context_length_exceeded"


async def test_s15_a_reply_is_bounded_where_nobody_bounds_it(backend) -> None:
    assert USUAL_LIMIT <= 1024
    *texts, finish = await pieces(backend, max_tokens=5)
    assert isinstance(finish, Finish)
    assert (finish.reason, finish.completion_tokens) == ("length", 5)
    assert all(isinstance(piece, TextPiece) for piece in texts)
    assert set(finish.timings) >= {"queue_ms", "prefill_ms", "decode_ms"}


async def test_json_schema_holds(backend) -> None:
    schema = {
        "type": "object",
        "properties": {"mood": {"type": "string", "enum": ["glad", "sad"]}},
        "required": ["mood"],
    }
    form = {"type": "json_schema", "json_schema": {"name": "mood", "schema": schema}}
    *texts, finish = await pieces(backend, response_format=form)
    assert finish.reason == "stop"
    assert json.loads("".join(piece.text for piece in texts))["mood"] in ("glad", "sad")


async def test_s10_closing_the_iterator_frees_the_place(backend) -> None:
    body = {"messages": [{"role": "user", "content": "Count to a thousand."}], "temperature": 0}
    replies = backend.chat(parse_request(json.dumps(body).encode()))
    await anext(replies)
    assert backend.engine.live == 1
    await replies.aclose()
    end = time.monotonic() + 30
    while backend.engine.live:
        assert time.monotonic() < end
        await asyncio.sleep(0.002)


async def test_s4_several_at_once(backend) -> None:
    alone = [await pieces(backend, max_tokens=8, seed=n) for n in range(3)]
    together = await asyncio.gather(*[pieces(backend, max_tokens=8, seed=n) for n in range(3)])
    for one, other in zip(alone, together, strict=True):
        assert [p for p in one if isinstance(p, TextPiece)] == [
            p for p in other if isinstance(p, TextPiece)
        ]


async def test_figures_in_prometheus_text(backend) -> None:
    await pieces(backend, max_tokens=2)
    text = backend.metrics()
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(values["uitweg_engine_requests_total"]) > 0
    assert float(values["uitweg_engine_cached_tokens_total"]) > 0
    assert float(values["uitweg_engine_kv_room"]) == 1024
    assert float(values["uitweg_engine_resident_bytes"]) > 1e7
    assert text.endswith("\n")


async def test_a_model_that_does_not_load_says_why(tmp_path) -> None:
    backend = LlamaBackend(tmp_path / "none.gguf", name="none", digest="", kept_folder=tmp_path)
    try:
        end = time.monotonic() + 60
        while backend.state()["status"] == "loading":
            assert time.monotonic() < end
            await asyncio.sleep(0.01)
        assert "none.gguf" in backend.state()["detail"]
        with pytest.raises(Unavailable, match=r"none\.gguf"):
            await pieces(backend)
    finally:
        backend.close()
