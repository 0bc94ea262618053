"""Tools that never return, ignore a cancel, leave processes, print without end."""

from __future__ import annotations

import asyncio
import os
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

from attack import bad_tools
from attack.forks import HUNG, Fork, shared
from attack.reference import Place, new_place
from attack.tally import Tally
from harness.cancel import CancelToken
from harness.events import Event
from harness.runner import Runner
from harness.scripted_model import Call, ScriptedModel
from harness.state import RunState
from harness.store import Store
from harness.tool import Tool
from harness.tools import list_files

TITLE = "Tools that do what they should not"
MOST_SAID = 20_000
"""Characters of a tool message: 8 KiB of text, more where bytes are written as `\\xff`."""
SECONDS = 300.0
TOOLS = {tool.name: tool for tool in (*bad_tools.WITHOUT_END, *bad_tools.WITH_END)}


class Case(NamedTuple):
    """One tool, and whether a person presses Stop while it runs."""

    what: str
    tool: str
    stop: bool


def attack(tally: Tally, folder: Path, long: bool) -> None:
    """Each tool in a run of its own; then the same process carries another call."""
    cases = [
        *(Case("stopped by its time limit", t.name, False) for t in bad_tools.WITHOUT_END),
        *(Case("stopped by a person", t.name, True) for t in bad_tools.WITHOUT_END),
        *(Case("ends by itself", tool.name, False) for tool in bad_tools.WITH_END),
    ]
    for case, problem in shared(_try, cases * (4 if long else 1)):
        tally.tried(case.what, problem and f"{case.tool}: {problem}")


def _try(case: Case) -> tuple[Case, str | None]:
    place = new_place("http://127.0.0.1:9/v1")
    try:
        child = Fork(partial(_carry, place, case))
        code = child.wait(SECONDS)
        if code:
            return case, "it hangs" if code == HUNG else f"the harness ended with {code}"
        return case, child.result or _left(place)
    finally:
        place.remove()


def _left(place: Place) -> str | None:
    """Whether a process of the tool's is still there."""
    file = place.workspace / "pids"
    pids = [int(line) for line in file.read_text().split()] if file.exists() else []
    end = time.monotonic() + 5
    while left := [pid for pid in pids if _lives(pid)]:
        if time.monotonic() > end:
            return f"{len(left)} of its processes are still there"
        time.sleep(0.05)
    return None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        # One that has ended and is not yet collected counts as gone.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def _carry(place: Place, case: Case) -> str | None:
    """What is wrong with how the harness took it."""
    with Store.open(place.path) as store:
        return asyncio.run(_carry_both(place, store, case))


async def _carry_both(place: Place, store: Store, case: Case) -> str | None:
    token = CancelToken()

    def on_event(event: Event) -> None:
        if case.stop and event.type == "tool_start":
            asyncio.get_running_loop().call_later(0.1, token.cancel, "a person pressed Stop")

    model = ScriptedModel(Call(case.tool), "Done.")
    async with Runner(store, provider_factory=lambda _: model, tools=_tools(case)) as runner:
        settings = place.settings().model_copy(update={"tools": (case.tool, "list_files")})
        state = await runner.start("Try it.", settings, on_event=on_event, cancel=token)
        problem = _wrong(case, store.load(state.run_id))
        # The harness still works beside whatever was left behind.
        other = ScriptedModel(Call("list_files"), "Done.")
    async with Runner(store, provider_factory=lambda _: other) as runner:
        plain = settings.model_copy(update={"tools": ("list_files",)})
        after = await runner.start("And another.", plain)
    if after.status != "completed":
        problem = problem or f"the next run is {after.status}"
    return problem


def _tools(case: Case) -> dict[str, Tool]:
    return {case.tool: TOOLS[case.tool], "list_files": list_files}


def _wrong(case: Case, state: RunState) -> str | None:
    said = [m for m in state.messages if m["role"] == "tool"]
    if len(said) != 1:
        return f"its call has {len(said)} tool messages"
    content = said[0]["content"]
    if not content.strip() or len(content) > MOST_SAID:
        return f"its tool message has {len(content)} characters"
    wanted = "interrupted" if case.stop else "completed"
    if state.status != wanted:
        return f"the run is {state.status}: {state.reason}"
    return None
