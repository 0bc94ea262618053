"""What the harness adds to three turns, beside the openai-agents SDK on the same endpoint.

    pip install --target /tmp/peer openai-agents
    PYTHONPATH=/tmp/peer .venv/bin/python scripts/overhead.py [--runs 60] [--folder DIR] [--json]

Both carry the scripted model's `plan` (three turns, two tool runs, no latency)
in this process, by turns, over HTTP, with tools that do the same. Ours includes
its record: every step in SQLite, the ending flushed to the disk under DIR before
a run counts as done. The SDK records nothing and its tracing is off. The scripted
server's own work is in both times. `cpu` is this process's own work, which a busy
machine does not change.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from harness.demo import copy_demo
from harness.runner import Runner
from harness.state import Prices, Settings
from harness.store import Store

TASK = "Which file mentions a timeout?"
ANSWER = "errors.log mentions a timeout: worker 7 timed out after 30000 ms."
WARM_UP = 5


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--folder", type=Path, default=None, help="where the record is written")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        port = free_port()
        server = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "uitweg", "serve", "--scripted", "--port", str(port)],
            stdout=subprocess.DEVNULL,
        )
        try:
            wait_for(f"http://127.0.0.1:{port}/health")
            base_url = f"http://127.0.0.1:{port}/v1"
            figures = asyncio.run(measure(base_url, Path(folder), options.runs))
        finally:
            server.terminate()
            server.wait()
    if options.json:
        sys.stdout.write(json.dumps(figures) + "\n")
        return
    for name, value in figures.items():
        sys.stdout.write(f"{name:28} {value:8.3f}\n")


async def measure(base_url: str, folder: Path, runs: int) -> dict[str, float]:
    """Medians in milliseconds, and ratios."""
    files = copy_demo(folder / "files")
    with Store.open(folder / "runs.db") as store:
        async with Runner(store) as runner:
            ours = our_run(runner, base_url, files)
            kinds = {"uitweg": ours, "peer": peer_run(base_url, files)}
            times: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
            for number in range(WARM_UP + runs):
                for name, once in kinds.items():
                    spent = await timed(once)
                    if number >= WARM_UP:
                        times[name].append(spent)
            begun = time.perf_counter()
            await asyncio.gather(*(ours() for _ in range(100)))
            together = (time.perf_counter() - begun) * 1000
    wall = {name: statistics.median(ms for ms, _ in spent) for name, spent in times.items()}
    cpu = {name: statistics.median(ms for _, ms in spent) for name, spent in times.items()}
    return {
        **{f"{name}_ms": value for name, value in wall.items()},
        "ratio": wall["uitweg"] / wall["peer"],
        **{f"{name}_cpu_ms": value for name, value in cpu.items()},
        "cpu_ratio": cpu["uitweg"] / cpu["peer"],
        "uitweg_ms_of_100_at_once": together / 100,
        "one_flush_of_the_disk_ms": flush_ms(folder),
    }


def our_run(runner: Runner, base_url: str, files: Path) -> Callable[[], Awaitable[None]]:
    """One run of ours, recorded."""
    settings = Settings(
        base_url=base_url,
        model="plan",
        workspace=str(files),
        tools=("list_files", "read_file"),
        prices=Prices(input_per_million=2, output_per_million=12),
    )

    async def once() -> None:
        state = await runner.start(TASK, settings)
        if (state.answer, state.turns, state.tool_runs) != (ANSWER, 3, 2):
            raise SystemExit(f"not the run that was meant: {state.status}: {state.reason}")

    return once


def peer_run(base_url: str, files: Path) -> Callable[[], Awaitable[None]]:
    """The same run by the openai-agents SDK."""
    # Not a dependency of ours; see the module's docstring.
    from agents import Agent, OpenAIChatCompletionsModel, function_tool, set_tracing_disabled
    from agents import Runner as PeerRunner
    from openai import AsyncOpenAI

    set_tracing_disabled(True)

    @function_tool
    def list_files() -> str:
        """List the names of the files in the folder."""
        names = sorted(path.name for path in files.iterdir() if path.name[0] != ".")
        return json.dumps(names, separators=(",", ":"))

    @function_tool
    def read_file(path: str) -> str:
        """Read one text file of the folder."""
        return (files / path).read_text()

    client = AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0)
    model = OpenAIChatCompletionsModel(model="plan", openai_client=client)
    agent: Any = Agent(name="files", tools=[list_files, read_file], model=model)

    async def once() -> None:
        result = await PeerRunner.run(agent, TASK)
        if result.final_output != ANSWER:
            raise SystemExit(f"not the run that was meant: {result.final_output}")

    return once


async def timed(once: Callable[[], Awaitable[None]]) -> tuple[float, float]:
    """Milliseconds of one run: by the clock, and of this process's CPU time."""
    begun, worked = time.perf_counter(), time.process_time()
    await once()
    return (time.perf_counter() - begun) * 1000, (time.process_time() - worked) * 1000


def flush_ms(folder: Path) -> float:
    """What one small write with fsync takes under `folder`."""
    with (folder / "flush").open("wb") as file:
        times = []
        for _ in range(20):
            begun = time.perf_counter()
            file.write(b"x")
            file.flush()
            os.fsync(file.fileno())
            times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times)


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(url: str) -> None:
    """Return when `url` answers."""
    for _ in range(600):
        try:
            urllib.request.urlopen(url).close()  # noqa: S310 - an address of ours
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit(f"{url} does not answer")


if __name__ == "__main__":
    main()
