"""Any sequence of run, approve, edit, reject, cancel, kill and resume, against a simple model."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from attack.forks import Fork, shared
from attack.reference import Place, new_place, tools
from attack.tally import Tally
from harness.errors import HarnessError
from harness.runner import Runner
from harness.scripted_model import Call, ScriptedModel
from harness.state import ApprovalNeeded, Decision, InDoubt, Prices, RunState, Settings
from harness.store import Step, Store

TITLE = "Sequences of what people and crashes do"
SEQUENCES = 2000
STEPS = 12
RUN = "run"
SCRIPT = (
    Call("pay", {"item": "stamps"}),
    Call("read_file", {"path": "notes.txt"}),
    (Call("pay", {"item": "paper"}), Call("pay", {"item": "ink"})),
    "Done.",
)
FINAL = ("completed", "failed")


@dataclass(slots=True)
class Seen:
    """What the store says after something was done, or the name of the error."""

    error: str = ""
    state: RunState | None = None
    wrong: str | None = None


def attack(tally: Tally, folder: Path, long: bool) -> None:
    """Let hypothesis look for a sequence after which something is not as promised."""
    each = (SEQUENCES if long else 12) // 2
    for counts, problem in shared(_look, [each, each]):
        for _ in range(counts["sequences"] - (problem is not None)):
            tally.tried("sequences")
        if problem:
            tally.tried("sequences", problem)
        del counts["sequences"]
        said = ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))
        before = tally.rows["sequences"].note
        tally.note("sequences", f"{before}; {said}" if before else f"of two workers: {said}")


def _look(examples: int) -> tuple[dict[str, int], str | None]:
    Machine.counts = {"sequences": 0}
    options = settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    try:
        run_state_machine_as_test(Machine, settings=options)
    except Exception as error:  # noqa: BLE001 - the finding itself, with the sequence in its notes
        notes = "\n".join(getattr(error, "__notes__", ()))
        return Machine.counts, f"{type(error).__name__}: {error}\n{notes}"
    return Machine.counts, None


class Machine(RuleBasedStateMachine):
    """The model: what a person let be paid for, and whether the run has ended for good."""

    counts: dict[str, int]

    def __init__(self) -> None:
        super().__init__()
        self.place = new_place("")
        self.items: dict[str, str] = {}
        """Of each allowed call the item that may be paid for."""
        self.final = False
        self.seen = Seen()

    def teardown(self) -> None:
        self.place.remove()
        self.counts["sequences"] += 1

    def do(self, what: str, kill_at: int | None = None, **more: Any) -> Seen:
        """Do it in a process of its own, killed at a step of the journal if so wanted."""
        child = Fork(partial(_operate, self.place, what, kill_at, more))
        code = child.wait()
        name = what if code == 0 else f"{what} that was killed"
        self.counts[name] = self.counts.get(name, 0) + 1
        assert code in (0, -signal.SIGKILL), f"{what} ended with {code}"
        seen: Seen = child.result
        if code:
            child = Fork(partial(_operate, self.place, "look", None, {}))
            assert child.wait() == 0, "after the kill nothing can be read"
            seen = child.result
        assert seen.wrong is None, seen.wrong
        self.seen = seen
        return seen

    @property
    def waiting(self) -> Any:
        """What the run waits for a person with, if it does."""
        found = self.seen.state.interruption if self.seen.state else None
        return found if isinstance(found, ApprovalNeeded | InDoubt) else None

    def waits_for(self, kind: str) -> bool:
        """Whether the run waits for a person with this.

        Asked inside the rules and not as a precondition of theirs: where a kill falls depends on
        the moment, and hypothesis must not see its choices depend on that.
        """
        return self.waiting is not None and self.waiting.kind == kind

    @initialize(kill_at=st.none() | st.integers(1, 6))
    def start(self, kill_at: int | None) -> None:
        seen = self.do("start", kill_at)
        if seen.state is None:  # killed before it was recorded
            self.do("start")

    @rule()
    def resume(self) -> None:
        self._go_on(None)

    @rule(kill_at=st.integers(1, 12))
    def resume_and_be_killed(self, kill_at: int) -> None:
        self._go_on(kill_at)

    def _go_on(self, kill_at: int | None) -> None:
        seen = self.do("resume", kill_at)
        if self.final:
            assert seen.error in ("", "NotResumable"), seen.error

    @rule(kill_at=st.none() | st.integers(1, 9))
    def approve_and_resume(self, kill_at: int | None) -> None:
        if self.waits_for("approval"):
            self.decide_on_approval(edit=False, stale=False)
            self._go_on(kill_at)

    @rule(edit=st.booleans(), stale=st.booleans())
    def approve(self, edit: bool, stale: bool) -> None:
        if self.waits_for("approval"):
            self.decide_on_approval(edit=edit, stale=stale)

    def decide_on_approval(self, *, edit: bool, stale: bool) -> None:
        waiting = self.waiting
        args = {"item": "glue"} if edit else None
        digest = "0" * 64 if stale else waiting.digest
        action = "edit" if edit else "approve"
        seen = self.do("decide", action=action, call=waiting.call_id, digest=digest, args=args)
        if seen.error == "":
            assert not stale, "a decision on something else was taken"
            self.items[waiting.call_id] = "glue" if edit else waiting.args["item"]
        else:
            assert seen.error in ("DigestMismatch", "AlreadyDecided"), seen.error

    @rule()
    def reject(self) -> None:
        if not self.waits_for("approval"):
            return
        waiting = self.waiting
        seen = self.do("decide", action="reject", call=waiting.call_id, digest=waiting.digest)
        assert seen.error in ("", "AlreadyDecided"), seen.error

    @rule(abandon=st.booleans())
    def look_whether_it_happened(self, abandon: bool) -> None:
        if not self.waits_for("in_doubt"):
            return
        waiting = self.waiting
        paid = self.place.paid()[self.items[waiting.call_id]] > 0
        action = "abandon" if abandon else ("happened" if paid else "run_again")
        seen = self.do("decide", action=action, call=waiting.call_id, digest=waiting.digest)
        assert seen.error in ("", "AlreadyDecided"), seen.error

    @rule()
    def cancel(self) -> None:
        seen = self.do("cancel")
        if seen.error == "":
            assert seen.state is not None
            assert seen.state.interruption is not None
            assert seen.state.interruption.kind == "cancelled"
        else:
            assert seen.error == "NotResumable", seen.error

    @rule()
    def approve_what_does_not_wait(self) -> None:
        if self.seen.state is None or self.waiting is not None:
            return
        call_id = next(iter(self.seen.state.calls), "call_1_1")
        seen = self.do("decide", action="approve", call=call_id, digest="0" * 64)
        assert seen.error in ("NothingToDecide", "AlreadyDecided"), seen.error

    @invariant()
    def every_effect_was_allowed_and_is_there_once(self) -> None:
        for item, count in self.place.paid().items():
            callers = [call for call, bought in self.items.items() if bought == item]
            assert callers, f"{item} was paid for, and nobody allowed it"
            assert count <= len(callers), f"{item} was paid {count} times"

    @invariant()
    def an_end_is_an_end(self) -> None:
        if self.seen.state is not None:
            assert not self.final or self.seen.state.status in FINAL
            self.final = self.final or self.seen.state.status in FINAL


def _operate(place: Place, what: str, kill_at: int | None, more: dict[str, Any]) -> Seen:
    """Carry it out in this process, then look at the run."""
    if kill_at is not None:
        _kill_at_step(kill_at)
    seen = Seen()
    with Store.open(place.path) as store:
        try:
            if what != "look":
                asyncio.run(_carry_out(place, store, what, more))
        except HarnessError as error:
            seen.error = type(error).__name__
        if store.exists(RUN):
            seen.state = store.load(RUN)
            seen.wrong = _wrong(store, seen.state)
    return seen


async def _carry_out(place: Place, store: Store, what: str, more: dict[str, Any]) -> None:
    model = ScriptedModel(*SCRIPT)
    async with Runner(store, provider_factory=lambda _: model, tools=tools(place.ledger)) as runner:
        match what:
            case "start":
                await runner.start("Pay.", _settings(place), run_id=RUN)
            case "resume":
                await runner.resume(RUN)
            case "cancel":
                await asyncio.to_thread(runner.cancel, RUN, "Stop was pressed")
            case _:
                decision = Decision(
                    call_id=more["call"],
                    action=more["action"],
                    digest=more["digest"],
                    args=more.get("args"),
                    reason="because",
                )
                await runner.decide(RUN, decision)


def _settings(place: Place) -> Settings:
    return Settings(
        base_url="http://127.0.0.1:9/v1",
        model="scripted",
        workspace=str(place.workspace),
        tools=("read_file", "pay"),
        prices=Prices(input_per_million=Decimal(2), output_per_million=Decimal(12)),
    )


def _wrong(store: Store, state: RunState) -> str | None:
    """What is wrong with the run as it is in the store, whatever was done to it."""
    events = store.events(RUN)
    spent = sum((Decimal(str(e.cost_usd)) for e in events if e.type == "turn"), Decimal(0))
    asked = [c["id"] for m in state.messages for c in m.get("tool_calls") or ()]
    said = [m["tool_call_id"] for m in state.messages if m["role"] == "tool"]
    owed = [record.call_id for record in state.owed()]
    empty = any(m["role"] == "tool" and not m["content"] for m in state.messages)
    wrong = [
        ([e.seq for e in events] != list(range(1, state.last_seq + 1)), "events are missing"),
        (spent != state.usage.cost_usd, f"turns cost {spent}, the run {state.usage.cost_usd}"),
        (len(set(said)) != len(said), "a call has two tool messages"),
        (set(asked) - set(owed) != set(said), "a call has no tool message"),
        (empty, "a tool message is empty"),
        (state.status in FINAL and bool(owed), "the run has ended and owes a call"),
        (store.carrier(RUN) is not None, "somebody carries it after all have ended"),
    ]
    return next((words for is_wrong, words in wrong if is_wrong), None)


def _kill_at_step(number: int) -> None:
    """From now on this process ends itself at that step of the journal."""
    whole: Callable[[Store, Step], Future[None]] = Store.commit
    left = number

    def commit(store: Store, step: Step) -> Future[None]:
        nonlocal left
        left -= 1
        if left == 0:
            with contextlib.suppress(Exception):
                store.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(store, step)

    Store.commit = commit  # type: ignore[method-assign, assignment]  # this process is about to end
