"""How many threads this process can really use.

A container that may use 4 CPUs of a host with 64 sees 64 of them; threads beyond its quota are
stopped for the rest of each period while the others wait for them. So three limits count:

- the quota of the cgroup: v2 `cpu.max`, v1 `cpu.cfs_quota_us` over `cpu.cfs_period_us`, the
  smallest on the way up from this process's group
  (https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu-interface-files);
- the affinity mask;
- the number of CPUs.

A fraction is rounded down, since the thread over it would be the one that is stopped; one thread
there always is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


def threads(root: Path = Path("/")) -> int:
    """Threads for work that keeps a CPU busy, at least 1.

    Args:
        root: where `/proc` and the mounted cgroups are looked for.
    """
    return fewest(os.cpu_count(), affinity(), quota(root))


def fewest(cpus: int | None, allowed: int | None, share: float | None) -> int:
    """The smallest of the limits that are known, rounded down, at least 1."""
    known = [limit for limit in (cpus, allowed, share) if limit is not None]
    return max(1, int(min(known, default=1)))


def affinity() -> int | None:
    """CPUs that this process may run on; None where the system has no such mask (macOS)."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    return len(os.sched_getaffinity(0))


def quota(root: Path = Path("/")) -> float | None:
    """CPUs' worth of time that the cgroups grant, such as 1.5; None without a limit."""
    shares = [share for group in _groups(root) if (share := _share(group)) is not None]
    return min(shares, default=None)


@dataclass(frozen=True, slots=True)
class _Mount:
    """One line of mountinfo: `root` within the hierarchy is seen at `point`."""

    root: PurePosixPath
    point: Path
    unified: bool


def _groups(root: Path) -> Iterator[Path]:
    """Every cgroup folder above this process, of both versions, that can be seen."""
    mounts = list(_mounts(root))
    for line in _lines(root / "proc/self/cgroup"):
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        unified = number == "0" and not controllers
        if not unified and "cpu" not in controllers.split(","):
            continue
        for mount in mounts:
            if mount.unified == unified:
                yield from _upwards(mount, PurePosixPath(path))


def _mounts(root: Path) -> Iterator[_Mount]:
    """Mounted cgroup hierarchies: v2, and the one of v1 that has the cpu controller.

    The format is that of proc_pid_mountinfo(5).
    """
    for line in _lines(root / "proc/self/mountinfo"):
        before, dash, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if not dash or len(fields) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2" or (kind[0] == "cgroup" and "cpu" in kind[2].split(",")):
            point = root / fields[4].lstrip("/")
            yield _Mount(PurePosixPath(fields[3]), point, kind[0] == "cgroup2")


def _upwards(mount: _Mount, path: PurePosixPath) -> Iterator[Path]:
    """The folders from the group at `path` up to the mount point.

    In a container whose mount shows only its own part of the hierarchy, the path does not lie
    below the mount's root: then the mount point is the group itself.
    """
    try:
        below = path.relative_to(mount.root)
    except ValueError:
        below = PurePosixPath()
    if ".." in below.parts:
        below = PurePosixPath()
    for part in (below, *below.parents):
        yield mount.point / part


def _share(group: Path) -> float | None:
    modern = " ".join(_lines(group / "cpu.max")).split()
    if len(modern) == 2:
        return _ratio(modern[0], modern[1])
    spent = " ".join(_lines(group / "cpu.cfs_quota_us"))
    period = " ".join(_lines(group / "cpu.cfs_period_us"))
    return _ratio(spent, period)


def _ratio(spent: str, period: str) -> float | None:
    """CPUs out of two figures in microseconds; None for "max", -1 or what is no figure."""
    try:
        share = int(spent) / int(period)
    except (ValueError, ZeroDivisionError):
        return None
    return share if share > 0 else None


def _lines(path: Path) -> list[str]:
    """The lines of a file, none where it cannot be read: no such file is no such limit."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
