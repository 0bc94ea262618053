"""The run that is attacked, the person who decides its calls, and what must hold at its end.

Its writes go to a ledger outside the workspace, a line each, which nothing else reads or
writes: it counts what really happened, whatever the store says.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated

from attack.provider import ANSWER, MODEL
from harness.approval import Rule, Rules
from harness.demo import copy_demo
from harness.errors import AlreadyDecided
from harness.events import Turn
from harness.runner import Runner
from harness.scripted_model import Call, ScriptedModel
from harness.state import (
    ApprovalNeeded,
    Decision,
    DecisionAction,
    InDoubt,
    Prices,
    RunState,
    Settings,
)
from harness.store import Store
from harness.tool import Tool, tool
from harness.tools import bundled_tools

RUN = "reference"
EARLIER = "earlier"
ITEMS = ("stamps", "paper", "ink")
TOOLS = ("list_files", "read_file", "delete_file", "research", "pay")
DELETED = "access.log"
RULES = Rules([Rule(action="allow", tool="pay", args={"item": "stamps"})])
MOST_STOPS = 30


@dataclass(frozen=True, slots=True)
class Place:
    """Where one run has its things."""

    folder: Path
    url: str

    @property
    def path(self) -> Path:
        return self.folder / "data" / "runs.db"

    @property
    def workspace(self) -> Path:
        return self.folder / "files"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger"

    def paid(self) -> Counter[str]:
        """What the ledger says: how often each item was paid for."""
        return Counter(self.ledger.read_text().split()) if self.ledger.exists() else Counter()

    def prepare(self) -> Place:
        copy_demo(self.workspace, archive_seconds=None)
        return self

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def settings(self) -> Settings:
        return Settings(
            base_url=self.url,
            model=MODEL,
            workspace=str(self.workspace),
            tools=TOOLS,
            prices=Prices(input_per_million=Decimal(2), output_per_million=Decimal(12)),
        )


def earlier_run(place: Place) -> None:
    """Another run in the same store, that ended before: it must stay readable."""

    async def all_of_it() -> None:
        model = ScriptedModel(Call("read_file", {"path": "notes.txt"}), "All is well.")
        async with Runner(store, provider_factory=lambda _: model) as runner:
            settings = place.settings().model_copy(update={"tools": ("read_file",)})
            await runner.start("Look at the notes.", settings, run_id=EARLIER)

    with Store.open(place.path) as store:
        asyncio.run(all_of_it())


MEMORY = Path("/dev/shm")


def new_place(url: str) -> Place:
    """A place for one run. A SIGKILL loses nothing that was written, so memory will do."""
    parent = MEMORY if os.access(MEMORY, os.W_OK) else None
    return Place(Path(tempfile.mkdtemp(prefix="proof-", dir=parent)), url).prepare()


def tools(ledger: Path) -> dict[str, Tool]:
    """The bundled tools, and one whose effect can be counted."""

    # Async, so that all its effects come from one thread: strace counts each thread apart.
    @tool(effect="write")
    async def pay(item: Annotated[str, "What to pay for."]) -> str:
        """Pay for one item."""
        line = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(line, f"{item}\n".encode())
            os.fsync(line)
        finally:
            os.close(line)
        return f"paid for {item}"

    return {**bundled_tools(), "pay": pay}


def carry(place: Place) -> RunState:
    """Start the run, or go on with it, and decide as a person would, until it has ended."""
    with Store.open(place.path) as store:
        return asyncio.run(carry_in(place, store))


async def carry_in(place: Place, store: Store) -> RunState:
    """The same in a store that is open."""
    async with Runner(store, tools=tools(place.ledger), rules=RULES) as runner:
        if not store.exists(RUN):
            state = await runner.start("Do all of it.", place.settings(), run_id=RUN)
        else:
            state = store.load(RUN)
        for _ in range(MOST_STOPS):
            if state.status not in ("running", "interrupted"):
                return state
            waiting = state.interruption
            if isinstance(waiting, ApprovalNeeded | InDoubt):
                await _decide(runner, place, waiting)
            state = await runner.resume(RUN)
    raise AssertionError(f"it stopped {MOST_STOPS} times, at last: {state.reason}")


async def _decide(runner: Runner, place: Place, waiting: ApprovalNeeded | InDoubt) -> None:
    action: DecisionAction = "approve"
    if isinstance(waiting, InDoubt):
        action = "happened" if _took_effect(place, waiting) else "run_again"
    decision = Decision(call_id=waiting.call_id, action=action, digest=waiting.digest)
    try:
        await runner.decide(RUN, decision)
    except AlreadyDecided:  # before the process was killed
        return


def _took_effect(place: Place, doubt: InDoubt) -> bool:
    """A person looks whether it happened: in the ledger, or in the folder."""
    if doubt.tool_name == "pay":
        return place.paid()[doubt.args["item"]] > 0
    return not (place.workspace / DELETED).exists()


@dataclass(frozen=True, slots=True)
class Ending:
    """What is held against the undisturbed run."""

    cost: Decimal | None
    turns: int
    tool_runs: int
    doubts: int
    events: int


def examine(place: Place) -> tuple[Ending, str | None]:
    """The run as it is at its end, and what is wrong with it, if anything is."""
    with Store.open(place.path) as store:
        state = store.load(RUN)
        events = store.events(RUN)
        told = [json.loads(line) for line in store.event_lines(RUN)]
        children = [store.load(run.run_id) for run in store.runs(parent=RUN)]
    doubts = sum(
        event["type"] == "run_stopped" and (event["interruption"] or {}).get("kind") == "in_doubt"
        for event in told
    )
    turns = [event for event in events if isinstance(event, Turn)]
    spent = sum((Decimal(str(event.cost_usd)) for event in turns), Decimal(0))
    spent += sum((child.usage.cost_usd or Decimal(0) for child in children), Decimal(0))
    ending = Ending(state.usage.cost_usd, state.turns, state.tool_runs, doubts, len(events))
    paid = place.paid()
    wrong = [
        (state.status != "completed" or state.answer != ANSWER, f"it is {state.status}"),
        (paid != Counter(ITEMS), f"the ledger says {dict(paid)}"),
        ((place.workspace / DELETED).exists(), f"{DELETED} is still there"),
        ([e.seq for e in events] != list(range(1, state.last_seq + 1)), "events are missing"),
        (spent != state.usage.cost_usd, f"turns cost {spent}, the run {state.usage.cost_usd}"),
        (len(children) != 1 or children[0].status != "completed", "the helper's run is not one"),
        (not _answered(state), "a call has no tool message, or has two"),
    ]
    return ending, next((words for is_wrong, words in wrong if is_wrong), None)


def _answered(state: RunState) -> bool:
    asked = [call["id"] for m in state.messages for call in m.get("tool_calls") or ()]
    said = [m["tool_call_id"] for m in state.messages if m["role"] == "tool"]
    return sorted(asked) == sorted(said) and len(set(said)) == len(said)
