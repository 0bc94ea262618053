"""Who listens on the ports that are to be used here."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from uitweg.config import Ports
from uitweg.doctor.check import Check
from uitweg.hosting import health, local_url

_LISTENING = "0A"


def check_ports(ports: Ports) -> Iterator[Check]:
    """Each port: free, a server of ours, or taken by somebody else."""
    for name in Ports.model_fields:
        yield _check(name, getattr(ports, name))


def _check(name: str, port: int) -> Check:
    title = f"port {port}"
    if _free(port):
        return Check(title, "ok", f"free, for the {_what(name)}")
    if name != "page" and (said := health(local_url(port))) and "scripted" in said:
        return Check(title, "ok", f"our {_what(name)} listens already")
    taken = f"taken by {holder(port) or 'another program'}"
    flag = {"page": "--port", "model": "--model-port", "scripted": "--scripted-port"}[name]
    advice = f"End that, or start with {flag} NUMBER (or ports.{name} in uitweg.toml)."
    ours = re.search(r"\buitweg (start|serve)\b", taken)
    return Check(title, "note" if ours else "wrong", taken, advice)


def _what(name: str) -> str:
    return {"page": "page", "model": "model server", "scripted": "scripted models"}[name]


def _free(port: int) -> bool:
    with socket.socket() as probe:
        # As the servers do it: a port that was in use a moment ago is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def holder(port: int) -> str | None:
    """The program that listens on a port: its command and process id, where that can be seen."""
    pid = _pid_from_proc(port) or _pid_from_lsof(port)
    if pid is None:
        return None
    return f"{_command(pid)} (process {pid})"


def _pid_from_proc(port: int) -> int | None:
    """Linux: the socket's inode in /proc/net/tcp, and the process that has it open."""
    sockets = set()
    for table in ("tcp", "tcp6"):
        path = Path("/proc/net") / table
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            parts = line.split()
            if parts[3] == _LISTENING and int(parts[1].rpartition(":")[2], 16) == port:
                sockets.add(f"socket:[{parts[9]}]")
    for link in Path("/proc").glob("[0-9]*/fd/*") if sockets else ():
        try:
            if str(link.readlink()) in sockets:
                return int(link.parts[2])
        except OSError:  # it has ended, or belongs to somebody else
            continue
    return None


def _pid_from_lsof(port: int) -> int | None:
    lsof = shutil.which("lsof")
    if lsof is None:
        return None
    command = [lsof, "-nP", f"-iTCP:{port}", "-sTCP:LISTEN", "-t"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    return int(found.stdout.split()[0]) if found.stdout.split() else None


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        ps = shutil.which("ps") or "ps"
        command = [ps, "-o", "command=", "-p", str(pid)]
        words = subprocess.run(  # noqa: S603 - our own command
            command, capture_output=True, text=True, check=False
        ).stdout.split()
    return " ".join(words).strip()[:100] or f"a process of {os.uname().nodename}"
