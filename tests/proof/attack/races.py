"""Two to eight processes resume, approve and cancel the same run at the same moment."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from attack.forks import Fork, shared
from attack.reference import Place, new_place, tools
from attack.tally import Tally
from harness.errors import HarnessError
from harness.runner import Runner
from harness.scripted_model import Call, ScriptedModel
from harness.state import Decision, Prices, RunState, Settings
from harness.store import Store

TITLE = "Processes that race for one run"
RUN = "raced"
ACTIONS = ("approve and resume", "resume", "reject and resume", "cancel", "approve")


@dataclass(frozen=True, slots=True)
class Round:
    """What each process does."""

    actions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a round."""

    actions: tuple[str, ...]
    answers: tuple[str, ...]
    """For each process the ending it saw, or the name of its error."""
    paid: int
    status: str
    problem: str | None


def attack(tally: Tally, folder: Path, long: bool) -> None:
    """A run waits for an approval; all begin at once; then it is brought to its end."""
    rng = random.Random(11)
    rounds = [
        Round(tuple(rng.choice(ACTIONS) for _ in range(2 + number % 7)))
        for number in range(300 if long else 14)
    ]
    answers: Counter[str] = Counter()
    for played in shared(_play, rounds):
        what = f"{len(played.actions)} processes at once"
        detail = f"{played.actions} → {played.answers}, then {played.status}"
        tally.tried(what, played.problem and f"{played.problem}: {detail}")
        answers.update(played.answers)
    said = ", ".join(f"{count} {name}" for name, count in answers.most_common())
    tally.note("2 processes at once", f"all processes were told: {said}")


def _runner(place: Place, store: Store) -> Runner:
    model = ScriptedModel(Call("pay", {"item": "stamps"}), "Done.", latency=0.01)
    return Runner(store, provider_factory=lambda _: model, tools=tools(place.ledger))


async def _start(place: Place, store: Store) -> RunState:
    settings = Settings(
        base_url="http://127.0.0.1:9/v1",
        model="scripted",
        workspace=str(place.workspace),
        tools=("pay",),
        prices=Prices(input_per_million=1, output_per_million=1),
    )
    async with _runner(place, store) as runner:
        return await runner.start("Pay.", settings, run_id=RUN)


def _begin(place: Place) -> str:
    """Bring the run to its approval; the digest that is shown."""
    with Store.open(place.path) as store:
        state = asyncio.run(_start(place, store))
    assert state.interruption is not None
    digest: str = state.interruption.digest  # type: ignore[union-attr]  # it is an approval
    return digest


def _act(place: Place, digest: str, action: str) -> str:
    """One process's part; how it went for it."""

    async def carry_out(store: Store) -> str:
        async with _runner(place, store) as runner:
            if action == "cancel":
                outcome = await asyncio.to_thread(runner.cancel, RUN, "somebody pressed Stop")
                return f"cancel: {outcome}"
            if action != "resume":
                kind = "reject" if action.startswith("reject") else "approve"
                decision = Decision(call_id="call_1_1", action=kind, digest=digest, reason="no")
                await runner.decide(RUN, decision)
            if action == "approve":
                return "decided"
            return (await runner.resume(RUN)).status

    try:
        with Store.open(place.path) as store:
            return asyncio.run(carry_out(store))
    except HarnessError as error:
        return type(error).__name__ if str(error) else "an error without a word"


def _play(round_: Round) -> Played:
    place = new_place("")
    try:
        begun = Fork(partial(_begin, place))
        begun.wait()
        children = [
            Fork(partial(_act, place, begun.result, action), waits=True)
            for action in round_.actions
        ]
        for child in children:
            child.go()
        codes = [child.wait() for child in children]
        answers = tuple(str(child.result) for child in children)
        after = Fork(partial(_settle, place, begun.result))
        code = after.wait()
        status, wrong = after.result if code == 0 else ("unknown", f"the end took code {code}")
        paid = place.paid()["stamps"]
        problem = wrong or _judge(round_.actions, codes, answers, paid)
        return Played(round_.actions, answers, paid, status, problem)
    finally:
        place.remove()


def _judge(
    actions: tuple[str, ...], codes: list[int], answers: tuple[str, ...], paid: int
) -> str | None:
    if any(codes):
        return f"a process ended with {codes}"
    if "an error without a word" in answers:
        return "a process was not told why"
    if paid > 1:
        return f"it was paid {paid} times"
    if paid and not any(action.startswith("approve") for action in actions):
        return "it was paid, and nobody had approved"
    decided = [a for a, b in zip(actions, answers, strict=True) if a[:7] in ("approve", "reject ")]
    won = [
        a
        for a, b in zip(actions, answers, strict=True)
        if a in decided and b in ("decided", "completed", "interrupted")
    ]
    if len(won) > 1:
        return "two were told that theirs was the decision"
    return None


def _settle(place: Place, digest: str) -> tuple[str, str | None]:
    """Resume what waits to go on; the run's status, and what is wrong with its transcript."""

    async def go_on(store: Store) -> RunState:
        state = store.load(RUN)
        if state.status == "running" or state.decisions:
            async with _runner(place, store) as runner:
                state = await runner.resume(RUN)
        return state

    with Store.open(place.path) as store:
        state = asyncio.run(go_on(store))
        events = store.events(RUN)
        carrier = store.carrier(RUN)
    wrong = [
        ([e.seq for e in events] != list(range(1, len(events) + 1)), "events are missing"),
        (carrier is not None, f"{carrier} still carries it"),
        (state.status == "running", "it is running, and nobody carries it"),
        (state.status == "completed" and len(state.owed()) > 0, "a call was never answered"),
        (sum(e.type == "approval_decided" for e in events) > 1, "two decisions are recorded"),
        (place.ledger.exists() and state.tool_runs != 1, "the run knows of no payment"),
    ]
    return state.status, next((words for is_wrong, words in wrong if is_wrong), None)
