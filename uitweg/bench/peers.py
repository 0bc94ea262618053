"""Which peers an environment has, started or run one after another."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from uitweg.bench import servers, work
from uitweg.bench.cases import Measured
from uitweg.bench.servers import PEERS, PeerError, Running, Setup

TRANSFORMERS = "transformers, fp32"


def start(
    stack: contextlib.ExitStack, setup: Setup, python: Path, say: Callable[[str], None]
) -> list[Running]:
    """Start every server that this environment has; says which it has not."""
    running = []
    for module, begin in (
        ("xllamacpp", servers.xllamacpp),
        ("llama_cpp.server.app", servers.llama_cpp_server),
    ):
        if not _has(python, module):
            say(f"{python} has no {module}: left out.")
            continue
        try:
            running.append(stack.enter_context(begin(setup, python)))
        except PeerError as error:
            say(f"{error} Left out.")
    return running


def add_transformers(
    measured: Measured, setup: Setup, python: Path, rounds: int, say: Callable[[str], None]
) -> None:
    """The six tasks' turns with transformers, where it is there; after the servers, since it takes
    minutes.
    """
    if not (_has(python, "transformers") and _has(python, "torch") and _has(python, "gguf")):
        say(f"{python} has no transformers with torch and gguf: left out.")
        return
    command = [str(python), str(PEERS / "transformers_turns.py"), str(setup.model)]
    turns = work.turns()
    asked = "".join(json.dumps(turn) + "\n" for turn in turns) * rounds
    done = subprocess.run(  # noqa: S603 - the command above
        [*command, str(setup.threads)], input=asked, capture_output=True, text=True, check=False
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    seconds = [line["s"] for line in lines if "s" in line]
    if len(seconds) < rounds * len(turns):
        say(f"transformers failed: {done.stderr[-500:]}")
        return
    figures = measured.rounds.setdefault(TRANSFORMERS, [])
    for number in range(rounds):
        spent = seconds[number * len(turns) : (number + 1) * len(turns)]
        figures.append(1000 * sum(spent) / len(turns))
        say(f"{measured.title}, round {number + 1}: {TRANSFORMERS} {figures[-1]:.1f} ms")


def _has(python: Path, module: str) -> bool:
    command = [str(python), "-c", f"import {module}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603
