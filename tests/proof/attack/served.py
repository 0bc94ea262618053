"""Servers in processes of their own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path


@contextlib.contextmanager
def served(module: Sequence[str], log: Path | None = None) -> Iterator[str]:
    """Run a module that prints its address as the last word of its first line.

    Args:
        module: Its name, and its arguments.
        log: Where what it says on standard error goes; without it, to ours.
    """
    with contextlib.ExitStack() as stack:
        errors = stack.enter_context(log.open("wb")) if log else None
        process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", *module], stdout=subprocess.PIPE, stderr=errors, text=True
            )
        )
        stack.callback(process.terminate)
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]


HARMLESS = "when role=SERVER and state=MUST_CLOSE"
"""uvicorn has answered what is no HTTP with 400; when the reply of the request that was broken
comes after it, it cannot be sent, and uvicorn says so at length. Nobody gets a wrong answer."""


def faults_in(log: Path) -> str | None:
    """What a server said of a fault of its own, if it did."""
    for fault in log.read_text("utf-8", "replace").split("Traceback")[1:]:
        if HARMLESS not in fault:
            return f"its log holds a traceback: …{fault[:2500]}"
    return None
