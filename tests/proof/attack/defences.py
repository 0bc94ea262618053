"""Each defence is taken out of a copy of the program; the test named beside it must then fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from attack.forks import shared
from attack.tally import Tally

TITLE = "Each defence taken out"
ROOT = Path(__file__).resolve().parents[3]
COPIED = ("harness", "local", "models", "server", "uitweg", "web", "tests", "pyproject.toml")
SECONDS = 240
RUNNER = "tests/harness/test_runner.py"
GATE = "tests/web/test_gate.py"
ROOM = "tests/harness/test_workspace.py"


class Defence(NamedTuple):
    """One defence: where it stands, and what stands there without it."""

    what: str
    file: str
    old: str
    new: str
    test: str


DEFENCES = (
    Defence(
        "digest binding: what runs is what was approved",
        "harness/approval/gate.py",
        'if decision is not None and decision.digest != digest and decision.action != "reject":',
        "if False:",
        f"{RUNNER}::test_h2_a_file_that_changed_after_the_approval_is_asked_about_again",
    ),
    Defence(
        "digest binding: a decision is on what was shown",
        "harness/store/decisions.py",
        "if waiting.digest != shown:",
        "if False:",
        f"{RUNNER}::test_h2_an_approval_of_other_arguments_is_refused",
    ),
    Defence(
        "a decision is used once, and the first one stands",
        "harness/store/decisions.py",
        "if row is not None and (settled or call_id in state.decisions):",
        "if False:",
        f"{RUNNER}::test_w3_the_first_decision_wins_and_the_second_is_told_who_was_first",
    ),
    Defence(
        "lease: one carrier at a time",
        "harness/store/store.py",
        "if holder != owner and (who := self._alive(holder, run_id)):",
        "if (who := None):",
        "tests/harness/test_crash.py::test_h10_a_run_carried_elsewhere_is_refused_here_and_can_be_"
        "stopped",
    ),
    Defence(
        "lease: one that a dead process cannot hold",
        "harness/store/lease.py",
        "fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)",
        "raise BlockingIOError",
        "tests/harness/test_crash.py::test_h10_the_lease_of_a_killed_process_is_free",
    ),
    Defence(
        "journal: a write that had begun is in doubt, not begun again",
        "harness/calls.py",
        "        calls=[started],\n        used=record.call_id,\n",
        "        used=record.call_id,\n",
        "tests/harness/test_crash.py::test_h9_a_write_that_was_cut_off_goes_to_a_person",
    ),
    Defence(
        "journal: `started` is on the disk before a write runs",
        "harness/calls.py",
        "    else:\n        await run.journal.durable()\n    return started",
        "    return started",
        "tests/harness/test_crash.py::test_h9_a_write_that_was_cut_off_goes_to_a_person",
    ),
    Defence(
        "Host check: this server's names only",
        "local/guard.py",
        "if host.lower() not in allowed_hosts:",
        "if False:",
        f"{GATE}::test_w2_no_handler_runs_under_another_name",
    ),
    Defence(
        "Host check, at the model server",
        "local/guard.py",
        "if host.lower() not in allowed_hosts:",
        "if False:",
        "tests/server/test_app.py::test_s14_a_web_page_cannot_ask",
    ),
    Defence(
        "Origin check",
        "local/guard.py",
        'if origin is None or origin.lower() in {f"http://{name}" for name in allowed_hosts}:',
        "if True:",
        f"{GATE}::test_w2_no_handler_runs_for_another_site",
    ),
    Defence(
        "CSRF token",
        "web/app.py",
        "if g.session is None or not services().sessions.csrf_ok(g.session, given):",
        "if False:",
        f"{GATE}::test_w2_no_change_without_its_csrf_token",
    ),
    Defence(
        "session cookie",
        "web/gate.py",
        'if session is None and not environ.get("PATH_INFO", "").startswith(OPEN_PATHS):',
        "if False:",
        f"{GATE}::test_w2_no_handler_runs_without_access",
    ),
    Defence(
        "token of the model server",
        "server/app.py",
        'if hmac.compare_digest(sent.encode(), f"Bearer {self._token}".encode()):',
        "if True:",
        "tests/server/test_app.py::test_with_a_token_only_health_is_open",
    ),
    Defence(
        "path check: no `..`",
        "harness/workspace.py",
        'if ".." in names:',
        "if False:",
        f"{ROOM}::test_a_way_up_is_refused_for_what_it_is",
    ),
    Defence(
        "path check: no link is followed to a folder",
        "harness/workspace.py",
        "_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC",
        "_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC",
        f"{ROOM}::test_every_way_out_is_refused_in_words",
    ),
    Defence(
        "path check: no link that is swapped in is followed",
        "harness/workspace.py",
        "_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC",
        "_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC",
        f"{ROOM}::test_a_link_swapped_in_between_the_look_and_the_opening_is_not_followed",
    ),
    Defence(
        "path check: no file with a second name",
        "harness/workspace.py",
        "elif opened.st_nlink > 1:",
        "elif False:",
        f"{ROOM}::test_every_way_out_is_refused_in_words",
    ),
    Defence(
        "a file that changed after its approval is not deleted",
        "harness/workspace.py",
        "if expected and _fingerprint(opened) != expected:",
        "if False:",
        f"{ROOM}::test_a_file_that_changed_after_the_approval_is_not_deleted",
    ),
    Defence(
        "GGUF check before llama.cpp",
        "models/gguf.py",
        "    if data + last > reader.size:",
        "    if False:",
        "tests/models/test_gguf.py::test_every_shorter_file_is_refused",
    ),
    Defence(
        "sandbox of chat templates",
        "server/template.py",
        "class _Environment(ImmutableSandboxedEnvironment):",
        "from jinja2 import Environment\n\n\nclass _Environment(Environment):",
        "tests/server/test_template.py::test_a_hostile_template_ends_as_a_bad_request",
    ),
)


def attack(tally: Tally, folder: Path, long: bool) -> None:
    """In the small form only see that each stands where it is said to, and has its test."""
    for defence in DEFENCES:
        tally.tried("defences that stand where this list says", _stands(defence))
    if not long:
        return
    code, said = _test(ROOT, *dict.fromkeys(defence.test for defence in DEFENCES))
    tally.tried("all their tests pass with them", f"{code}: {said}" if code else None)
    for defence, problem in shared(_take_out, DEFENCES):
        tally.tried(defence.what, problem)
        how = "passes even" if problem else "fails"
        tally.note(defence.what, f"`{defence.test.rpartition('/')[2]}` {how} without it")


def _stands(defence: Defence) -> str | None:
    text = (ROOT / defence.file).read_text("utf-8")
    if text.count(defence.old) != 1:
        return (
            f"{defence.what}: `{defence.old}` is in {defence.file} {text.count(defence.old)} times"
        )
    file, _, test = defence.test.partition("::")
    path = ROOT / file
    if not path.exists() or f"def {test}(" not in path.read_text("utf-8"):
        return f"{defence.what}: there is no test {defence.test}"
    return None


def _take_out(defence: Defence) -> tuple[Defence, str | None]:
    """Run the test without the defence, when it must fail."""
    with tempfile.TemporaryDirectory(prefix="uitweg-without-") as folder:
        copy = Path(folder)
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, copy / name)
            else:
                shutil.copy(ROOT / name, copy / name)
        file = copy / defence.file
        file.write_text(file.read_text("utf-8").replace(defence.old, defence.new), "utf-8")
        code, said = _test(copy, defence.test)
    # 1 is "tests failed"; anything else is not a test that noticed.
    return defence, None if code == 1 else f"pytest ends with {code} without it: {said}"


def _test(folder: Path, *tests: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, "it hangs"
    return done.returncode, done.stdout[-600:]
