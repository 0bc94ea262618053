"""The real model under eight users: the queue is fair, a cancel frees its place, nobody starves."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from attack.tally import Tally
from models.errors import ModelError
from models.store import Store

TITLE = "The real model under eight users"
USERS = 8
CROWD = 12
"""More than are answered at once, so that some wait in the queue."""
SMALL_MODEL = "smollm2-135m-instruct"
WHOLE = "replies to eight users, each asking again once it is answered"
QUEUED = "replies to twelve, more than are answered at once"
FAIR = "of these, begun in the order in which they were asked for"
LEFT = "users that leave within their reply or before it"
SECONDS = 600.0
READY_SECONDS = 300.0
HOST = re.compile(r"http://([\d.]+:\d+)")
LONG_PROMPT = "Tell me about the sea. " * 150


SAME_MOMENT = 0.2
"""Seconds within which no order is asked of two requests: they come by several threads."""


class Served(NamedTuple):
    """One reply: who asked, and by this process's clock when it was asked, begun and given."""

    user: int
    asked: float
    begun: float
    given: float


def attack(tally: Tally, folder: Path, long: bool) -> None:
    """A small model in the small form; the default, or what stands in for it, in the long one."""
    name = _model(long)
    if name is None:
        tally.note(WHOLE, "no model is here, or no engine")
        return
    with _served(name, folder / "server.log") as host:
        served = _ask_all(tally, WHOLE, host, USERS, 4 if long else 2)
        _fair(tally, _ask_all(tally, QUEUED, host, CROWD, 3 if long else 2))
        _leave(tally, host, 16 if long else 4)
    seconds = max(one.given for one in served) - min(one.asked for one in served)
    rate = len(served) / max(seconds, 0.001)
    tally.note(
        WHOLE, f"{name}; {rate:.1f} replies of at most 24 tokens a second, all users together"
    )


def _model(long: bool) -> str | None:
    try:
        import llama_cpp  # noqa: F401 - only whether it is there
    except ImportError:
        return None
    store = Store()
    wanted = [choice.name for choice in store.catalogue.choices(None)] if long else [SMALL_MODEL]
    for name in wanted:
        with contextlib.suppress(ModelError):
            store.verify(name)
            return name
    return None


@contextlib.contextmanager
def _served(name: str, log: Path) -> Iterator[str]:
    """Serve the model and wait until it is ready."""
    command = [sys.executable, "-m", "uitweg", "serve", "--model", name, "--port", "0"]
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            host = next(found[1] for line in process.stdout if (found := HOST.search(line)))
            _wait_until_ready(host)
            yield host
        finally:
            process.terminate()


def _wait_until_ready(host: str) -> None:
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            connection = http.client.HTTPConnection(host, timeout=10)
            connection.request("GET", "/health")
            ready = connection.getresponse().status == 200
            connection.close()
            if ready:
                return
        time.sleep(0.2)
    raise TimeoutError("the model did not become ready")


def _post(host: str, text: str, tokens: int, *, stream: bool) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection(host, timeout=SECONDS)
    messages = [{"role": "user", "content": text}]
    body = {"messages": messages, "max_tokens": tokens, "temperature": 0, "stream": stream}
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
    return connection


def _ask_all(tally: Tally, what: str, host: str, users: int, rounds: int) -> list[Served]:
    """All users at once, each `rounds` times."""
    served: list[Served] = []
    problems: list[str | None] = []

    def ask_again_and_again(user: int) -> None:
        for number in range(rounds):
            problem: str | None = None
            asked = time.monotonic()
            try:
                text = f"User {user}, question {number}: count to {10 + user}."
                connection = _post(host, text, 24, stream=False)
                answer = connection.getresponse()
                reply = json.loads(answer.read())
                connection.close()
                if answer.status != 200:
                    problem = f"{answer.status}: {reply}"
                elif reply["usage"]["completion_tokens"] < 1:
                    problem = "the reply is empty"
                else:
                    begun = asked + reply["timings"]["queue_ms"] / 1000
                    served.append(Served(user, asked, begun, time.monotonic()))
            except (OSError, ValueError, http.client.HTTPException) as error:
                problem = f"{type(error).__name__}: {error}"
            problems.append(problem)

    threads = [threading.Thread(target=ask_again_and_again, args=(user,)) for user in range(users)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for problem in problems:
        tally.tried(what, problem)
    return served


def _fair(tally: Tally, served: list[Served]) -> None:
    """None that came later was begun before: how long a reply then takes is its own affair."""
    for one in served:
        overtaken = [
            other.user
            for other in served
            if other.asked > one.asked + SAME_MOMENT and other.begun < one.begun - SAME_MOMENT
        ]
        tally.tried(
            FAIR, f"user {one.user} was overtaken by users {overtaken}" if overtaken else None
        )
    longest = max(one.begun - one.asked for one in served)
    tally.note(FAIR, f"the longest wait was {longest:.1f} s")


def _leave(tally: Tally, host: str, count: int) -> None:
    """Users that close their connection: in the prompt, and while words come."""
    for number in range(count):
        early = number % 2 == 0
        text = f"{number}: {LONG_PROMPT if early else 'Count to a hundred.'}"
        connection = _post(host, text, 2000, stream=True)
        if not early:
            connection.getresponse().read(200)
        connection.close()
        other = _post(host, "Say yes.", 4, stream=False)
        status = other.getresponse().status
        other.close()
        tally.tried(LEFT, None if status == 200 else f"the next user got {status}")
    tally.tried(LEFT, _busy(host))


def _busy(host: str) -> str | None:
    """Whether the server still works for somebody although all have gone."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        connection = http.client.HTTPConnection(host, timeout=10)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        live = re.findall(r"^uitweg_\w*(?:running|live|waiting)\w* ([\d.]+)", text, re.MULTILINE)
        if live and not any(float(value) for value in live):
            return None
        time.sleep(0.2)
    return f"it still works for somebody: {text[:500]}"
