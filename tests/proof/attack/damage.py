"""A store that is damaged or of a newer version: said clearly, read where it is whole."""

from __future__ import annotations

import hashlib
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from attack.forks import HUNG, Fork, shared
from attack.provider import provider
from attack.readers import Reading, read_everything
from attack.reference import EARLIER, RUN, carry, earlier_run, new_place
from attack.tally import Tally
from harness.store.schema import MIGRATIONS

TITLE = "Damaged and newer stores"
RUNS = (EARLIER, RUN)
PAGE = 4096
VALUES: tuple[Any, ...] = (
    *(None, "", "x", "{", "null", "[]", '{"a": 1}', "\ud7ff\u0000"),
    *(-1, 2**62, 1e308, b"", b"\xff\xfe"),
)

Change = Callable[[bytearray, random.Random], None]


class Damage(NamedTuple):
    """One damaged copy of a whole store."""

    what: str
    whole: Path
    path: Path
    seed: int = 0
    """For what is done to the bytes; see `CHANGES`."""
    cell: tuple[str, str, Any] | None = None
    """Or else a table, a column, and what to put there for one run."""


def attack(tally: Tally, folder: Path, long: bool) -> None:
    """Damage copies of a store with two runs, and read them in every way."""
    with provider() as url:
        place = new_place(url)
        for work in (earlier_run, carry):
            Fork(partial(work, place)).wait()
    whole = folder / "whole.db"
    shutil.copy(place.path, whole)
    place.remove()
    sound = _read(whole)
    same = others = total = 0
    for damage, reading, problem in shared(_judge, _damages(whole, folder, long)):
        tally.tried(damage.what, problem and f"{problem} ({damage.cell or damage.seed})")
        if reading is not None:
            read = [run for run in RUNS if reading.runs.get(run) == sound.runs[run]]
            total, same, others = total + 1, same + (len(read) == 2), others + (len(read) == 1)
    tally.note(
        "bits flipped",
        f"of all {total} damaged stores, {same} read the same as before, "
        f"{others} for one run of two",
    )
    _newer(tally, whole, folder, long)


def _read(path: Path) -> Reading:
    child = Fork(partial(read_everything, path, RUNS))
    code = child.wait()
    if code == 0:
        reading: Reading = child.result
        return reading
    return Reading(problem="it hangs" if code == HUNG else f"the reader ended with {code}")


def _damages(whole: Path, folder: Path, long: bool) -> Iterator[Damage]:
    for what in CHANGES:
        for seed in range(40 if long else 3):
            yield Damage(what, whole, folder / f"{what}-{seed}.db", seed)
    cells = list(_cells(whole))
    for number, cell in enumerate(cells):
        if number % (2 if long else len(cells) // 12) == 0:
            path = folder / f"cell-{number}.db"
            yield Damage("a value of one run replaced", whole, path, cell=cell)


def _cells(whole: Path) -> Iterator[tuple[str, str, Any]]:
    with sqlite3.connect(whole) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master "
                                                         "WHERE type = 'table'")]  # fmt: skip
        for table in tables:
            for column in connection.execute(f"PRAGMA table_info({table})"):
                if column[1] not in ("at", "run", "run_id"):
                    yield from ((table, column[1], value) for value in VALUES)
    connection.close()


def _flip(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.choice((1, 8, 64))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _cut(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)) :]


def _tear(data: bytearray, rng: random.Random) -> None:
    """The last part never reached the disk: zeros from some sector on."""
    start = rng.randrange(1, len(data) // 512) * 512
    data[start:] = bytes(len(data) - start)


def _put_page(data: bytearray, rng: random.Random, page: bytes) -> None:
    start = rng.randrange(len(data) // PAGE) * PAGE
    data[start : start + PAGE] = page


def _zeros(data: bytearray, rng: random.Random) -> None:
    _put_page(data, rng, bytes(PAGE))


def _noise(data: bytearray, rng: random.Random) -> None:
    _put_page(data, rng, rng.randbytes(PAGE))


def _other_page(data: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(data) // PAGE) * PAGE
    _put_page(data, rng, bytes(data[start : start + PAGE]))


CHANGES: dict[str, Change] = {
    "bits flipped": _flip,
    "cut short": _cut,
    "its end torn off": _tear,
    "a page of zeros": _zeros,
    "a page of noise": _noise,
    "a page from elsewhere in it": _other_page,
}


def _judge(damage: Damage) -> tuple[Damage, Reading | None, str | None]:
    """Damage a copy and read it; what is wrong with how that went."""
    data = bytearray(damage.whole.read_bytes())
    if damage.cell is None:
        CHANGES[damage.what](data, random.Random(damage.seed))
    damage.path.write_bytes(data)
    if damage.cell is not None and not _replace(damage.path, *damage.cell):
        return damage._replace(what="a value that the table itself refuses"), None, None
    before = hashlib.sha256(damage.path.read_bytes()).digest()
    reading = _read(damage.path)
    problem = reading.problem
    if hashlib.sha256(damage.path.read_bytes()).digest() != before:
        problem = problem or "reading changed the file"
    if damage.cell is not None and reading.runs.get(EARLIER) is None:
        problem = problem or f"the run beside it cannot be read: {reading.refused}"
    damage.path.unlink()
    return damage, reading, problem


def _replace(path: Path, table: str, column: str, value: Any) -> bool:
    """Put `value` into one row of the reference run; whether the table takes it."""
    key = "run" if table in ("runs", "heads", "decisions", "cancel_requests") else "at >> 32"
    connection = sqlite3.connect(path)
    try:
        with connection:
            connection.execute(
                f"UPDATE {table} SET {column} = ? WHERE {key} = 2"
                + (f" AND at = (SELECT max(at) FROM {table})" if ">>" in key else ""),
                (value,),
            )
    except sqlite3.IntegrityError:
        return False
    finally:
        connection.close()
    return True


def _newer(tally: Tally, whole: Path, folder: Path, long: bool) -> None:
    """A store that a newer program wrote is not touched."""
    what = "a store of a newer version"
    for version in range(len(MIGRATIONS) + 1, len(MIGRATIONS) + (10 if long else 3)):
        path = folder / f"newer-{version}.db"
        shutil.copy(whole, path)
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA user_version = {version}")
        connection.close()
        before = path.read_bytes()
        reading = _read(path)
        problem = reading.problem
        if not reading.refused.startswith("StoreTooNew"):
            problem = problem or f"it is not refused: {reading.refused or reading.runs}"
        tally.tried(what, problem or (None if path.read_bytes() == before else "it was changed"))
