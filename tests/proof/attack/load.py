"""Sixty-four runs at once against the scripted provider: none lost, memory and files flat."""

from __future__ import annotations

import asyncio
import itertools
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from attack.provider import provider
from attack.tally import Tally
from harness.demo import copy_demo
from harness.events import Event
from harness.runner import Runner
from harness.state import Limits, Settings
from harness.store import Store

TITLE = "64 runs at once"
AT_ONCE = 64
SECONDS = 300.0
SMALL_SECONDS = 4.0
MODELS = {
    "plan": "completed", "recover": "completed", "repeat": "completed", "research": "completed",
    "destructive": "interrupted", "runaway": "max_turns_exceeded",
}  # fmt: skip
"""Scenarios, and how a run of each ends here."""
GROWTH = 1.3
"""The memory of the last quarter of the time may be so many times that of the second."""


def attack(tally: Tally, folder: Path, long: bool) -> None:
    """Each of the 64 begins a new run as soon as its last one has ended."""
    log = folder / "server.log"
    with provider(log) as url:
        asyncio.run(_carry(tally, folder, url, SECONDS if long else SMALL_SECONDS, long))


async def _carry(tally: Tally, folder: Path, url: str, seconds: float, long: bool) -> None:
    ended: dict[str, str] = {}
    steps: list[float] = []
    workspace = copy_demo(folder / "files", archive_seconds=None)
    numbers = itertools.count()
    with Store.open(folder / "runs.db") as store:
        async with Runner(store) as runner:
            until = time.monotonic() + seconds
            sampling = asyncio.create_task(_sample(seconds / 60))

            async def keep_busy() -> None:
                while time.monotonic() < until:
                    number = next(numbers)
                    model = list(MODELS)[number % len(MODELS)]
                    run_id = f"{model}-{number}"
                    settings = _settings(url, workspace, model)
                    state = await runner.start(
                        "Look.", settings, run_id=run_id, on_event=_timing(run_id, steps)
                    )
                    ended[run_id] = state.status

            await asyncio.gather(*(keep_busy() for _ in range(AT_ONCE)))
            sampling.cancel()
            samples = await sampling
        _judge(tally, store, ended, steps)
    if long:
        _flat(tally, "memory of the harness, in MB", [memory for memory, _ in samples])
        _flat(tally, "open files of the harness", [float(files) for _, files in samples])


def _settings(url: str, workspace: Path, model: str) -> Settings:
    tools = ("list_files", "read_file", "delete_file", *(["research"] * (model == "research")))
    return Settings(
        base_url=url, model=model, workspace=str(workspace), tools=tools, limits=Limits(max_turns=6)
    )


def _timing(run_id: str, steps: list[float]) -> Callable[[Event], None]:
    """Notes how long each step takes: from one reply that is recorded to the next."""
    last = time.monotonic()

    def on_event(event: Event) -> None:
        nonlocal last
        if event.run_id == run_id and event.type == "turn":
            now = time.monotonic()
            steps.append(now - last)
            last = now

    return on_event


async def _sample(every: float) -> list[tuple[float, int]]:
    """Memory in MB and open files of this process, until cancelled."""
    samples: list[tuple[float, int]] = []
    page = os.sysconf("SC_PAGE_SIZE")
    try:
        while Path("/proc/self/statm").exists():
            resident = int(Path("/proc/self/statm").read_text().split()[1]) * page
            samples.append((resident / 1e6, len(list(Path("/proc/self/fd").iterdir()))))
            await asyncio.sleep(every)
    except asyncio.CancelledError:
        pass
    return samples


def _judge(tally: Tally, store: Store, ended: dict[str, str], steps: list[float]) -> None:
    """Every run is in the store, whole, with the ending that was told."""
    kinds: Counter[str] = Counter()
    for run_id, told in ended.items():
        state = store.load(run_id)
        numbers = [event.seq for event in store.events(run_id)]
        wanted = MODELS[run_id.partition("-")[0]]
        problem = None
        if (state.status, told) != (wanted, wanted):
            problem = f"{run_id} is {state.status}, told was {told}"
        elif numbers != list(range(1, state.last_seq + 1)):
            problem = f"{run_id} lacks events"
        kinds[state.status] += 1
        tally.tried("runs, none lost", problem)
    ordered = sorted(steps)
    p50, p95 = ordered[len(ordered) // 2], ordered[len(ordered) * 95 // 100]
    said = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    tally.note(
        "runs, none lost",
        f"{said}; {len(steps):,} steps, median {p50 * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms",
    )


def _flat(tally: Tally, what: str, samples: list[float]) -> None:
    """Nothing grows: the last quarter of the time against the second."""
    if len(samples) < 8:
        tally.note(what, "cannot be read on this system")
        return
    quarter = len(samples) // 4
    early = statistics.median(samples[quarter : 2 * quarter])
    late = statistics.median(samples[-quarter:])
    grown = f"it grew from {early:.0f} to {late:.0f}" if late > early * GROWTH + 10 else None
    tally.tried(what, grown)
    tally.note(
        what, f"median {early:.0f} in the second quarter of the time, {late:.0f} in the last"
    )
