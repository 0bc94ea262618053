"""Paths that try to leave the workspace, read and deleted, also while a link is swapped in."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
import threading
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

from attack.tally import Tally
from harness.cancel import CancelToken
from harness.output import CappedText
from harness.runner import Runner
from harness.scripted_model import Call, ScriptedModel
from harness.state import Decision, Settings
from harness.store import Store
from harness.tool import InvalidArguments, ToolContext, ToolError
from harness.tools import delete_file, read_file
from harness.workspace import Workspace

TITLE = "Paths out of the workspace"
SECRET = "the secret outside"
INSIDE = "plain text inside"
PARTS = (
    *("..", ".", "", "...", ".. ", " ..", "..\\", "%2e%2e", "\uff0e\uff0e", "\u2025", "..;", "~"),
    *("sub", "notes.txt", "outside", "secret.txt", "link-out", "link-file", "link-up", "hard.txt"),
    *("pipe", "socket", "device", "NOTES.TXT", "nötes.txt", "a" * 255, "a" * 5000, "\x00", "\n"),
    *("\u202e", "\ud800", "C:", "proc", "self", "root", "cwd", "dev", "null", "etc", "passwd"),
    *("files-sibling", "$HOME", "*", "-rf"),
)


class Ground:
    """A workspace with everything in it that could lead out, and what lies outside."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "files"
        self.outside = folder / "outside"
        sibling = folder / "files-sibling"
        for made in (self.root / "sub", self.outside, sibling):
            made.mkdir(parents=True)
        self.secrets = [self.outside / "secret.txt", sibling / "secret.txt"]
        for path in self.secrets:
            path.write_text(SECRET)
        for path in (self.root / "notes.txt", self.root / "sub" / "notes.txt"):
            path.write_text(INSIDE)
        (self.root / unicodedata.normalize("NFC", "nötes.txt")).write_text(INSIDE)
        (self.root / "link-out").symlink_to(self.outside)
        (self.root / "link-file").symlink_to(self.secrets[0])
        (self.root / "link-up").symlink_to("..")
        (self.root / "sub" / "link-out").symlink_to("../../outside")
        (self.root / "hard.txt").hardlink_to(self.secrets[0])
        os.mkfifo(self.root / "pipe")
        with socket.socket(socket.AF_UNIX) as listening, contextlib.suppress(OSError):
            listening.bind(str(self.root / "socket"))
        with contextlib.suppress(OSError):  # only root can make one
            os.mknod(self.root / "device", 0o020666, os.makedev(1, 3))
        self.workspace = Workspace(self.root)
        self.before = self.state_outside()

    def state_outside(self) -> list[tuple[str, str]]:
        """Names and contents of all that lies outside."""
        return [(path.name, path.read_text()) for path in self.secrets if path.exists()]

    def read(self, path: str) -> str:
        """What `read_file` gives; nothing where it refuses."""
        return _said(read_file.call, {"path": path}, self._context())

    def delete(self, path: str) -> str:
        """The same of `delete_file`."""
        return _said(delete_file.call, {"path": path}, self._context())

    def _context(self) -> ToolContext:
        return ToolContext(run_id="r", call_id="c", workspace=self.workspace, cancel=CancelToken())


def _said(call: Callable[..., object], arguments: dict[str, str], context: ToolContext) -> str:
    try:
        result = call(arguments, context)
    except (ToolError, InvalidArguments) as refusal:
        return "" if str(refusal).strip() else "an empty refusal"
    return result.text() if isinstance(result, CappedText) else str(result)


def attack(tally: Tally, folder: Path, long: bool) -> None:
    """Each path is read and deleted; nothing outside is seen or changed."""
    ground = Ground(folder / "generated")
    rng = random.Random(3)
    for path in _paths(ground, rng, 1000 if long else 200):
        for what, use in (("read", ground.read), ("delete", ground.delete)):
            tally.tried(f"generated paths, {what}", _judge(ground, path, use))
        for keep in ("notes.txt", "sub/notes.txt"):
            (ground.root / keep).write_text(INSIDE)
    _swapped(tally, folder, long)
    _changed_after_approval(tally, folder, long)


def _judge(ground: Ground, path: str, use: Callable[[str], str]) -> str | None:
    shown = repr(path if len(path) < 80 else path[:80])
    try:
        said = use(path)
    except Exception as error:  # noqa: BLE001 - a path may raise nothing but a refusal
        return f"{shown} raised {type(error).__name__}: {error}"
    if said == "an empty refusal":
        return f"{shown} was refused without a word"
    if SECRET in said:
        return f"{shown} showed what is outside"
    if ground.state_outside() != ground.before:
        return f"{shown} changed what is outside"
    return None


def _paths(ground: Ground, rng: random.Random, count: int) -> Iterator[str]:
    secret = ground.secrets[0]
    yield from (str(secret), f"/{secret}", "../outside/secret.txt", "../files-sibling/secret.txt")
    yield from (f"{ground.root}-sibling/secret.txt", "link-out/secret.txt", "link-file")
    yield from (f"/proc/self/root{secret}", "/dev/stdin", "/dev/zero", "pipe", "socket", "device")
    for _ in range(count - 13):
        parts = [rng.choice(PARTS) for _ in range(rng.randint(1, 6))]
        path = rng.choice(("/", "/", "/", "//", "\\", "/./")).join(parts)
        if rng.random() < 0.2:
            path = rng.choice(("/", "./", "~/", "file://", str(ground.root) + "/")) + path
        if rng.random() < 0.1:
            path = unicodedata.normalize(rng.choice(("NFD", "NFKC", "NFKD")), path)
        yield path


def _swapped(tally: Tally, folder: Path, long: bool) -> None:
    """A name is in turn a file, a link to outside, a folder and a link to one, all the while."""
    ground = Ground(folder / "swapped")
    stop = threading.Event()

    def swap() -> None:
        target = ground.root / "swap"
        makers: list[Callable[[Path], object]] = [
            lambda new: new.write_text(INSIDE),
            lambda new: new.symlink_to(ground.secrets[0]),
            lambda new: new.symlink_to(ground.outside),
            lambda new: new.hardlink_to(ground.secrets[0]),
        ]
        number = 0
        while not stop.is_set():
            fresh = ground.root / ".fresh"
            fresh.unlink(missing_ok=True)
            makers[number % len(makers)](fresh)
            fresh.replace(target)
            number += 1

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for number in range(6000 if long else 600):
            path = ("swap", "swap/secret.txt")[number % 2]
            what, use = (("read", ground.read), ("delete", ground.delete))[number // 2 % 2]
            tally.tried(f"a link swapped in during the call, {what}", _judge(ground, path, use))
    finally:
        stop.set()
        swapper.join()


def _made_a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("twin2"))


def _changed_after_approval(tally: Tally, folder: Path, long: bool) -> None:
    """The file is another one than was approved: it is asked again and not deleted."""
    changes: dict[str, Callable[[Path], object]] = {
        "written anew": lambda path: path.write_text("something else"),
        "one byte more": lambda path: path.open("a").write("x"),
        "replaced by one that looks the same": lambda path: (
            path.with_name("twin").write_bytes(path.read_bytes()),
            path.with_name("twin").replace(path),
        ),
        "touched": lambda path: os.utime(path, (1, 1)),
        "another mode": lambda path: path.chmod(0o600),
        "made a link": _made_a_link,
    }
    for number in range(20 if long else 1):
        for name, change in changes.items():
            at = folder / f"approved-{number}-{name}"
            tally.tried(f"after the approval the file was {name}", asyncio.run(_ask(at, change)))


async def _ask(at: Path, change: Callable[[Path], object]) -> str | None:
    root = at / "files"
    root.mkdir(parents=True)
    target = root / "old.log"
    target.write_text("as it was shown")
    model = ScriptedModel(Call("delete_file", {"path": "old.log"}), "Done.")
    settings = Settings(
        base_url="http://127.0.0.1:9/v1",
        model="scripted",
        workspace=str(root),
        tools=("delete_file",),
    )
    with Store.open(at / "runs.db") as store:
        async with Runner(store, provider_factory=lambda _: model) as runner:
            state = await runner.start("Delete it.", settings, run_id="r")
            shown = state.interruption
            assert shown is not None
            digest = shown.digest  # type: ignore[union-attr]  # it waits for an approval
            await runner.decide("r", Decision(call_id="call_1_1", action="approve", digest=digest))
            change(target)
            state = await runner.resume("r")
    if not (target.exists() or target.is_symlink()):
        return "it was deleted all the same"
    if state.interruption is None or state.interruption.kind != "approval":
        return f"it was not asked again: {state.status}"
    return None
