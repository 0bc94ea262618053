"""Models made on this machine: on record, checked, and used only by name."""

from __future__ import annotations

import json

import pytest

from models import disk, made
from models.errors import Damaged
from models.store import Store


@pytest.fixture
def store(tmp_path):
    return Store(folder=tmp_path)


@pytest.fixture
def one(store, gguf_bytes):
    part = store.folder / "small-q4_0.gguf.part"
    part.write_bytes(gguf_bytes())
    record = made.Made(
        name="small-q4_0",
        made_of="small",
        made_of_sha256="0" * 64,
        profile="small",
        how="by hand",
        bytes=disk.size(part),
        sha256=disk.digest(part),
    )
    made.put(store.folder, part, record)
    return record


def test_it_is_found_and_checked_by_its_name(store, one) -> None:
    resolved = store.ensure("small-q4_0", None)
    assert (resolved.name, resolved.sha256) == (one.name, one.sha256)
    assert resolved.path == one.path(store.folder)
    assert list(made.every(store.folder)) == [one]
    assert made.find(store.folder, "other") is None


def test_a_changed_file_is_refused_and_says_what_to_do(store, one) -> None:
    path = one.path(store.folder)
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(Damaged, match="uitweg models optimise small"):
        store.ensure("small-q4_0", None)


def test_what_is_no_record_is_passed_over(store, one) -> None:
    (store.folder / "a.json").write_text("{")
    (store.folder / "b.json").write_text(json.dumps({"name": "b"}))
    (store.folder / "c.json").write_text("[]")
    assert [found.name for found in made.every(store.folder)] == ["small-q4_0"]
    one.path(store.folder).unlink()
    assert list(made.every(store.folder)) == []
