"""Malformed GGUF files: refused by the check, and what passes it does not end llama.cpp."""

from __future__ import annotations

import os
import random
import struct
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from attack.forks import HUNG, Fork, shared
from attack.tally import Tally
from models import gguf
from models.errors import ModelError, NotGguf
from models.store import Store

TITLE = "Malformed GGUF files"
MUTATIONS = 1000
REAL = "smollm2-135m-instruct"
REAL_HEADER = 1_785_664
"""Bytes: where its header ends."""
NUMBERS = (0, 1, 2, 31, 255, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1)
LOAD_SECONDS = 300.0


class Mutation(NamedTuple):
    """A copy of a file with its header changed."""

    what: str
    source: Path
    header: int
    """Bytes of the header; only there it is changed, since what follows is numbers of any kind."""
    target: Path
    seed: int
    load: bool
    """Whether what passes is given to llama.cpp."""


class Outcome(NamedTuple):
    """What became of it."""

    mutation: Mutation
    passed: bool
    problem: str | None


def attack(tally: Tally, folder: Path, long: bool) -> None:
    """Mutations of a tiny file and of a real model's header."""
    engine = _engine()
    tiny = folder / "tiny.gguf"
    tiny.write_bytes(_tiny())
    size = tiny.stat().st_size
    mutations = [
        Mutation("mutations of a tiny file", tiny, size, folder / f"t{seed}", seed, engine)
        for seed in range(MUTATIONS if long else 300)
    ]
    real, of_real = _real(), f"mutations of the header of {REAL}"
    if real is None:
        tally.note(of_real, "this model is not here")
    else:
        mutations += [
            Mutation(of_real, real, REAL_HEADER, folder / f"r{seed}", seed, engine)
            for seed in range(200 if long else 6)
        ]
    passed: Counter[str] = Counter()
    for outcome in shared(_try, mutations):
        what = outcome.mutation.what
        passed[what] += outcome.passed
        tally.tried(what, outcome.problem and f"{outcome.problem} (seed {outcome.mutation.seed})")
    for what, count in passed.items():
        given = (
            "loaded or refused by llama.cpp, which went on" if engine else "not loaded: no engine"
        )
        tally.note(what, f"{tally.rows[what].tried - count} refused by the check; {count} {given}")


def _engine() -> bool:
    try:
        import llama_cpp  # noqa: F401 - only whether it is there
    except ImportError:
        return False
    return True


def _real() -> Path | None:
    try:
        return Store().verify(REAL).path
    except ModelError:
        return None


def _tiny() -> bytes:
    """Three keys and two tensors."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    keys = [
        text("general.architecture") + struct.pack("<I", 8) + text("llama"),
        text("general.alignment") + struct.pack("<II", 4, 32),
        text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b"),
    ]
    tensors = [
        text("one") + struct.pack("<IQQIQ", 2, 32, 2, 8, 0),
        text("two") + struct.pack("<IQIQ", 1, 16, 0, 96),
    ]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys + tensors)
    return head + bytes(-len(head) % 32) + bytes(96 + 64)


def _mutate(data: bytearray, rng: random.Random) -> None:
    """One to three things wrong: bits, numbers, pieces gone, doubled or moved, the end."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(data))
        match rng.randrange(6):
            case 0:
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                data[at : at + 8] = struct.pack("<Q", rng.choice(NUMBERS))
            case 2:
                data[at : at + 4] = struct.pack("<I", rng.choice(NUMBERS) % 2**32)
            case 3:
                del data[at : at + rng.choice((1, 4, 8, 100))]
            case 4:
                data[at:at] = data[at : at + rng.choice((1, 4, 8, 100))]
            case _:
                data[at : at + 16] = rng.randbytes(16)


def _try(mutation: Mutation) -> Outcome:
    rng = random.Random(mutation.seed)
    with mutation.source.open("rb") as file:
        data = bytearray(file.read(mutation.header))
    _mutate(data, rng)
    size = mutation.source.stat().st_size - mutation.header + len(data)
    if rng.random() < 0.1:
        size = rng.randrange(size)
    with mutation.target.open("wb") as file:
        file.write(data)
        file.truncate(size)
    try:
        return _judge(mutation)
    finally:
        mutation.target.unlink()


def _judge(mutation: Mutation) -> Outcome:
    try:
        gguf.check(mutation.target)
    except NotGguf:
        return Outcome(mutation, False, None)
    except Exception as error:  # noqa: BLE001 - exactly what must not come
        return Outcome(mutation, False, f"{type(error).__name__}: {error}")
    if not mutation.load:
        return Outcome(mutation, True, None)
    child = Fork(partial(_load, mutation.target))
    code = child.wait(LOAD_SECONDS)
    if code:
        how = "hung" if code == HUNG else f"ended with {code}"
        return Outcome(mutation, True, f"it passed the check, and llama.cpp {how}")
    return Outcome(mutation, True, None)


def _load(path: Path) -> bool:
    """Give the file to llama.cpp as the engine does; whether it took it."""
    import llama_cpp

    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    llama_cpp.llama_backend_init()
    params: Any = llama_cpp.llama_model_default_params()
    params.n_gpu_layers = 0
    model = llama_cpp.llama_model_load_from_file(str(path).encode(), params)
    return bool(model)
