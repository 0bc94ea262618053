"""Who carries a run: an owner that a dead process cannot be.

An `Owner` is a locked file. The kernel gives the lock up when the process ends,
however it ends, so "is the owner alive?" is asked of the kernel and of no
clock: whoever can lock the file knows that its owner is gone. The name of an
owner is never used twice, so a file that is missing means gone, too.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import uuid
import weakref
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write to one run. `epoch` counts the run's carriers."""

    run_id: str
    owner: str
    epoch: int


class Owner:
    """A name that is locked for as long as this process keeps it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = uuid.uuid4().hex
        self._path = folder / f"{self.name}.lock"
        fresh = folder / f".{self.name}.new"
        self._file: int | None = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        # Locked before it has its name, so that nobody ever finds it unlocked.
        fcntl.flock(self._file, fcntl.LOCK_EX)
        os.write(self._file, f"{os.getpid()}\n".encode())
        fresh.rename(self._path)
        # A forked child has the same lock; were it to keep it, the lock would
        # outlive this process.
        itself = weakref.ref(self)

        def let_go() -> None:
            owner = itself()
            if owner is not None:
                owner._drop()

        os.register_at_fork(after_in_child=let_go)

    def close(self) -> None:
        """Give the name up."""
        if self._file is not None:
            self._path.unlink(missing_ok=True)
            self._drop()

    def _drop(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def alive(folder: Path, name: str) -> bool:
    """Whether the owner `name` still runs, in any process of this machine."""
    try:
        file = os.open(folder / f"{name}.lock", os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        # Shared, so that two who ask at once do not take one another for the owner.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(file)


def process_of(folder: Path, name: str) -> str:
    """Words for who `name` is: its process id where it can be read."""
    with contextlib.suppress(OSError, ValueError):
        return f"process {int((folder / f'{name}.lock').read_text('ascii'))}"
    return "another process"


def sweep(folder: Path) -> None:
    """Remove the files of owners that are gone."""
    if not folder.is_dir():
        return
    for path in folder.glob("*.lock"):
        if not alive(folder, path.stem):
            path.unlink(missing_ok=True)
