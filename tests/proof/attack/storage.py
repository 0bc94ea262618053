"""The disk fails: calls fail, it is full, it cannot be written."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from attack import straced
from attack.forks import HUNG, Fork, shared
from attack.provider import provider
from attack.readers import read_everything
from attack.reference import EARLIER, Place, carry, earlier_run, examine, new_place
from attack.tally import Tally
from harness.errors import HarnessError

TITLE = "Disk full, read-only, failing"
FULL = "a disk that is full, then has room again"
READ_ONLY = "a store that cannot be written"


class Failing(NamedTuple):
    """A system call that fails, once or from some time on."""

    what: str
    url: str
    call: str
    error: str
    when: str


def attack(tally: Tally, folder: Path, long: bool) -> None:
    """Let writing fail, see that it is said and reading goes on, mend the disk and resume."""
    with provider() as url:
        _calls_that_fail(tally, url, long)
        _small_disks(tally, folder, url, long)
        _read_only(tally, folder, url)


def what_came(place: Place) -> str:
    """Carry the run: nothing, or the clear error that ended it. Any other error is raised."""
    try:
        carry(place)
    except HarnessError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _goes_on(place: Place) -> str | None:
    """Resume on a disk that works, and examine the end."""
    code = Fork(partial(carry, place)).wait()
    return f"the recovery ended with {code}" if code else examine(place)[1]


def _reads(place: Place, whole: str) -> str | None:
    """What is wrong with reading while the disk fails, if anything: the page, the earlier run."""
    child = Fork(partial(read_everything, place.path, (EARLIER,)))
    if code := child.wait():
        return "reading hangs" if code == HUNG else f"reading ended with {code}"
    reading = child.result
    if reading.runs.get(EARLIER) != whole:
        return f"the earlier run cannot be read: {reading.refused or reading.runs}"
    down = [at for at, status in reading.statuses.items() if status >= 500]
    return reading.problem or (f"the page is down at {', '.join(down)}" if down else None)


def _with_earlier(place: Place) -> str:
    """Make the earlier run; what is read of it."""
    Fork(partial(earlier_run, place)).wait()
    child = Fork(partial(read_everything, place.path, (EARLIER,)))
    child.wait()
    whole: str = child.result.runs[EARLIER]
    return whole


def _calls_that_fail(tally: Tally, url: str, long: bool) -> None:
    what = "{} fails with {}; the run resumed on a sound disk"
    if reason := straced.why_not():
        tally.note(what.format("fdatasync", "EIO"), reason)
        return
    place = new_place(url)
    counts = straced.counted(Fork(partial(carry, place), waits=True), place.folder / "calls")
    place.remove()
    cases = []
    for call, error in (("fdatasync", "EIO"), ("pwrite64", "ENOSPC"), ("pwrite64", "EIO")):
        step = max(1, counts[call] // (15 if long else 2))
        for number in range(1, counts[call], step):
            cases.append(Failing(what.format(call, error), url, call, error, f"{number}"))
            cases.append(Failing(what.format(call, error), url, call, error, f"{number}+"))
    for case, problem in shared(_with_failing_call, cases):
        tally.tried(case.what, problem and f"{problem} (when={case.when})")


def _with_failing_call(case: Failing) -> tuple[Failing, str | None]:
    place = new_place(case.url)
    try:
        whole = _with_earlier(place)
        child = Fork(partial(what_came, place), waits=True)
        how = f"error={case.error}:when={case.when}"
        code = straced.disturbed(child, place.folder / "strace", case.call, how)
        if code:
            problem = "it hangs" if code == HUNG else f"it ended with {code}, without a clear error"
            return case, problem
        return case, _reads(place, whole) or _goes_on(place)
    finally:
        place.remove()


@contextlib.contextmanager
def _mounted(folder: Path, kilobytes: int) -> Iterator[Path]:
    """A file system of its own, of that size, in memory."""
    folder.mkdir()
    options = f"size={kilobytes}k"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def _why_no_mount() -> str | None:
    if os.geteuid() != 0:
        return "mounting a file system needs root"
    probe = subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True)
    return None if probe.returncode == 0 else "this system lets nobody mount"


def _small_disks(tally: Tally, folder: Path, url: str, long: bool) -> None:
    """Disks on which so much is free as to be full at some time of the run."""
    if reason := _why_no_mount():
        tally.note(FULL, reason)
        return
    for number, free in enumerate(range(0, 80, 4 if long else 40)):
        with _mounted(folder / f"full-{number}", 4096) as disk:
            place = Place(disk, url).prepare()
            tally.tried(FULL, _on_full_disk(place, free))


def _on_full_disk(place: Place, kilobytes: int) -> str | None:
    whole = _with_earlier(place)
    filler = place.folder / "filler"
    with contextlib.suppress(OSError), filler.open("wb") as file:
        while True:
            file.write(b"x" * 4096)
            file.flush()
    with filler.open("rb+") as file:
        file.truncate(filler.stat().st_size - kilobytes * 1024)
    child = Fork(partial(what_came, place))
    code = child.wait()
    if code or "StoreFull" not in child.result:
        if code == 0 and child.result == "" and kilobytes > 0:
            return None  # it fitted
        return f"it ended with {code}: {child.result!r} instead of StoreFull"
    if problem := _reads(place, whole):
        return problem
    filler.unlink()
    return _goes_on(place)


def _read_only(tally: Tally, folder: Path, url: str) -> None:
    if reason := _why_no_mount():
        tally.note(READ_ONLY, reason)
        return
    with _mounted(folder / "ro", 8192) as disk:
        place = Place(disk, url).prepare()
        whole = _with_earlier(place)
        before = place.path.read_bytes()
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        child = Fork(partial(what_came, place))
        code = child.wait()
        said = child.result or ""
        problem = None
        if code or not said.startswith("StoreReadOnly"):
            problem = f"it ended with {code}: {said!r} instead of StoreReadOnly"
        tally.tried(READ_ONLY, problem or _reads(place, whole))
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        changed = None if place.path.read_bytes() == before else "the store was changed"
        tally.tried(f"{READ_ONLY}, then can", changed or _goes_on(place))
