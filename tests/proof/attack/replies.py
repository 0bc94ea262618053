"""Replies of a provider that are malformed, streamed or whole, in the first turn or later."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from attack.mutate import as_bytes, changed
from attack.reference import Place, tools
from attack.tally import Tally
from harness.errors import HarnessError
from harness.provider import HttpProvider
from harness.provider.retry import RetryPolicy
from harness.runner import Runner
from harness.schema import InvalidArguments
from harness.state import ENDINGS, RESUMABLE, Decision, RunState, Settings
from harness.store import Store
from harness.tool import Tool
from server.errors import RawReply
from server.scripted.conversation import Call, Reply
from server.scripted.faults import RAW, WRONG, Wire

TITLE = "Malformed replies of a provider"
TURNS = (
    Reply(calls=(Call("read_file", '{"path":"errors.log"}', "c1"),)),
    Reply(calls=(Call("pay", '{"item":"stamps"}', "c2"),)),
    Reply(text="It is errors.log."),
)
AT_ONCE = 8
TOOLS = ("list_files", "read_file", "pay")
SILENT = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
HEADS = (
    b"", b"\x00" * 100, b"HTTP/1.1\r\n\r\n", b"HTTP/9.9 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    b"HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5000000000\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000 + b"\r\n\r\n", b"\x16\x03\x01\x02\x00\x01",
    b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n" * 50, b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 429 Slow\r\nRetry-After: nonsense\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 503 No\r\nRetry-After: -99999999999999999999\r\nContent-Length: 0\r\n\r\n", SILENT,
    SILENT + b"data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n" * 20,
)  # fmt: skip
"""Answers that are wrong as HTTP, or break off; the connection is closed after each."""


class Case(NamedTuple):
    """One wrong reply: what is sent instead of the right one, at which turn."""

    what: str
    name: str
    turn: int
    data: bytes


def attack(tally: Tally, folder: Path, long: bool) -> None:
    """A run for each; then the same run resumed with a provider that works."""
    endings: Counter[str] = Counter()
    cases = [*_named(long), *_broken_http(long), *_mutated(600 if long else 60)]
    asyncio.run(_all(tally, folder, cases, endings))
    said = ", ".join(f"{count:,} {name}" for name, count in endings.most_common())
    tally.note("faults by name, streamed", f"all runs at first ended: {said}")


async def _all(tally: Tally, folder: Path, cases: list[Case], endings: Counter[str]) -> None:
    turnstile = asyncio.Semaphore(AT_ONCE)

    async def one(number: int, case: Case) -> None:
        async with turnstile:
            problem = await _bounded(Place(folder / str(number), "").prepare(), case, endings)
        where = f"{case.name} at turn {case.turn}: {case.data[:300]!r}"
        tally.tried(case.what, problem and f"{problem} ({where})")

    await asyncio.gather(*(one(number, case) for number, case in enumerate(cases)))


async def _bounded(place: Place, case: Case, endings: Counter[str]) -> str | None:
    try:
        async with asyncio.timeout(300):
            return await _try(place, case, endings)
    except TimeoutError:
        return "it hangs"
    except Exception as error:  # noqa: BLE001 - exactly what must not come
        return f"{type(error).__name__}: {error}"
    finally:
        place.remove()


def _http(body: bytes, *, stream: bool, content_type: str | None = None) -> bytes:
    kind = content_type or ("text/event-stream" if stream else "application/json")
    return (
        f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )


def _named(long: bool) -> Iterator[Case]:
    """The faults that the scripted provider knows, as a stream and whole."""
    for turn in (1, 2, 3) if long else (1, 2):
        for stream in (True, False):
            what = f"faults by name, {'streamed' if stream else 'whole'}"
            for name, change in WRONG.items():
                wire = Wire(change(TURNS[turn - 1]), 10, stream)
                yield Case(what, name, turn, _http(wire.body(), stream=stream))
            for name, make in RAW.items():
                raw: RawReply = make(Wire(TURNS[turn - 1], 10, stream))
                kind = raw.headers.get("Content-Type")
                data = _http(raw.body, stream=stream, content_type=kind)
                if raw.cut:  # more was promised than comes
                    data = data.replace(b"Content-Length: ", b"Content-Length: 9", 1)
                yield Case(what, name, turn, data)


def _broken_http(long: bool) -> Iterator[Case]:
    for turn in (1, 2, 3) if long else (2,):
        for number, data in enumerate(HEADS):
            yield Case("answers that are no HTTP, or break off", str(number), turn, data)


def _mutated(count: int) -> Iterator[Case]:
    """Right replies with something wrong in their structure or their bytes."""
    rng = random.Random(5)
    for number in range(count):
        turn, stream = rng.choice((1, 2, 3)), rng.random() < 0.5
        body = Wire(TURNS[turn - 1], 10, stream).body()
        what = f"mutated replies, {'streamed' if stream else 'whole'}"
        if not stream:
            data = as_bytes(rng, changed(rng, json.loads(body)))
        else:
            events = [json.loads(line[6:]) for line in body.split(b"\n\n")[:-2]]
            at = rng.randrange(len(events))
            events[at] = changed(rng, events[at])
            rng.shuffle(events) if rng.random() < 0.1 else None
            lines = [b"data: " + as_bytes(rng, event) for event in events]
            data = b"\n\n".join([*lines, b"data: [DONE]", b""])
        yield Case(what, str(number), turn, _http(data, stream=stream))


@asynccontextmanager
async def _serving(case: Case | None) -> AsyncIterator[str]:
    """A provider that answers rightly, but for the case's turn."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        messages = json.loads(await reader.readexactly(length))["messages"]
        turn = 1 + sum(message["role"] == "assistant" for message in messages)
        if case is not None and case.turn == turn:
            writer.write(case.data)
        else:
            right = Wire(TURNS[min(turn, len(TURNS)) - 1], 10, True)
            writer.write(_http(right.body(), stream=True))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()


def _runner(store: Store, url: str, has: dict[str, Tool]) -> Runner:
    policy = RetryPolicy(tries=2, first_wait=0.01)
    provider = HttpProvider(url, policy=policy, read_timeout=2.0)
    return Runner(store, provider_factory=lambda _: provider, tools=has)


async def _try(place: Place, case: Case, endings: Counter[str]) -> str | None:
    has = tools(place.ledger)
    with Store.open(place.path) as store:
        async with _serving(case) as url, _runner(store, url, has) as runner:
            settings = Settings(
                base_url=url, model="m", workspace=str(place.workspace), tools=TOOLS
            )
            state = await runner.start("Do it.", settings, run_id="r")
        kind = state.interruption.kind if state.interruption else ""
        endings[f"{state.status} {kind}".strip()] += 1
        if problem := _judge(place, store, state, has):
            return problem
        if state.status not in RESUMABLE:
            return None
        async with _serving(None) as url, _runner(store, url, has) as runner:
            return await _goes_on(runner, state)


async def _goes_on(runner: Runner, state: RunState) -> str | None:
    """Resume with a provider that works, refusing what is asked, to the end."""
    for _ in range(6):
        waiting = state.interruption
        if waiting is not None and waiting.kind == "approval":
            no = {"call_id": waiting.call_id, "digest": waiting.digest, "reason": "no"}
            await runner.decide("r", Decision(action="reject", **no))
        try:
            state = await runner.resume("r")
        except HarnessError as error:
            return f"it cannot be resumed: {error}"
        if state.status == "completed":
            return None
    return f"resumed, it is {state.status}: {state.reason}"


def _judge(place: Place, store: Store, state: RunState, has: dict[str, Tool]) -> str | None:
    """Whether anything ran that the reply did not rightly ask for."""
    if state.status not in ENDINGS:
        return f"it is {state.status}"
    if place.paid():
        return "it paid, and nobody had approved"
    asked: dict[str, Any] = {
        call["id"]: call["function"]
        for message in state.messages
        for call in message.get("tool_calls") or ()
    }
    for event in store.events("r"):
        if event.type == "tool_start":
            function = asked[event.call_id]
            try:
                wanted = has[function["name"]].validate(function["arguments"])
            except (InvalidArguments, KeyError):
                return f"{event.tool_name} ran with arguments that are wrong"
            if (function["name"], wanted) != (event.tool_name, event.args):
                return f"{event.tool_name} ran with other arguments than it was asked for"
    said = [m["tool_call_id"] for m in state.messages if m["role"] == "tool"]
    owed = [record.call_id for record in state.owed()]
    if sorted(said + owed) != sorted(asked) or len(set(said)) != len(said):
        return "a call has no tool message, or has two"
    if any(not m["content"] for m in state.messages if m["role"] == "tool"):
        return "a tool message is empty"
    return None
