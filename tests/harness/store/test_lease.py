import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.store.lease import Owner, alive, process_of, sweep


def started(code: str, folder: Path) -> subprocess.Popen[str]:
    """A process that runs `code` and is told the folder."""
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_an_owner_lives_as_long_as_it_is_kept(tmp_path: Path):
    owner = Owner(tmp_path)
    assert alive(tmp_path, owner.name)
    assert alive(tmp_path, owner.name)
    assert process_of(tmp_path, owner.name) == f"process {os.getpid()}"
    owner.close()
    assert not alive(tmp_path, owner.name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", ["kill -9", "exit"])
def test_h10_a_dead_process_owns_nothing_however_it_died(tmp_path: Path, how: str):
    code = (
        "import sys\nfrom pathlib import Path\nfrom harness.store.lease import Owner\n"
        "owner = Owner(Path(sys.argv[1]))\nprint(owner.name, flush=True)\nsys.stdin.read()\n"
        "import os; os._exit(3)"
    )
    process = started(code, tmp_path)
    name = process.stdout.readline().strip()
    assert alive(tmp_path, name)
    if how == "exit":
        process.stdin.close()
    else:
        process.kill()
        process.stdin.close()
    process.wait()
    process.stdout.close()
    assert not alive(tmp_path, name)
    assert (tmp_path / f"{name}.lock").exists()
    sweep(tmp_path)
    assert not (tmp_path / f"{name}.lock").exists()


def test_a_child_process_does_not_keep_its_parents_lease(tmp_path: Path):
    """A program that a tool starts must not hold the lock after our death."""
    code = (
        "import subprocess, sys\nfrom pathlib import Path\n"
        "from harness.store.lease import Owner\n"
        "owner = Owner(Path(sys.argv[1]))\n"
        "child = subprocess.Popen(['sleep', '60'], close_fds=False)\n"
        "print(owner.name, child.pid, flush=True)\nsys.stdin.read()\n"
    )
    process = started(code, tmp_path)
    name, child = process.stdout.readline().split()
    try:
        process.kill()
        process.wait()
        assert not alive(tmp_path, name)
    finally:
        os.kill(int(child), 9)
        process.stdin.close()
        process.stdout.close()


def test_a_forked_child_does_not_keep_its_parents_lease(tmp_path: Path):
    code = (
        "import os, sys, time\nfrom pathlib import Path\n"
        "from harness.store.lease import Owner\n"
        "owner = Owner(Path(sys.argv[1]))\n"
        "child = os.fork()\n"
        "if child == 0: time.sleep(60)\n"
        "print(owner.name, child, flush=True)\nsys.stdin.read()\n"
    )
    process = started(code, tmp_path)
    name, child = process.stdout.readline().split()
    try:
        process.kill()
        process.wait()
        # The fork lets go as soon as it gets to run.
        for _ in range(500):
            if not alive(tmp_path, name):
                break
            time.sleep(0.01)
        assert not alive(tmp_path, name)
    finally:
        os.kill(int(child), 9)
        process.stdin.close()
        process.stdout.close()


def test_living_owners_are_not_swept(tmp_path: Path):
    owner = Owner(tmp_path)
    sweep(tmp_path)
    assert alive(tmp_path, owner.name)
    owner.close()
    sweep(tmp_path / "not there")
