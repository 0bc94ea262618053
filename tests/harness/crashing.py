"""The process that `test_crash.py` kills: one run with reads, writes, an approval, a subagent."""

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.approval import Rule, Rules
from harness.runner import Runner
from harness.scripted_model import Call, ScriptedModel
from harness.state import Message, Prices, RunState, Settings
from harness.store import Store
from harness.store.writer import Writer
from harness.tool import Tool, ToolContext, tool
from harness.tools import bundled_tools

RUN = "crashing"


def _line(messages: Sequence[Message]) -> Any:
    """The parent's script, and the child's: a child's question begins with "Helper"."""
    if str(messages[1]["content"]).startswith("Helper"):
        script: list[Any] = [Call("read_file", {"path": "errors.log"}), "a timeout"]
    else:
        script = [
            [Call("list_files"), Call("note", {"text": "one"})],
            Call("research", {"question": "Helper, what is in errors.log?"}),
            [Call("note", {"text": "two"}), Call("pay", {"text": "ten euros"})],
            "done",
        ]
    return script[sum(message["role"] == "assistant" for message in messages)]


def tools(ledger: Path, die_in: str | None = None) -> dict[str, Tool]:
    """`note` is let through by a rule, `pay` is asked about; both write to the ledger."""

    def act(text: str) -> str:
        if die_in == f"before {text}":
            os.kill(os.getpid(), signal.SIGKILL)
        with ledger.open("a") as file:
            file.write(f"{text}\n")
            file.flush()
            os.fsync(file.fileno())
        if die_in == f"after {text}":
            os.kill(os.getpid(), signal.SIGKILL)
        return f"wrote {text}"

    @tool(effect="write")
    def note(text: str, context: ToolContext) -> str:
        """Write a note."""
        assert context.idempotency_key == f"{RUN}:{context.call_id}"
        return act(text)

    @tool(effect="write")
    def pay(text: str) -> str:
        """Pay."""
        return act(text)

    return {**bundled_tools(), "note": note, "pay": pay}


def runner(store: Store, ledger: Path, die_in: str | None = None, latency: float = 0.0) -> Runner:
    return Runner(
        store,
        provider_factory=lambda _: ScriptedModel(*[_line] * 9, latency=latency),
        tools=tools(ledger, die_in),
        rules=Rules([Rule(action="allow", tool="note")]),
    )


def carry(
    path: Path,
    workspace: Path,
    ledger: Path,
    kill_at: int | None = None,
    when: str = "before",
    die_in: str | None = None,
) -> None:
    """Start the run, or go on with it; killed at the transaction `kill_at`, if it comes to that."""
    count = 0
    really = Writer._transaction

    def transaction(writer: Writer, pieces: list) -> list:
        nonlocal count
        count += 1
        if count == kill_at and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        results = really(writer, pieces)
        if count == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return results

    Writer._transaction = transaction

    async def go() -> RunState:
        async with runner(store, ledger, die_in) as carrier:
            if store.exists(RUN):
                return await carrier.resume(RUN)
            names = ("list_files", "read_file", "research", "note", "pay")
            settings = Settings(
                base_url="http://127.0.0.1:1/v1",
                model="scripted",
                workspace=str(workspace),
                tools=names,
                prices=Prices(input_per_million=2, output_per_million=12),
            )
            return await carrier.start("Do it all.", settings, run_id=RUN)

    with Store.open(path) as store:
        asyncio.run(go())


def hold(path: Path, workspace: Path, ledger: Path, gate: Path) -> None:
    """Carry the run until somebody cancels it; `gate` appears when it is in the store."""
    settings = Settings(
        base_url="http://127.0.0.1:1/v1",
        model="scripted",
        workspace=str(workspace),
        tools=("list_files",),
    )
    with Store.open(path) as store:
        carrier = runner(store, ledger, latency=60)
        start = carrier.start("t", settings, run_id=RUN, on_event=lambda _: gate.touch())
        asyncio.run(start)
