"""Tools that run in a process of their own; it loads them from this file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from harness.tool import PermanentToolError, ToolContext, ToolError, tool

ORPHAN = "import os, time; os.setsid(); time.sleep(3600)"


@tool(effect="read", killable=True)
def pid_and_words(word: str, context: ToolContext) -> str:
    """Say a word."""
    context.progress("half way", 1, 2)
    sys.stdout.write("printed\n")
    return f"{word} {os.getpid()} {context.idempotency_key} {context.workspace.listing()}"


@tool(effect="read", killable=True)
async def later(word: str) -> str:
    """Say a word, async."""
    return word


@tool(effect="read", killable=True)
def stubborn(context: ToolContext) -> str:
    """Start grandchildren and ignore every request to stop."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pids = [subprocess.Popen([sys.executable, "-c", ORPHAN]).pid]
    shell = subprocess.Popen(
        [f"(setsid {sys.executable} -c 'import time; time.sleep(3600)' & echo $!)"],
        shell=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    pids.append(int(shell.stdout.readline()))  # type: ignore[union-attr]
    (context.workspace.root / "pids").write_text(f"{os.getpid()} {pids[0]} {pids[1]}")
    (context.workspace.root / "pids").rename(context.workspace.root / "ready")
    while True:
        pass


@tool(effect="read", killable=True)
def leaves_a_child_behind(context: ToolContext) -> str:
    """Return at once and leave a process behind."""
    return str(subprocess.Popen([sys.executable, "-c", ORPHAN]).pid)


@tool(effect="read", killable=True)
def prints_without_end() -> str:
    """Print for ever."""
    while True:
        sys.stdout.write("x" * 10_000)


@tool(effect="read", killable=True)
def prints_bytes() -> None:
    """Print what is no text."""
    sys.stdout.flush()
    os.write(1, b"a\xff\xfeb")


@tool(effect="read", killable=True)
def dies() -> str:
    """End without an answer."""
    os.write(1, b"last words")
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


@tool(effect="read", killable=True)
def fails(how: str) -> str:
    """Fail."""
    if how == "permanent":
        raise PermanentToolError("locked")
    if how == "told":
        raise ToolError("not today")
    raise ZeroDivisionError


@tool(effect="read", killable=True)
def stops_when_told(context: ToolContext) -> str:
    """Stop when asked to."""
    (Path(context.workspace.root) / "ready").touch()
    while True:
        context.cancel.raise_if_cancelled()


def not_at_the_top() -> object:
    """A tool that no other process can find."""

    @tool(effect="read", killable=True)
    def hidden() -> str:
        """Hide."""
        return ""

    return hidden
