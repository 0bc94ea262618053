"""Both servers over raw sockets: mutated bodies, broken HTTP, slow and many clients."""

from __future__ import annotations

import contextlib
import http.client
import random
import socket
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from attack.mutate import NASTY, as_bytes, changed
from attack.page import Access, enter, page
from attack.provider import provider
from attack.served import faults_in
from attack.tally import Tally

TITLE = "Raw requests, slow and many clients"
REQUESTS = 15_000
SMALL = 400
SECONDS = 120.0
FORM = "application/x-www-form-urlencoded"
CALL = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}
TALK = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": [{"type": "text", "text": "t"}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "r"},
]
BODIES: tuple[dict[str, Any], ...] = (
    {"model": "plan", "messages": TALK, "tools": [TOOL], "stream": True},
    {"model": "plan", "messages": TALK[:2], "max_tokens": 5, "temperature": 0, "stop": ["a"]},
)
PATHS = (
    "/", "/{}", "/news", "/compare", "/static/{}", "/runs/{}", "/runs/{}/trace", "/runs/{}/news",
    "/runs/{}/events/{}", "/runs/{}/transcript", "/runs/{}/trace.jsonl",
)  # fmt: skip
FORMS: dict[str, dict[str, str]] = {
    "/runs": {"task": "Look.", "model": "scripted|plan", "max_turns": "3", "workspace": ""},
    "/runs/none/decide": {"action": "edit", "call_id": "c1", "digest": "0", "args": '{"path":"x"}'},
    "/runs/none/resume": {"max_turns": "5", "max_cost_usd": "0.1"},
    "/runs/none/stop": {},
}
BROKEN = (
    b"\r\n\r\n", b"nonsense\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\xfc\x03\x03",
    b"\x00" * 500,
    b"GET / HTTP/9.9\r\nHost: HOST\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET /\r\n",
    b"GET / HTTP/1.1\r\nHost: HOST\r\nHost: HOST\r\n\r\n", b"GET / HTTP/1.1\r\nHost: \xff\r\n\r\n",
    b"GET http://evil.example/ HTTP/1.1\r\nHost: HOST\r\n\r\n", b"G\x00T / HTTP/1.1\r\n\r\n",
    b"GET /%ff%00%2e%2e/../../etc/passwd HTTP/1.1\r\nHost: HOST\r\n\r\n",
    b"GET /" + b"a" * 300_000 + b" HTTP/1.1\r\nHost: HOST\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: HOST\r\nX: " + b"a" * 300_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: HOST\r\n" + b"X: a\r\n" * 50_000 + b"\r\n",
    b"POST /runs HTTP/1.1\r\nHost: HOST\r\nContent-Length: -5\r\n\r\n",
    b"POST /runs HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nxxxxxx",
    b"POST /runs HTTP/1.1\r\nHost: HOST\r\nContent-Length: 9" + b"9" * 50 + b"\r\n\r\n",
    b"POST /runs HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /runs HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: gzip\r\n\r\n",
    b"POST /runs HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"
    b"0\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: HOST\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/1.1\nHost: HOST\n\n", b"GET / HTTP/1.1\r\nHost: HOST\r\n bad: folded\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: HOST\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
)  # fmt: skip


class Server(NamedTuple):
    """One of the two, with what a browser or a client sends along."""

    name: str
    host: str
    headers: dict[str, str]
    alive: str
    """An address that is always answered."""


def attack(tally: Tally, folder: Path, long: bool) -> None:
    """Everything on both; after each kind another client must still be served."""
    count = (REQUESTS if long else SMALL) // 2
    logs = [folder / "server.log", folder / "page.log"]
    with provider(logs[0]) as url, page(folder / "runs.db", url, logs[1]) as page_url:
        access = enter(page_url)
        host = url.removeprefix("http://").removesuffix("/v1")
        server = Server("the model server", host, {}, "/health")
        both = (server, _page(access))
        _mutated(tally, server, _chats(count))
        _mutated(tally, both[1], _addresses(access, count))
        for one in both:
            _broken(tally, one)
            _slow(tally, one, 300 if long else 60)
            _huge(tally, one)
    for log in logs:
        tally.tried("what the servers say of faults of their own", faults_in(log))


def _page(access: Access) -> Server:
    headers = {"Cookie": access.cookie, "X-CSRF-Token": access.csrf}
    return Server("the page", access.host, headers, "/model/state")


def _chats(count: int) -> Iterator[tuple[str, str, bytes, dict[str, str]]]:
    rng = random.Random(17)
    kind = {"Content-Type": "application/json"}
    for _ in range(count):
        body = as_bytes(rng, changed(rng, rng.choice(BODIES)))
        yield "POST", "/v1/chat/completions", body, kind


def _addresses(access: Access, count: int) -> Iterator[tuple[str, str, bytes, dict[str, str]]]:
    """Addresses with nasty parts, and forms with nasty values."""
    rng = random.Random(19)
    names = ("after", "before", "q", "ending", "model", "run", "like", "example", "piece", "token")
    for number in range(count):
        nasty = [str(rng.choice(NASTY))[:2000] for _ in range(4)]
        if number % 2:
            path = rng.choice(list(FORMS))
            form = {**FORMS[path], rng.choice(list(FORMS[path]) or ["x"]): nasty[0]}
            body = bytearray(urlencode(form, errors="surrogatepass"), "utf-8")
            if rng.random() < 0.2:
                body[rng.randrange(len(body))] = rng.randrange(256)
            yield "POST", path, bytes(body), {"Content-Type": FORM}
        else:
            path = rng.choice(PATHS).format(*(_quoted(part) for part in nasty[:2]))
            pairs = [(rng.choice(names), text) for text in nasty[2:]]
            query = urlencode(pairs, errors="surrogatepass")
            yield "GET", f"{path}?{query}", b"", {"Last-Event-ID": _quoted(nasty[3])[:200]}


def _quoted(text: str) -> str:
    return quote(text, errors="surrogatepass")


def _mutated(
    tally: Tally, server: Server, requests: Iterator[tuple[str, str, bytes, dict[str, str]]]
) -> None:
    what = f"mutated requests to {server.name}"
    statuses: Counter[int] = Counter()
    connection = http.client.HTTPConnection(server.host, timeout=SECONDS)
    for method, path, body, headers in requests:
        try:
            connection.request(method, path, body or None, {**server.headers, **headers})
            answer = connection.getresponse()
            answer.read()
            statuses[answer.status] += 1
            bad = answer.status >= 500
            problem = f"{answer.status} for {method} {path} {body[:600]!r}" if bad else None
        except (OSError, http.client.HTTPException) as error:
            problem = f"{type(error).__name__} for {method} {path} {body[:600]!r}"
            connection.close()
        tally.tried(what, problem)
    connection.close()
    said = ", ".join(f"{status}: {number:,}" for status, number in sorted(statuses.items()))
    tally.note(what, f"by status: {said}")


UNDERSTOOD_NOT = (501, 505)
"""A coding or a version of HTTP that is not known: RFC 9112, 6.1, and RFC 9110, 15.6.6."""


def _broken(tally: Tally, server: Server) -> None:
    """What is no HTTP is refused or gets an end, and others are served."""
    for sent in BROKEN:
        problem = None
        with socket.create_connection(_split(server.host), timeout=SECONDS) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(sent.replace(b"HOST", server.host.encode()))
                connection.shutdown(socket.SHUT_WR)
            try:
                answer = connection.recv(10_000)
                status = int(answer.split()[1]) if answer.startswith(b"HTTP/") else 0
                if status >= 500 and status not in UNDERSTOOD_NOT:
                    problem = f"{answer[:60]!r}"
            except TimeoutError:
                problem = "no answer and no end"
            except OSError:
                pass  # it was cut off
        problem = problem or _serves(server)
        tally.tried(f"broken HTTP to {server.name}", problem and f"{problem} for {sent[:200]!r}")


def _slow(tally: Tally, server: Server, count: int) -> None:
    """Clients that begin a request and say no more; the others are served meanwhile."""
    what = f"clients at once that never finish, on {server.name}"
    begun = (
        b"POST /runs HTTP/1.1\r\nHost: " + server.host.encode() + b"\r\nContent-Length: 50\r\n\r\n{"
    )
    with contextlib.ExitStack() as stack:
        for number in range(count):
            connection = socket.create_connection(_split(server.host), timeout=SECONDS)
            stack.enter_context(connection)
            connection.sendall(begun[: 1 + number % len(begun)])
            tally.tried(what, _serves(server) if number % 20 == 0 else None)
        started = time.monotonic()
        tally.tried(what, _serves(server))
        tally.note(what, f"another is answered in {(time.monotonic() - started) * 1000:.0f} ms")


def _huge(tally: Tally, server: Server) -> None:
    """Bodies larger than is taken: refused, whether the size is said before or not."""
    what = f"bodies of 40 MB to {server.name}"
    path = "/v1/chat/completions" if server.alive == "/health" else "/runs"
    kind = "application/json" if server.alive == "/health" else FORM
    head = [f"POST {path} HTTP/1.1", f"Host: {server.host}", f"Content-Type: {kind}"]
    head += [f"{name}: {value}" for name, value in server.headers.items()]
    for framing in ("Content-Length: 40000000", "Transfer-Encoding: chunked"):
        chunk = b"a" * 100_000
        if "chunked" in framing:
            chunk = b"186a0\r\n" + chunk + b"\r\n"
        with socket.create_connection(_split(server.host), timeout=SECONDS) as connection:
            with contextlib.suppress(OSError):
                connection.sendall("\r\n".join([*head, framing, "", ""]).encode())
                for _ in range(400):
                    connection.sendall(chunk)
            try:
                status = int(connection.recv(1000).split()[1])
                problem = None if 400 <= status < 500 else f"{status}"
            except TimeoutError:
                problem = "no answer"
            except (OSError, IndexError):
                problem = None  # it was cut off
        tally.tried(what, problem or _serves(server))


def _serves(server: Server) -> str | None:
    connection = http.client.HTTPConnection(server.host, timeout=SECONDS)
    try:
        connection.request("GET", server.alive, headers=server.headers)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return f"another client is not served: {type(error).__name__}"
    else:
        return None if status == 200 else f"another client gets {status}"
    finally:
        connection.close()


def _split(host: str) -> tuple[str, int]:
    name, _, port = host.rpartition(":")
    return name, int(port)
