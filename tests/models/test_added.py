"""Models of a person's own: by path and from the hub, with a digest that holds."""

from __future__ import annotations

import hashlib
import io

import pytest

from models.added import add_file, add_from_hub
from models.catalogue import added_path, load
from models.errors import Damaged, NotAdded, NotFetched, NotGguf, Refused, UnknownModel
from models.progress import Lines
from models.store import Store

QUIET = Lines(io.StringIO())
REVISION = "0123456789abcdef0123456789abcdef01234567"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("UITWEG_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("UITWEG_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def file(tmp_path, gguf_bytes):
    path = tmp_path / "mine.gguf"
    path.write_bytes(gguf_bytes())
    return path


@pytest.fixture
def hub(server, monkeypatch, gguf_bytes):
    """The hub's address of one file."""
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    server.log.files[f"/them/it/resolve/{REVISION}/it.gguf"] = gguf_bytes()
    return server.log


def from_hub(name="its", revision=REVISION):
    return add_from_hub(name, "them/it", "it.gguf", revision, QUIET)


def test_a_file_stays_where_it_is_and_has_to_stay_the_same(file, gguf_bytes):
    add_file("mine", file)
    resolved = Store().ensure("mine", QUIET)
    assert (resolved.path, resolved.sha256) == (file, sha256(gguf_bytes()))
    file.write_bytes(gguf_bytes(filler=1))
    for use in (Store().verify, lambda name: Store().ensure(name, QUIET)):
        with pytest.raises(Damaged, match="If that is meant: uitweg models add mine --path"):
            use("mine")
    assert file.read_bytes() == gguf_bytes(filler=1), "a person's file is never removed"
    add_file("mine", file)
    assert Store().verify("mine").sha256 == sha256(gguf_bytes(filler=1))
    file.unlink()
    with pytest.raises(NotFetched, match="is gone"):
        Store().ensure("mine", QUIET)


def test_what_is_added_never_stands_in_for_the_default(file):
    add_file("mine", file)
    assert "mine" not in [model.name for model in load().choices(None)]
    assert load().choices("mine")[0].path == file


def test_what_llama_cpp_could_not_be_given_is_not_added(tmp_path):
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF" + b"\xff" * 100)
    with pytest.raises(NotGguf):
        add_file("bad", bad)
    assert not added_path().exists()


@pytest.mark.parametrize("name", ["", "../x", "A b", "/x", "qwen2.5-0.5b-instruct"])
def test_a_name_that_cannot_be(file, name, hub):
    with pytest.raises(NotAdded):
        add_file(name, file)
    with pytest.raises(NotAdded):
        from_hub(name)
    assert not hub.asked


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(NotAdded, match="There is no file"):
        add_file("mine", tmp_path / "none.gguf")


def test_from_the_hub_at_one_commit(hub, gguf_bytes):
    model = from_hub()
    assert model.sha256 == sha256(gguf_bytes())
    path = Store().verify("its").path
    path.unlink()
    assert Store().ensure("its", QUIET).path == path, "it is fetched again when it is missing"
    hub.files[f"/them/it/resolve/{REVISION}/it.gguf"] = gguf_bytes(filler=1)
    path.unlink()
    with pytest.raises(Exception, match="too long"):
        Store().ensure("its", QUIET)
    assert not path.exists()


@pytest.mark.parametrize("revision", ["main", "", REVISION[:12], REVISION.upper() + "x"])
def test_a_branch_is_no_commit(hub, revision):
    with pytest.raises(NotAdded, match="is no commit"):
        from_hub(revision=revision)


def test_what_the_hub_does_not_have_leaves_nothing(hub, tmp_path):
    hub.files.clear()
    with pytest.raises(Refused):
        from_hub()
    hub.files[f"/them/it/resolve/{REVISION}/it.gguf"] = b"<html>"
    with pytest.raises(NotGguf):
        from_hub()
    assert not added_path().exists()
    assert not list((tmp_path / "cache" / "models").glob("its.gguf*[!k]"))
    with pytest.raises(UnknownModel):
        Store().verify("its")


def test_a_damaged_list_is_said():
    added_path().parent.mkdir(parents=True)
    added_path().write_text("[")
    with pytest.raises(Damaged, match="Move it away"):
        Store()
