"""A real second process, really killed, at every transaction and inside the tools.

An independent ledger counts what the writes did: each at most once, or in doubt
and said so; the final cost is that of a run that nothing disturbed.
"""

import asyncio
import contextlib
import importlib
import multiprocessing
import signal
import time
from pathlib import Path

import pytest

from harness.errors import AlreadyCarried
from harness.state import ApprovalNeeded, Decision, InDoubt, RunState
from harness.store import Store

WRITES = ["one", "two", "ten euros"]


class World:
    """One run, its ledger, and processes that carry it."""

    def __init__(self, folder: Path, workspace: Path, module) -> None:
        self.path = folder / "data" / "runs.db"
        self.ledger = folder / "ledger"
        self.workspace = workspace
        self.module = module
        self.doubts = 0
        self.happened = 0
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload(["harness.runner", "harness.scripted_model"])

    def carry(self, *more) -> int | None:
        """Start or resume the run in another process; its exit code."""
        process = self.begin(*more)
        process.join()
        return process.exitcode

    def begin(self, *more):
        arguments = (self.path, self.workspace, self.ledger, *more)
        process = self._processes.Process(target=self.module.carry, args=arguments)
        process.start()
        return process

    def state(self) -> RunState | None:
        with Store.open(self.path) as store:
            return store.load(self.module.RUN) if store.exists(self.module.RUN) else None

    def done(self) -> list[str]:
        return self.ledger.read_text().splitlines() if self.ledger.exists() else []

    def to_the_end(self) -> RunState:
        """Be the person: approve what is asked, and say of a doubt what the ledger says."""
        for _ in range(20):
            state = self.state()
            if state is not None and state.status == "completed":
                return state
            waiting = state and state.interruption
            asked = isinstance(waiting, ApprovalNeeded | InDoubt)
            if asked and waiting.call_id not in state.decisions:
                self.decide(state)
            assert self.carry() == 0
        raise AssertionError("it does not end")

    def decide(self, state: RunState) -> None:
        waiting = state.interruption
        action = "approve"
        if isinstance(waiting, InDoubt):
            self.doubts += 1
            action = "happened" if waiting.args["text"] in self.done() else "run_again"
            self.happened += action == "happened"
        decision = Decision(call_id=waiting.call_id, action=action, digest=waiting.digest)
        with Store.open(self.path) as store:
            asyncio.run(self.module.runner(store, self.ledger).decide(state.run_id, decision))


@pytest.fixture
def world(tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    module = importlib.import_module("crashing")

    def make(name: str) -> World:
        return World(tmp_path / name, workspace, module)

    return make


def check(state: RunState, world: World, undisturbed: RunState) -> None:
    assert state.status == "completed"
    assert world.done() == WRITES
    if not world.happened:  # else the model has read of it, which is longer
        assert state.usage == undisturbed.usage
    assert state.turns == undisturbed.turns
    assert state.tool_runs == undisturbed.tool_runs
    with Store.open(world.path) as store:
        events = store.events(state.run_id)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        (child,) = store.runs(parent=state.run_id)
        assert child.status == "completed"


def test_h9_killed_at_every_transaction_and_resumed(world):
    reference = world("reference")
    undisturbed = reference.to_the_end()
    check(undisturbed, reference, undisturbed)
    assert reference.doubts == 0
    kills = 0
    for at in range(1, 40):
        disturbed = world(f"kill-{at}")
        if disturbed.carry(at, ("before", "after")[at % 2]) != -signal.SIGKILL:
            break
        kills += 1
        check(disturbed.to_the_end(), disturbed, undisturbed)
    assert kills >= 4


@pytest.mark.parametrize("text", WRITES)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_h9_a_write_that_was_cut_off_goes_to_a_person(world, moment, text):
    undisturbed = world("reference").to_the_end()
    cut = world("cut")
    if text == "ten euros":
        assert cut.carry() == 0
        cut.decide(cut.state())
    assert cut.carry(None, "before", f"{moment} {text}") == -signal.SIGKILL
    state = cut.state()
    assert state.status == "running"
    assert cut.carry() == 0
    state = cut.state()
    assert isinstance(state.interruption, InDoubt)
    assert "not known" in state.reason
    # Asked again as long as nobody says.
    assert cut.carry() == 0
    assert cut.state().interruption == state.interruption
    ended = cut.to_the_end()
    assert cut.doubts == 1
    check(ended, cut, undisturbed)


def test_a_person_may_leave_a_write_in_doubt_alone(world):
    cut = world("cut")
    cut.carry(None, "before", "after one")
    cut.carry()
    state = cut.state()
    decision = Decision(
        call_id=state.interruption.call_id, action="abandon", digest=state.interruption.digest
    )
    with Store.open(cut.path) as store:
        asyncio.run(cut.module.runner(store, cut.ledger).decide(state.run_id, decision))
    ended = cut.to_the_end()
    call = ended.calls[state.interruption.call_id]
    assert call.outcome == "unknown"
    told = [m["content"] for m in ended.messages if m.get("tool_call_id") == call.call_id]
    assert "outcome is unknown" in told[0]
    assert cut.done() == WRITES


def test_killed_again_and_again_during_recovery(world):
    undisturbed = world("reference").to_the_end()
    unlucky = world("unlucky")
    for at in (2, 1, 2, 1, 3, 2, 3):
        state = unlucky.state()
        if state and state.interruption and state.interruption.call_id not in state.decisions:
            unlucky.decide(state)
        unlucky.carry(at, "after")
    check(unlucky.to_the_end(), unlucky, undisturbed)


def test_h10_the_lease_of_a_killed_process_is_free(world):
    killed = world("killed")
    with held(killed) as process:
        process.kill()
        process.join()
        with Store.open(killed.path) as store:
            # Its lock file is still there; that it is dead is the kernel's word.
            assert list(killed.path.parent.rglob("*.lock"))
            assert store.carrier(killed.module.RUN) is None
            carrier = killed.module.runner(store, killed.ledger)
            assert asyncio.run(carrier.resume(killed.module.RUN)).status == "completed"


def test_two_processes_that_resume_at_once_do_it_once(world):
    pair = world("pair")
    pair.carry(4, "after")
    before = pair.state()
    assert before.status == "running"
    processes = [pair.begin() for _ in range(4)]
    for process in processes:
        process.join()
    codes = [process.exitcode for process in processes]
    assert codes.count(0) >= 1
    assert set(codes) <= {0, 1}
    assert len(pair.done()) == len(set(pair.done()))
    assert pair.to_the_end().status == "completed"
    assert pair.done() == WRITES


@contextlib.contextmanager
def held(world: World):
    """A process that carries the run and waits for its model; killed at the end."""
    gate = world.path.parent / "gate"
    process = multiprocessing.get_context("forkserver").Process(
        target=world.module.hold, args=(world.path, world.workspace, world.ledger, gate)
    )
    process.start()
    try:
        while not gate.exists():
            assert process.is_alive()
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.join()


async def test_h10_a_run_carried_elsewhere_is_refused_here_and_can_be_stopped(world):
    other = world("other")
    with held(other) as process, Store.open(other.path) as store:
        carrier = other.module.runner(store, other.ledger)
        with pytest.raises(AlreadyCarried, match=f"process {process.pid}"):
            await carrier.resume(other.module.RUN)
        assert store.carrier(other.module.RUN) == f"process {process.pid}"
        assert carrier.cancel(other.module.RUN, "from outside") == "asked"
        process.join()
        assert store.load(other.module.RUN).interruption.reason == "from outside"
        assert store.carrier(other.module.RUN) is None
        assert (await carrier.resume(other.module.RUN)).status == "completed"
