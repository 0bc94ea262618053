"""The figures that the machine decides: what the harness adds, and what a slow provider does."""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import Any

from harness.events import Event, RunStopped, Turn
from harness.figures.lab import WHICH_FILE, Lab
from harness.figures.tokens import Figures
from harness.figures.tools import plain_tools
from harness.runner import Runner

LATENCIES_MS = (0, 50, 200)
RUNS = 15


async def overhead(lab: Lab) -> Figures:
    """Three turns and two tool runs at no provider latency: the median of `RUNS` runs.

    `whole_ms` is everything, the scripted provider's own work over HTTP and the store included;
    `harness_ms` is what is left without the waiting for replies.
    """
    async with lab.runner(plain_tools()) as runner:
        for _ in range(3):  # imports, connections and caches
            await _timed(lab, runner, "plan")
        times = [await _timed(lab, runner, "plan") for _ in range(RUNS)]
    return _medians(times)


async def latency(lab: Lab) -> list[Figures]:
    """The same run behind a provider that takes its time: each turn pays for it."""
    rows = []
    async with lab.runner(plain_tools()) as runner:
        for latency_ms in LATENCIES_MS:
            model = f"plan?first_token_ms={latency_ms}"
            times = [await _timed(lab, runner, model) for _ in range(3)]
            rows.append({"latency_ms": latency_ms, **_medians(times)})
    return rows


async def _timed(lab: Lab, runner: Runner, model: str) -> dict[str, Any]:
    settings = lab.settings(model, plain_tools())
    begun = time.perf_counter()
    state = await runner.start(WHICH_FILE, settings)
    whole = (time.perf_counter() - begun) * 1000
    # Read afterwards: a run that somebody follows waits for the disk before it tells its ending.
    events = await asyncio.to_thread(_all_events, lab, state.run_id)
    waited = sum(event.ms for event in events if isinstance(event, Turn))
    return {"whole_ms": whole, "harness_ms": whole - waited}


def _all_events(lab: Lab, run_id: str) -> list[Event]:
    """The run's events, once the last of them is on the disk."""
    while True:
        events = lab.store.events(run_id)
        if events and isinstance(events[-1], RunStopped):
            return events
        time.sleep(0.005)


def _medians(times: list[dict[str, Any]]) -> Figures:
    return {name: statistics.median(row[name] for row in times) for name in times[0]}
