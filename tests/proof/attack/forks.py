"""Work in processes of their own, which can be killed at any moment.

A fork of this process has everything imported, so it begins within milliseconds. That is safe
only as long as this process has one thread and no event loop: suites keep to that.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

Point = TypeVar("Point")
Found = TypeVar("Found")

WORKERS = 2
SECONDS = 300.0
"""No piece of work here takes longer unless it hangs."""
HUNG = -1000


class Fork:
    """`work()` in a child. With `waits`, it begins when `go` is called."""

    def __init__(self, work: Callable[[], Any], *, waits: bool = False) -> None:
        start, self._start = os.pipe()
        self._end, end = os.pipe()
        self.result: Any = None
        """What `work` returned, once `wait` has returned 0. At most 64 kB when pickled."""
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._start)
            if waits:
                os.read(start, 1)
            _work(work, end)
        os.close(start)
        os.close(end)

    def go(self) -> None:
        """Let a child that waits begin."""
        os.write(self._start, b".")

    def kill(self) -> None:
        """SIGKILL, if it has not ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self, seconds: float = SECONDS) -> int:
        """Its exit code, minus the signal that ended it, or `HUNG`."""
        last = time.monotonic() + seconds
        pause = 0.001
        code = HUNG
        while code == HUNG:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > last:
                self.kill()
                os.waitpid(self.pid, 0)
                break
            else:
                time.sleep(pause)
                pause = min(pause * 1.5, 0.02)
        with open(self._end, "rb") as sent:  # noqa: PTH123 - takes a descriptor
            if code == 0:
                self.result = pickle.load(sent)
        os.close(self._start)
        return code


def _work(work: Callable[[], Any], end: int) -> None:
    """Carry out the work in the child, hand its result over, and end the child."""
    code = 1
    try:
        result = work()
        with open(end, "wb") as send:
            pickle.dump(result, send)
        code = 0
    except BaseException:  # noqa: BLE001 - the child must never return to its parent's code
        traceback.print_exc()
    finally:
        os._exit(code)


def shared(work: Callable[[Point], Found], points: Iterable[Point]) -> Iterator[Found]:
    """`work` of each point, in any order, by as many processes as there are cores here."""
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        yield from pool.imap_unordered(work, points)
