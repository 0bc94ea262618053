"""What is measured over HTTP. Every case is run in turn for every server, so that whatever else
the machine does meets all of them alike; the median of the rounds is given.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

import httpx

from uitweg.bench import work
from uitweg.bench.client import ask, ask_together
from uitweg.bench.servers import Running

Case = Callable[[httpx.AsyncClient, str, str], Awaitable[float]]
"""(client, server's root, mark that makes prompts new) to a figure."""

TOKENS_ALONE = 96
TOKENS_TOGETHER = 64
TOGETHER = 4
_marks = itertools.count(int(time.time()))


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of one case, a list a server, in rounds; empty where a server failed."""

    title: str
    unit: str
    more_is_better: bool
    rounds: dict[str, list[float]] = field(default_factory=dict)

    def median(self, server: str) -> float | None:
        """Of all rounds that gave a figure; None where none did."""
        figures = self.rounds.get(server)
        return median(figures) if figures else None


async def decode_alone(client: httpx.AsyncClient, root: str, _mark: str) -> float:
    """Tokens a second of one reply after its first token."""
    return (await ask(client, root, work.story(0, TOKENS_ALONE))).decode_rate


async def decode_together(client: httpx.AsyncClient, root: str, _mark: str) -> float:
    """Tokens a second of four replies together, from the first token of the last to begin."""
    bodies = [work.story(number, TOKENS_TOGETHER) for number in range(TOGETHER)]
    for body in bodies:
        await ask(client, root, {**body, "max_tokens": 1})
    begun = time.monotonic()
    replies = await ask_together(client, root, bodies)
    return sum(reply.tokens for reply in replies) / (time.monotonic() - begun)


async def first_turn(client: httpx.AsyncClient, root: str, mark: str) -> float:
    """Milliseconds to the first token of a prompt that was never seen."""
    return 1000 * (await ask(client, root, {**work.task(0, mark), "max_tokens": 1})).first_s


async def next_turn(client: httpx.AsyncClient, root: str, mark: str) -> float:
    """Milliseconds to the first token of a conversation's second turn."""
    await ask(client, root, work.task(1, mark))
    return 1000 * (await ask(client, root, {**work.next_turn(1, mark), "max_tokens": 1})).first_s


async def six_tasks(client: httpx.AsyncClient, root: str, _mark: str) -> float:
    """Milliseconds of a mean turn of the six tasks."""
    spent = [(await ask(client, root, body)).whole_s for body in work.turns()]
    return 1000 * sum(spent) / len(spent)


CASES: dict[str, tuple[str, str, bool, Case]] = {
    "alone": ("decode, one request", "tokens/s", True, decode_alone),
    "together": ("decode, four requests at once", "tokens/s", True, decode_together),
    "first": ("first turn, prompt never seen: first token", "ms", False, first_turn),
    "next": ("next turn of a conversation: first token", "ms", False, next_turn),
    "tasks": ("the six tasks: mean turn", "ms", False, six_tasks),
}


def measure(
    servers: Sequence[Running], names: Sequence[str], rounds: int, say: Callable[[str], None]
) -> dict[str, Measured]:
    """Run the cases of these names, `rounds` times each."""
    return asyncio.run(_measure(servers, names, rounds, say))


async def _measure(
    servers: Sequence[Running], names: Sequence[str], rounds: int, say: Callable[[str], None]
) -> dict[str, Measured]:
    results: dict[str, Measured] = {}
    # A connection each: some servers close those that were idle for a moment.
    limits = httpx.Limits(max_keepalive_connections=0)
    async with httpx.AsyncClient(timeout=600, limits=limits) as client:
        for server in servers:
            await ask(client, server.root, work.story(0, 8))
        for name in names:
            title, unit, more, case = CASES[name]
            results[name] = Measured(title, unit, more)
            for number in range(rounds):
                # The order changes every round, so that being first helps nobody.
                for server in servers[:: 1 if number % 2 else -1]:
                    mark = f"[{next(_marks)}] "
                    figures = results[name].rounds.setdefault(server.name, [])
                    try:
                        figures.append(await case(client, server.root, mark))
                    except httpx.HTTPError as error:
                        say(f"{title}: {server.name} fails: {error}")
                        continue
                    say(f"{title}, round {number + 1}: {server.name} {figures[-1]:.1f} {unit}")
    return results
