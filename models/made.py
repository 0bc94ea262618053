"""Models that were made on this machine out of fetched ones.

Beside `NAME.gguf` lies `NAME.json`, which says what it was made of and what its digest must be.
They are used only when a person names them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from models import disk, gguf
from models.errors import Damaged


@dataclass(frozen=True, slots=True)
class Made:
    """What is on record of one such file."""

    name: str
    made_of: str
    made_of_sha256: str
    profile: str
    how: str
    bytes: int
    sha256: str

    def path(self, folder: Path) -> Path:
        """Where it is, in the folder for models."""
        return folder / f"{self.name}.gguf"


def put(folder: Path, part: Path, made: Made) -> None:
    """Put a finished file into place, and its record beside it."""
    record = made.path(folder).with_suffix(".json")
    record.write_text(json.dumps(asdict(made), indent=2) + "\n", encoding="utf-8")
    disk.put_in_place(part, made.path(folder))


def find(folder: Path, name: str) -> Made | None:
    """The record of this name, if there is one."""
    return next((made for made in every(folder) if made.name == name), None)


def every(folder: Path) -> Iterator[Made]:
    """All of them; what cannot be read as a record is none."""
    for path in sorted(folder.glob("*.json")):
        try:
            made = Made(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            continue
        if made.name == path.stem and made.path(folder).exists():
            yield made


def check(folder: Path, made: Made) -> None:
    """See that the file is what was made.

    Raises:
        Damaged: where it is not; says how to make it anew.
    """
    path = made.path(folder)
    if disk.size(path) != made.bytes or disk.digest(path) != made.sha256:
        raise Damaged(
            f"{path} is not what was made. Make it anew with: uitweg models optimise {made.made_of}"
        )
    gguf.check(path)
