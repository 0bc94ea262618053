"""Chat templates that try to leave the sandbox, or to use up time or memory."""

from __future__ import annotations

import json
import resource
from functools import partial
from pathlib import Path
from typing import NamedTuple

from attack.forks import HUNG, Fork, shared
from attack.tally import Tally
from server.errors import BadRequest
from server.parse import parse_request
from server.template import ChatTemplate

TITLE = "Chat templates that try to break out"
SECONDS = 120.0
MEMORY = 2 * 1024**3
STARVED = "it took more memory than it may"
MARK = "5f1e-broken-out"
SIGNS = (MARK, "<class", "<function", "<frame", "<code", "<module", "root:", "__builtins__")
SOURCES = Path(__file__).with_suffix(".txt")


class Try(NamedTuple):
    """One template."""

    what: str
    source: str


def attack(tally: Tally, folder: Path, long: bool) -> None:
    """Each in a process of its own, with bounds of time and memory."""
    kinds = _sources()
    crossed = [
        Try("objects that are reached from what a template is given", f"{{{{ {what}{route} }}}}")
        for what in kinds["reached from"]
        for route in kinds["reached by"]
    ]
    called = [Try("code that is run, files, changed messages", source) for source in kinds["run"]]
    endless = [Try("templates without end or bound", source) for source in kinds["without end"]]
    starved = 0
    for one, ending in shared(_try, [*called, *endless, *crossed[:: 1 if long else 25]]):
        starved += ending == STARVED
        problem = None if ending in ("", STARVED) else ending
        tally.tried(one.what, problem and f"{problem}: {one.source}")
    bound = f"{starved} were ended by the bound on memory that the suite sets, 2 GiB"
    tally.note("templates without end or bound", bound)


def _sources() -> dict[str, list[str]]:
    """Templates by kind."""
    kinds: dict[str, list[str]] = {}
    for line in SOURCES.read_text("utf-8").splitlines():
        if line.startswith("== "):
            kinds[line[3:]] = found = []
        elif line and not line.startswith("#"):
            found.append(line)
    return kinds


def _try(one: Try) -> tuple[Try, str]:
    child = Fork(partial(_render, one.source.replace("MARK", MARK)))
    code = child.wait(SECONDS)
    if code == HUNG:
        return one, f"it takes more than {SECONDS:.0f} s"
    if code:
        return one, f"its process ended with {code}"
    return one, child.result


def _render(source: str) -> str:
    """What is wrong with what came of it, or nothing."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    body = {"messages": [{"role": "user", "content": "hello"}]}
    request = parse_request(json.dumps(body).encode())
    before = request.model_dump_json()
    try:
        text = ChatTemplate(source).render(request)
    except (ValueError, BadRequest) as refusal:
        return STARVED if isinstance(refusal.__cause__, MemoryError) else ""
    except MemoryError:
        return STARVED
    for sign in SIGNS:
        if sign in text:
            return f"it shows {text[:200]!r}"
    return "" if request.model_dump_json() == before else "it changed the request"
