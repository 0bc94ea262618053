"""A slow tool: looks through an archive, file by file."""

from __future__ import annotations

import json
import threading
import time
import zipfile
from pathlib import Path
from typing import Annotated, Any

from harness.tool import ToolContext, ToolError, tool
from harness.workspace import NoSuchFile

ARCHIVE_NAMES = ("archive.zip", ".archive.zip")
PROGRESS_EVERY = 200

DEMO_FILES = 1200
DEMO_SECONDS = 3.0
"""How long the demo's archive takes, so that a person can press Stop meanwhile."""

_MAX_MEMBER = 1024 * 1024
"""Bytes read of one file in an archive: a packed file may claim to be endless."""


@tool(effect="read", timeout=None)
def scan_archive(
    word: Annotated[str, "The word to look for."], context: ToolContext
) -> dict[str, int]:
    """Count the files of the archive that mention a word. This is slow."""
    wanted = word.strip().lower().encode("utf-8", "backslashreplace")
    if not wanted:
        raise ToolError("the word is empty. Call scan_archive with a word to look for.")
    for name in ARCHIVE_NAMES:
        try:
            with context.workspace.open_read(name) as file, zipfile.ZipFile(file) as archive:
                return _scan(archive, wanted, context)
        except NoSuchFile:
            continue
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
            raise ToolError(f"{name} cannot be read as an archive: {error}.") from None
    raise ToolError("there is no archive here: a file named archive.zip is what this tool reads.")


def _scan(archive: zipfile.ZipFile, wanted: bytes, context: ToolContext) -> dict[str, int]:
    files = [info for info in archive.infolist() if not info.is_dir()]
    pace = _Pace(_seconds_per_file(archive), context)
    matches = 0
    for count, info in enumerate(files, start=1):
        pace.wait_for(count)
        with archive.open(info) as member:
            matches += wanted in member.read(_MAX_MEMBER).lower()
        if count % PROGRESS_EVERY == 0 or count == len(files):
            context.progress(f"{count:,} of {len(files):,} files", count, len(files))
    return {"files": len(files), "matches": matches}


class _Pace:
    """Holds the scan to so many seconds a file; wakes at once when cancelled."""

    def __init__(self, seconds_per_file: float, context: ToolContext) -> None:
        self._seconds = seconds_per_file
        self._token = context.cancel
        self._stopped = threading.Event()
        self._token.on_cancel(self._stopped.set)
        self._start = time.monotonic()

    def wait_for(self, count: int) -> None:
        due = self._start + count * self._seconds
        if self._seconds:
            self._stopped.wait(max(0.0, due - time.monotonic()))
        self._token.raise_if_cancelled()


def _seconds_per_file(archive: zipfile.ZipFile) -> float:
    """The demo's archive says in its comment how slow it wants to be; others do not."""
    try:
        comment: Any = json.loads(archive.comment or b"{}")
        return min(max(float(comment["seconds_per_file"]), 0.0), 0.1)
    except (ValueError, KeyError, TypeError):
        return 0.0


def write_demo_archive(target: Path, seconds: float = DEMO_SECONDS) -> None:
    """Write the demo's archive of 1,200 small log files; 37 of them mention a timeout.

    Args:
        target: The file to make; its folder must exist.
        seconds: How long `scan_archive` takes over all of it.
    """
    with zipfile.ZipFile(target, "x", zipfile.ZIP_DEFLATED) as archive:
        for number in range(DEMO_FILES):
            happened = "timed out, timeout 30000 ms" if number % 33 == 7 else "done"
            text = f"worker {number % 16} job {number}: {happened}\n" * 4
            info = zipfile.ZipInfo(f"logs/{number:04}.log", (2026, 1, 1, 0, 0, 0))
            archive.writestr(info, text)
        archive.comment = json.dumps({"seconds_per_file": seconds / DEMO_FILES}).encode()
