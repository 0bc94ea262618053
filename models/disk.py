"""Writing large files so that nothing half is ever taken for whole."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from models.errors import NoRoom
from models.progress import megabytes

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""No space, no quota left, over the size that a file may have here."""


def digest(path: Path) -> str:
    """SHA-256 of what lies on disk, in hex. About a second for 500 MB, so nothing is cached."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def size(path: Path) -> int:
    """Bytes of a file, 0 where there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def check_room(folder: Path, needed: int) -> None:
    """Refuse to begin what cannot be finished.

    Raises:
        NoRoom: fewer than `needed` bytes are free.
    """
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise NoRoom(
            f"Not enough room in {folder}: {megabytes(needed)} are needed, {megabytes(free)} are "
            "free. Free some, or set UITWEG_CACHE to a folder with more."
        )


@contextmanager
def room(folder: Path) -> Iterator[None]:
    """Turn the system's ways to say that the disk is full into ours.

    Raises:
        NoRoom: what was written so far is kept, so that it can go on.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise NoRoom(
            f"The disk is full ({error.strerror}) in {folder}. Free some room, or set UITWEG_CACHE "
            "to a folder with more, and try again: it goes on where it stopped."
        ) from error


def put_in_place(part: Path, target: Path) -> None:
    """Rename a finished file so that it is there whole, or not at all, after a power cut too."""
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
