"""Killing, or failing, at a system call that strace names."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from attack.forks import Fork

KILL_AT = ("write", "pwrite64", "fsync", "fdatasync", "ftruncate", "rename", "unlink", "unlinkat")
"""Whatever changes a file here. `unlinkat` is how a tool deletes relative to an open folder."""


def why_not() -> str | None:
    """Why system calls cannot be named here, if they cannot."""
    if not sys.platform.startswith("linux"):
        return "strace is there on Linux only"
    if shutil.which("strace") is None:
        return "strace is not installed"
    probe = subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], check=False)
    return None if probe.returncode == 0 else "this system does not let strace follow a process"


class Straced:
    """Follows a child that waits; lets it go once it is followed."""

    def __init__(self, child: Fork, log: Path, *options: str) -> None:
        command = ["strace", "-f", "-o", str(log), *options, "-p", str(child.pid)]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        assert "attached" in line, line
        child.go()

    def end(self) -> None:
        """Wait for strace, which ends with what it follows."""
        assert self._process.stderr is not None
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stderr.close()


def counted(child: Fork, log: Path) -> Counter[str]:
    """Let the child run; how often the thread that made most of each call made it.

    strace counts each thread's calls apart, so that is how many points there are.
    """
    follower = Straced(child, log, "-e", f"trace={','.join(KILL_AT)}")
    code = child.wait()
    follower.end()
    assert code == 0, f"the undisturbed run ended with {code}"
    seen: Counter[tuple[str, str]] = Counter()
    for line in log.read_text().splitlines():
        if found := re.match(r"(\d+) +(\w+)\(", line):
            seen[found[1], found[2]] += 1
    most: Counter[str] = Counter()
    for (_, call), count in seen.items():
        most[call] = max(most[call], count)
    return most


def disturbed(child: Fork, log: Path, call: str, what: str, seconds: float = 60) -> int:
    """Let the child run with `what` (such as `signal=KILL:when=3`) at `call`; its exit code."""
    options = ("-e", f"trace={call}", "-e", f"inject={call}:{what}")
    follower = Straced(child, log, *options)
    code = child.wait(seconds)
    follower.end()
    return code
