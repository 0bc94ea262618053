"""The process of a run is killed, at every moment that can be named and at random ones."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from attack import straced
from attack.forks import Fork, shared
from attack.provider import provider
from attack.reference import Ending, Place, carry, examine, new_place
from attack.tally import Tally
from harness.store import Step, Store

TITLE = "Kill points"
RANDOM_KILLS = 500
EVERY_WRITE = 3
"""Of the writes every third is tried, of all other calls each one: between two flushes one write
leaves the file like the next, since what was written before a SIGKILL stays written."""


@dataclass(frozen=True, slots=True)
class Kill:
    """One way to be killed, perhaps twice: the second time during the recovery."""

    what: str
    url: str
    calls: Sequence[tuple[str, int]] = ()
    """System calls and which of them, for this kill and the one after it."""
    step: int = 0
    """Which step of the journal; negative: after it is on the disk instead of before."""
    moments: Sequence[float] = ()
    """Seconds after which it is killed, each time it was begun."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run that was killed."""

    kill: Kill
    ending: Ending | None
    killed: int
    problem: str | None


def attack(tally: Tally, folder: Path, long: bool) -> None:
    """Kill, resume, and hold the end against the undisturbed run's."""
    with provider() as url:
        place = new_place(url)
        started = time.monotonic()
        Fork(partial(carry, place)).wait()
        seconds = time.monotonic() - started
        undisturbed, problem = examine(place)
        tally.tried("the undisturbed run", problem)
        place.remove()
        kills = [
            *_at_steps(url, long),
            *_at_random(url, long, seconds),
            *_at_calls(url, long, tally),
        ]
        _judge(tally, undisturbed, shared(_suffer, kills))


def _judge(tally: Tally, undisturbed: Ending, outcomes: Iterable[Outcome]) -> None:
    doubts = changed = total = 0
    for outcome in outcomes:
        problem, ending = outcome.problem, outcome.ending
        total += 1
        if problem is None and ending is not None:
            doubts += ending.doubts > 0
            same = ending.cost == undisturbed.cost
            changed += not same
            # What a person says about a call in doubt is in the transcript, and counts.
            if not same and ending.doubts == 0:
                problem = f"it cost {ending.cost} instead of {undisturbed.cost}"
            elif (ending.turns, ending.tool_runs) != (undisturbed.turns, undisturbed.tool_runs):
                problem = f"{ending.turns} turns and {ending.tool_runs} tool runs"
        tally.tried(outcome.kill.what, problem and f"{problem} ({_where(outcome.kill)})")
        if outcome.killed == 0:
            tally.note(outcome.kill.what, "some ended before they were killed")
    tally.note(
        "the undisturbed run",
        f"of the {total} killed runs, {doubts} asked a person about a write in doubt; "
        f"{total - changed} cost the same to the cent, the others more by the person's words",
    )


def _where(kill: Kill) -> str:
    return f"{kill.calls or kill.step or kill.moments}"


def _at_steps(url: str, long: bool) -> list[Kill]:
    """Before and after each step of the journal."""
    steps = range(1, 60) if long else range(2, 40, 9)
    before = [Kill("SIGKILL before a step of the journal", url, step=n) for n in steps]
    after = [Kill("SIGKILL after a step of the journal", url, step=-n) for n in steps]
    return before + after


def _at_random(url: str, long: bool, seconds: float) -> list[Kill]:
    """At any moment of the `seconds` that the undisturbed run took."""
    rng = random.Random(7)
    kills = [
        Kill("SIGKILL at a random moment", url, moments=[rng.uniform(0, seconds)])
        for _ in range(RANDOM_KILLS if long else 10)
    ]
    again = [
        Kill(
            "SIGKILL at three random moments, two of them in the recovery",
            url,
            moments=[rng.uniform(0, seconds / 2) for _ in range(3)],
        )
        for _ in range(100 if long else 3)
    ]
    return kills + again


def _at_calls(url: str, long: bool, tally: Tally) -> list[Kill]:
    """At each system call that changes a file, and at those of the recovery after it."""
    what = "SIGKILL at {} number n"
    if reason := straced.why_not():
        tally.note(what.format("a system call"), reason)
        return []
    place = new_place(url)
    child = Fork(partial(carry, place), waits=True)
    counts = straced.counted(child, place.folder / "calls")
    place.remove()
    kills: list[Kill] = []
    for call, count in counts.items():
        each = EVERY_WRITE if call == "pwrite64" else 1
        numbers = range(1, count + 1, each if long else max(1, count // 3))
        kills += [Kill(what.format(call), url, calls=[(call, n)]) for n in numbers]
    syncs = counts["fdatasync"]
    firsts = range(1, syncs, max(1, syncs // (4 if long else 1)))
    kills += [
        Kill(f"SIGKILL at an fdatasync, and at {call} number n of the recovery", url,
             calls=[("fdatasync", first), (call, second)])
        for first in firsts
        for call, most in (("fdatasync", 12), ("pwrite64", 24), ("ftruncate", 4))
        for second in range(1, most, 1 if long else 12)
    ]  # fmt: skip
    return kills


def _suffer(kill: Kill) -> Outcome:
    """Be killed as `kill` says, go on to the end, and see what is left."""
    place = new_place(kill.url)
    killed = 0
    try:
        for begin in _beginnings(kill, place):
            killed += begin() == -signal.SIGKILL
        code = Fork(partial(carry, place)).wait()
        if code != 0:
            return Outcome(kill, None, killed, f"the recovery ended with {code}")
        ending, problem = examine(place)
        return Outcome(kill, ending, killed, problem)
    finally:
        place.remove()


def _beginnings(kill: Kill, place: Place) -> list[Callable[[], int]]:
    """What is begun and killed, one after the other."""
    if kill.calls:
        return [partial(_killed_at_call, place, *point) for point in kill.calls]
    if kill.moments:
        return [partial(_killed_after, place, seconds) for seconds in kill.moments]
    return [Fork(partial(_die_at_step, place, kill.step)).wait]


def _killed_at_call(place: Place, call: str, number: int) -> int:
    child = Fork(partial(carry, place), waits=True)
    log = place.folder / "strace"
    return straced.disturbed(child, log, call, f"signal=KILL:when={number}")


def _killed_after(place: Place, seconds: float) -> int:
    child = Fork(partial(carry, place))
    time.sleep(seconds)
    child.kill()
    return child.wait()


def _die_at_step(place: Place, number: int) -> None:
    """Carry the run in this process, which ends itself at one step."""
    whole = Store.commit
    taken = 0

    def commit(store: Store, step: Step) -> Future[None]:
        nonlocal taken
        taken += 1
        if taken == number:
            os.kill(os.getpid(), signal.SIGKILL)
        future = whole(store, step)
        if taken == -number:
            future.result()
            os.kill(os.getpid(), signal.SIGKILL)
        return future

    Store.commit = commit  # type: ignore[method-assign, assignment]  # this process is about to end
    carry(place)
