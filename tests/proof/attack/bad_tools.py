"""Tools that do whatever a tool should not."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from harness.tool import Tool, ToolContext, tool

SLEEPER = "import os, sys, time; os.setsid(); time.sleep(3600)"
TIMEOUT = 0.4


def _note(context: ToolContext, *pids: int) -> None:
    """Tell the suite which processes must not outlive the call."""
    with (context.workspace.root / "pids").open("a") as file:
        file.write("".join(f"{pid}\n" for pid in pids))


@tool(effect="read", timeout=TIMEOUT)
def never_returns() -> str:
    """Sleep."""
    time.sleep(3600)
    return ""


@tool(effect="read", timeout=TIMEOUT)
def computes_for_ever() -> str:
    """Compute."""
    while True:
        pass


@tool(effect="read", timeout=TIMEOUT)
async def awaits_for_ever() -> str:
    """Wait."""
    await asyncio.Event().wait()
    return ""


@tool(effect="read", timeout=TIMEOUT)
async def swallows_every_cancellation() -> str:
    """Wait, whatever is said."""
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


@tool(effect="read", timeout=TIMEOUT)
def yields_for_ever() -> Iterator[str]:
    """Yield."""
    while True:
        yield "x" * 1000


@tool(effect="read", timeout=TIMEOUT)
async def yields_for_ever_async() -> AsyncIterator[str]:
    """Yield."""
    while True:
        yield "x" * 1000


@tool(effect="read", timeout=TIMEOUT)
def reports_for_ever(context: ToolContext) -> str:
    """Report."""
    while True:
        context.progress("x" * 10_000, 1, 2)


@tool(effect="read")
def returns_fifty_megabytes() -> str:
    """Return much."""
    return "é" * 25_000_000


@tool(effect="read")
def returns_bytes_that_are_no_text() -> bytes:
    """Return bytes."""
    return b"a\xff\xfe\xc3"


@tool(effect="read")
def returns_half_a_character() -> str:
    """Return a lone surrogate."""
    return "a\ud800b"


@tool(effect="read")
def returns_what_holds_itself() -> list[Any]:
    """Return a list in itself."""
    value: list[Any] = []
    value.append(value)
    return value


@tool(effect="read")
def returns_depth() -> Any:
    """Return something deep."""
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    return value


class _Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __repr__


@tool(effect="read")
def returns_what_cannot_be_shown() -> Any:
    """Return an object."""
    return _Rude()


@tool(effect="read")
def returns_nothing() -> None:
    """Return nothing."""


class _RudeError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


def _raising(name: str, error: BaseException) -> Tool:
    def raises() -> str:
        """Raise."""
        raise error

    raises.__name__ = name
    return tool(effect="read")(raises)


@tool(effect="read", killable=True, timeout=5)
def leaves_grandchildren(context: ToolContext) -> str:
    """Leave processes in sessions of their own and ignore being told to stop."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    first = subprocess.Popen([sys.executable, "-c", SLEEPER]).pid
    shell = f"(setsid {sys.executable} -c 'import time; time.sleep(3600)' & echo $!)"
    second = subprocess.run(shell, shell=True, capture_output=True, text=True, check=True).stdout
    _note(context, os.getpid(), first, int(second))
    while True:
        time.sleep(1)


@tool(effect="read", killable=True)
def returns_and_leaves_a_child(context: ToolContext) -> str:
    """Leave a process behind."""
    _note(context, os.getpid(), subprocess.Popen([sys.executable, "-c", SLEEPER]).pid)
    return "done"


@tool(effect="read", killable=True, timeout=5)
def prints_for_ever(context: ToolContext) -> str:
    """Print."""
    _note(context, os.getpid())
    while True:
        os.write(1, b"\xff" * 65536)


@tool(effect="read", killable=True)
def prints_bytes_that_are_no_text() -> None:
    """Print bytes."""
    os.write(1, b"a\xff\xfeb")


@tool(effect="read", killable=True)
def ends_its_process() -> str:
    """End."""
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


@tool(effect="read", killable=True, timeout=5)
def stops_its_process(context: ToolContext) -> str:
    """Stop as with Ctrl-Z."""
    _note(context, os.getpid())
    os.kill(os.getpid(), signal.SIGSTOP)
    return ""


@tool(effect="read", killable=True, timeout=5)
def closes_all_files(context: ToolContext) -> str:
    """Close every file that is open."""
    _note(context, os.getpid())
    os.closerange(0, 256)
    time.sleep(3600)
    return ""


@tool(effect="read", killable=True, timeout=5)
def answers_in_the_harness_s_stead(context: ToolContext) -> str:
    """Write to every file that is open what looks like an answer."""
    _note(context, os.getpid())
    for number in range(3, 64):
        try:
            os.write(number, b"}{\n\xff" + b"x" * 100_000 + b"\n")
        except OSError:
            continue
    return "done"


@tool(effect="read", killable=True, timeout=5)
def starts_threads_that_stay(context: ToolContext) -> str:
    """Leave threads that are no daemons."""
    _note(context, os.getpid())
    for _ in range(8):
        threading.Thread(target=time.sleep, args=(3600,)).start()
    return "done"


WITHOUT_END = (
    never_returns, computes_for_ever, awaits_for_ever, swallows_every_cancellation,
    reports_for_ever, leaves_grandchildren, prints_for_ever, stops_its_process, closes_all_files,
)  # fmt: skip
"""To be stopped: by their own time limit, or by a person."""
WITH_END = (
    # What is yielded without end is cut, which ends it.
    yields_for_ever, yields_for_ever_async,
    returns_fifty_megabytes, returns_bytes_that_are_no_text, returns_half_a_character,
    returns_what_holds_itself, returns_depth, returns_what_cannot_be_shown, returns_nothing,
    returns_and_leaves_a_child, prints_bytes_that_are_no_text, ends_its_process,
    answers_in_the_harness_s_stead, starts_threads_that_stay,
    _raising("raises_system_exit", SystemExit(3)),
    _raising("raises_keyboard_interrupt", KeyboardInterrupt()),
    _raising("raises_generator_exit", GeneratorExit()),
    _raising("raises_stop_iteration", StopIteration()),
    _raising("raises_cancelled", asyncio.CancelledError()),
    _raising("raises_memory_error", MemoryError()),
    _raising("raises_recursion_error", RecursionError()),
    _raising("raises_what_cannot_be_shown", _RudeError()),
)  # fmt: skip
