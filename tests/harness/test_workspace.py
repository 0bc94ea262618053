"""No path leaves the workspace, by any way, to read or to delete."""

from __future__ import annotations

import os
import socket
import stat
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harness.tool import ToolError
from harness.workspace import MAX_LISTED, Workspace, WorkspaceError, plain_path

SECRET = "the secret outside"


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A workspace with a neighbour that must not be touched."""
    root = tmp_path / "work"
    (root / "sub").mkdir(parents=True)
    (root / "notes.txt").write_text("notes")
    (root / "sub" / "deep.txt").write_text("deep")
    outside = tmp_path / "workside"
    outside.mkdir()
    (outside / "secret.txt").write_text(SECRET)
    return root


def read(workspace: Workspace, path: str) -> bytes:
    with workspace.open_read(path) as file:
        return file.read()


def test_files_inside_are_read_listed_and_deleted(room):
    workspace = Workspace(room)
    assert workspace.listing() == ["notes.txt", "sub/deep.txt"]
    assert read(workspace, "sub/deep.txt") == b"deep"
    workspace.delete("sub/deep.txt")
    assert workspace.listing() == ["notes.txt"]


def test_a_missing_file_says_what_to_do(room):
    with pytest.raises(ToolError) as caught:
        read(Workspace(room), "timeout.log")
    assert str(caught.value) == "no such file: timeout.log. Call list_files to see what exists."


def _escapes(room: Path) -> dict[str, str]:
    """Name to path of each way out; makes what it needs."""
    outside = room.parent / "workside" / "secret.txt"
    (room / "link").symlink_to(outside)
    (room / "linkdir").symlink_to(outside.parent)
    (room / "sub" / "up").symlink_to("..")
    (room / "dangling").symlink_to("nowhere")
    os.link(outside, room / "hard")
    os.mkfifo(room / "pipe")
    (room / "null").symlink_to("/dev/null")
    return {
        "dotdot": "../workside/secret.txt",
        "dotdot inside": "sub/../../workside/secret.txt",
        "absolute": str(outside),
        "sibling prefix": f"../{room.name}side/secret.txt",
        "link": "link",
        "link to a folder": "linkdir/secret.txt",
        "link inside": "sub/up/notes.txt",
        "dangling link": "dangling",
        "hard link": "hard",
        "pipe": "pipe",
        "device by link": "null",
        "folder": "sub",
        "the root": ".",
        "file as folder": "notes.txt/x",
        "empty": "",
        "blank": "  ",
        "nul": "notes.txt\0.log",
        "newline": "notes\n.txt",
        "very long": "x" * 5000,
        "very long name": "x" * 300,
        "very deep": "a/" * 400 + "b",
        "lone surrogate": "a\ud800",
        "backslash": "..\\secret.txt",
        "fullwidth dots": "\N{FULLWIDTH FULL STOP}\N{FULLWIDTH FULL STOP}/workside/secret.txt",
        "division slash": "..\N{DIVISION SLASH}workside",
        "another case": "NOTES.TXT",
        "percent": "%2e%2e/workside/secret.txt",
        "home": "~/secret.txt",
        "url": "file:///etc/passwd",
        "tab": "\t../x",
    }


def test_every_way_out_is_refused_in_words(room):
    workspace = Workspace(room)
    for name, path in _escapes(room).items():
        for act in (read, Workspace.delete, Workspace.fingerprint, Workspace.size):
            with pytest.raises(WorkspaceError) as caught:
                act(workspace, path)
            assert len(str(caught.value)) > 15, name
            assert SECRET not in str(caught.value)
    assert (room.parent / "workside" / "secret.txt").read_text() == SECRET
    assert (room / "hard").exists()


@pytest.mark.parametrize("path", ["../workside/secret.txt", "sub/../notes.txt", "..", "sub/.."])
def test_a_way_up_is_refused_for_what_it_is(room, path):
    """Nothing has the name `..` in a listing either, but that would not tell the model why."""
    with pytest.raises(WorkspaceError, match="leaves the workspace"):
        read(Workspace(room), path)


@pytest.mark.parametrize("act", [read, Workspace.delete])
def test_a_link_swapped_in_between_the_look_and_the_opening_is_not_followed(room, monkeypatch, act):
    secret = room.parent / "workside" / "secret.txt"
    look = os.stat

    def look_then_swap(name, **how):
        seen = look(name, **how)
        if name == "notes.txt" and stat.S_ISREG(seen.st_mode):
            (room / "notes.txt").unlink()
            (room / "notes.txt").symlink_to(secret)
        return seen

    monkeypatch.setattr("harness.workspace.os.stat", look_then_swap)
    with pytest.raises(WorkspaceError, match="symbolic link"):
        act(Workspace(room), "notes.txt")
    assert secret.read_text() == SECRET


def test_a_socket_and_a_device_are_refused(room):
    with socket.socket(socket.AF_UNIX) as listener:
        # Relative, since the address of a socket has room for about 100 bytes.
        before = Path.cwd()
        os.chdir(room)
        try:
            listener.bind("socket")
        finally:
            os.chdir(before)
        with pytest.raises(WorkspaceError, match="socket"):
            read(Workspace(room), "socket")
    with pytest.raises(WorkspaceError, match="device"):
        read(Workspace("/dev"), "null")


def test_links_and_special_files_are_not_listed(room):
    _escapes(room)
    (room / ".hidden").write_text("x")
    assert Workspace(room).listing() == ["hard", "notes.txt", "sub/deep.txt"]


def test_names_that_are_not_utf8_are_not_listed(room):
    if sys.platform == "darwin":
        pytest.skip("this file system takes UTF-8 names only")
    os.close(os.open(os.fsencode(room) + b"/\xff", os.O_CREAT))
    assert "\udcff" not in "".join(Workspace(room).listing())


def test_a_listing_has_an_end(room):
    for number in range(MAX_LISTED + 5):
        (room / f"{number}.txt").touch()
    assert len(Workspace(room).listing()) == MAX_LISTED


pieces = st.sampled_from(
    ["..", ".", "", "sub", "linkdir", "link", "hard", "pipe", "up", "secret.txt", "workside", "\0",
     "~", "...", "\uff0e\uff0e", "e\u0301", "\u202e", "a" * 256, "C:", "\\", "proc", "self"]
)  # fmt: skip


@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
@given(path=st.lists(pieces | st.text(max_size=8), max_size=6).map("/".join) | st.text(max_size=40))
@example(path="/etc/passwd")
def test_no_generated_path_leaves_the_workspace(path, generated_room):
    workspace = Workspace(generated_room)
    for act in (read, Workspace.delete):
        try:
            found = act(workspace, path)
        except WorkspaceError:
            continue
        assert act is Workspace.delete or SECRET.encode() not in found
    assert (generated_room.parent / "workside" / "secret.txt").read_text() == SECRET


@pytest.fixture
def generated_room(room):
    _escapes(room)
    return room


def test_a_path_swapped_during_the_call_stays_inside(room):
    """A second thread swaps a folder and a link to the outside for as long as it takes."""
    workspace = Workspace(room)
    (room / "swap").mkdir()
    (room / "swap" / "secret.txt").write_text("inside")
    (room / "aside").symlink_to(room.parent / "workside")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            (room / "swap").rename(room / "third")
            (room / "aside").rename(room / "swap")
            (room / "swap").rename(room / "aside")
            (room / "third").rename(room / "swap")

    thread = threading.Thread(target=swap)
    thread.start()
    seen = set()
    try:
        for _ in range(2000):
            try:
                seen.add(read(workspace, "swap/secret.txt"))
            except WorkspaceError:
                continue
    finally:
        stop.set()
        thread.join()
    assert seen <= {b"inside"}


def test_a_file_that_changed_after_the_approval_is_not_deleted(room):
    workspace = Workspace(room)
    approved = workspace.fingerprint("notes.txt")
    times = (room / "notes.txt").stat()
    (room / "notes.txt").write_text("NOTES")
    os.utime(room / "notes.txt", ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(WorkspaceError, match="changed since"):
        workspace.delete("notes.txt", approved)
    workspace.delete("notes.txt", workspace.fingerprint("notes.txt"))
    assert not (room / "notes.txt").exists()


def test_another_file_under_the_same_name_is_not_deleted(room):
    workspace = Workspace(room)
    approved = workspace.fingerprint("notes.txt")
    (room / "other").write_text("notes")
    (room / "other").replace(room / "notes.txt")
    with pytest.raises(WorkspaceError, match="changed since"):
        workspace.delete("notes.txt", approved)


def test_what_cannot_be_opened_or_deleted_is_said(room):
    if os.geteuid() == 0:
        pytest.skip("nothing is forbidden to this user")
    (room / "notes.txt").chmod(0)
    with pytest.raises(WorkspaceError, match="Permission denied"):
        read(Workspace(room), "notes.txt")


def test_the_root_may_be_reached_by_a_link_and_must_be_a_folder(room, tmp_path):
    (tmp_path / "alias").symlink_to(room)
    assert read(Workspace(tmp_path / "alias"), "notes.txt") == b"notes"
    with pytest.raises(NotADirectoryError, match="not a folder"):
        Workspace(room / "notes.txt")


def test_no_descriptor_is_left_open(room):
    fds = Path("/dev/fd")
    before = len(list(fds.iterdir()))
    workspace = Workspace(room)
    for path in _escapes(room).values():
        with pytest.raises(WorkspaceError):
            read(workspace, path)
    workspace.listing()
    assert len(list(fds.iterdir())) == before


@pytest.mark.parametrize(
    ("path", "plain"), [("./a//b/", "a/b"), ("a", "a"), ("../a", "../a"), ("/a", "/a"), (".", "")]
)
def test_one_file_has_one_path(path, plain):
    assert plain_path(path) == plain
