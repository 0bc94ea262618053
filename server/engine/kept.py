"""Prefilled prefixes on disk, so that the first turn after a restart need not compute them.

A state is only good for the very model, build and settings that made it: those are the folder's
name. Each file says for which tokens it is, carries the SHA-256 of all that follows, and is
checked before a byte of it reaches the library. The folder is bounded; the longest unused go.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from local import folders
from server.engine.ids import Ids, most_shared

log = logging.getLogger(__name__)

MOST_BYTES = 256 * 1024 * 1024
WORTH = 48
"""Tokens below which computing anew is as quick as it is simple."""
_MAGIC = b"uitweg kept state 1\n"
_HEAD = len(_MAGIC) + 32 + 4


@dataclass(frozen=True, slots=True)
class Kept:
    """One file, and the tokens whose state it holds."""

    path: Path
    tokens: Ids


class KeptStates:
    """The states that fit one model, one build and one set of settings."""

    def __init__(self, root: Path, fits: Mapping[str, str], most_bytes: int = MOST_BYTES) -> None:
        """`root`: for all models; `fits`: everything that a state depends on."""
        name = hashlib.sha256(json.dumps(dict(fits), sort_keys=True).encode()).hexdigest()
        self._root = root
        self._folder = root / name[:32]
        self._most_bytes = most_bytes
        self._kept = [kept for path in self._files() if (kept := _read_head(path))]

    def find(self, prompt: Ids, better_than: int) -> tuple[Kept, int] | None:
        """The state that shares most with a prompt, if worth it, and how many tokens it shares."""
        kept, shared = most_shared(self._kept, prompt)
        return (kept, shared) if kept and shared >= better_than + WORTH else None

    def has(self, tokens: Ids) -> bool:
        """Whether there is a state of exactly these tokens."""
        return any(np.array_equal(kept.tokens, tokens) for kept in self._kept)

    def load(self, kept: Kept) -> bytes | None:
        """A state; None, and the file gone, if it is not what it was when it was written."""
        try:
            data = kept.path.read_bytes()
            os.utime(kept.path)
        except OSError as error:
            log.warning("A kept state cannot be read: %s", error)
            self.discard(kept)
            return None
        body = memoryview(data)[len(_MAGIC) + 32 :]
        if hashlib.sha256(body).digest() != data[len(_MAGIC) : len(_MAGIC) + 32]:
            log.warning("%s is damaged and was removed", kept.path)
            self.discard(kept)
            return None
        return data[_HEAD + kept.tokens.nbytes :]

    def save(self, tokens: Ids, state: bytes) -> bool:
        """Keep a state; False, with a line in the log, where the disk does not take it."""
        body = len(tokens).to_bytes(4, "little") + tokens.astype("<i4").tobytes() + state
        if len(body) > self._most_bytes // 4:
            return False
        path = self._folder / f"{hashlib.sha256(tokens.tobytes()).hexdigest()[:32]}.state"
        try:
            folders.make(self._folder)
            with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as file:
                file.write(_MAGIC + hashlib.sha256(body).digest() + body)
            Path(file.name).replace(path)
        except OSError as error:
            log.warning("A prefilled state could not be kept: %s", error)
            return False
        self._kept.append(Kept(path, tokens.copy()))
        self._prune()
        return True

    def discard(self, kept: Kept) -> None:
        """This one is of no use."""
        kept.path.unlink(missing_ok=True)
        self._kept = [other for other in self._kept if other is not kept]

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("*.state")) if self._folder.is_dir() else []

    def _prune(self) -> None:
        """Keep all models' states together within bounds."""
        files = []
        for path in self._root.glob("*/*"):
            try:
                found = path.stat()
            except FileNotFoundError:
                continue
            files.append((found.st_mtime_ns, found.st_size, path))
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= self._most_bytes:
                break
            path.unlink(missing_ok=True)
            total -= size
            self._kept = [kept for kept in self._kept if kept.path != path]


def _read_head(path: Path) -> Kept | None:
    """Which tokens a file is for; None if it is no such file."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
            count = int.from_bytes(head[-4:], "little")
            fitting = head.startswith(_MAGIC) and 0 < 4 * count < path.stat().st_size
            ids = file.read(4 * count) if fitting else b""
    except OSError:
        return None
    if not fitting or len(ids) != 4 * count:
        path.unlink(missing_ok=True)
        return None
    return Kept(path, np.frombuffer(ids, "<i4").astype(np.int32))
