"""The loop: one run, carried from wherever it is to its ending.

    stop?  →  drain what the transcript owes  →  ask the model

A reply without calls is the answer. Limits come first, before anything is spent.
Then the calls of the last reply that have no tool message yet are settled, one by
one. Only when nothing is owed is the model asked. So a run that was approved,
cancelled, or killed goes on by the same path as one that just began.
"""

from __future__ import annotations

from harness import ask, calls
from harness.carrier import Carrier
from harness.endings import cancelled
from harness.guidance import Answer, Calls
from harness.state import CallRecord, RunState
from harness.stop import Stop, first_stop


async def carry(run: Carrier) -> RunState:
    """Carry the run to its ending and return it as it is then."""
    while run.state.status == "running":
        await step(run)
    return run.state


async def step(run: Carrier) -> None:
    """Do the next thing."""
    last = run.state.messages[-1]
    if last["role"] == "assistant" and "tool_calls" not in last:
        return await complete(run, Answer(last["content"]))
    if run.cancel.cancelled:
        return await run.finish(cancelled(run.cancel.reason or "no reason given"))
    run.journal.tick()
    if stop := first_stop(run.state, run.stop_conditions):
        return await end(run, stop)
    if owed := run.state.owed():
        return await drain(run, owed[0])
    return await turn(run)


async def drain(run: Carrier, record: CallRecord) -> None:
    """Settle one call; the run stops at one that has to wait for a person."""
    if stop := await calls.settle(run, record):
        await run.finish(stop)


async def turn(run: Carrier) -> None:
    """Ask the model, unless a policy of the run has another move."""
    for policy in run.policies:
        move = await policy.before_ask(run)
        if isinstance(move, Answer):
            return await complete(run, move)
        if isinstance(move, Calls):
            return ask.propose(run, policy.name, move)
        if run.cancel.cancelled:
            return None
    if stop := await ask.ask(run):
        await end(run, stop)
    return None


async def complete(run: Carrier, answer: Answer) -> None:
    """The run has its answer. Policies may mark or replace what the model said."""
    for policy in run.policies:
        answer = await policy.on_answer(run, answer) or answer
    if answer.from_evidence:
        run.journal.stage(messages=[{"role": "assistant", "content": answer.text}])
    how = "It answered from evidence." if answer.from_evidence else "It answered."
    await run.finish(
        Stop("completed", how),
        answer.text,
        answered_from_evidence=answer.from_evidence,
        unsupported=answer.unsupported,
    )


async def end(run: Carrier, stop: Stop) -> None:
    """The run stops without an answer, unless a policy of it still finds one."""
    for policy in run.policies:
        if answer := await policy.before_stop(run, stop):
            return await complete(run, answer)
    return await run.finish(stop)
