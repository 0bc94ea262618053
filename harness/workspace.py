"""The folder that the file tools see, and nothing else.

A path from a model is walked one name at a time from the workspace's own
directory, each step relative to the open directory before it and never through
a symbolic link. So a path cannot leave by `..`, by an absolute name, by a link
that was there or by one that is swapped in during the call: there is no moment
at which a name is looked up from the outside. A regular file with a second
name (a hard link) is refused too, because its other name may lie outside.

Every refusal is a `ToolError` in words: what is wrong and what to do next.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from harness.tool import ToolError

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

MAX_PATH_BYTES = 1024
MAX_LISTED = 1000
_HINT = "Call list_files to see what exists."


class WorkspaceError(ToolError):
    """A path cannot be used. The text is for the model."""


class NoSuchFile(WorkspaceError):
    """Nothing has that name."""


def plain_path(path: str) -> str:
    """`path` without what does not count in it: `./a//b` is `a/b`. Refuses nothing."""
    names = [name for name in path.split("/") if name not in ("", ".")]
    return ("/" if path.startswith("/") else "") + "/".join(names)


class Workspace:
    """File access confined to one folder.

    Args:
        root: An existing folder. Raises `NotADirectoryError` where it is none.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise NotADirectoryError(f"The workspace {self.root} is not a folder.")

    def listing(self) -> list[str]:
        """Paths of the regular files, sorted, relative to the root, at most `MAX_LISTED`.

        Links, special files, names that begin with a dot and names that are
        not UTF-8 are left out.
        """
        found: list[str] = []
        top = os.open(self.root, _DIRECTORY)
        try:
            for path in _files_below(top, ""):
                found.append(path)
                if len(found) >= MAX_LISTED:
                    break
        finally:
            os.close(top)
        return sorted(found)

    @contextmanager
    def open_read(self, path: str) -> Iterator[BinaryIO]:
        """The file at `path`, open for reading. Raises `WorkspaceError`."""
        with self._parent(path) as (parent, name):
            descriptor = _open_regular(parent, name, path)
        with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 - takes a descriptor
            yield file

    def fingerprint(self, path: str) -> str:
        """A short text that changes when the file at `path` changes or is another one.

        Made of device, inode, size and both times in nanoseconds: the change
        time moves even where the modification time was set back.
        """
        with self.open_read(path) as file:
            return _fingerprint(os.fstat(file.fileno()))

    def size(self, path: str) -> int:
        """Bytes of the file at `path`. Raises `WorkspaceError`."""
        with self.open_read(path) as file:
            return os.fstat(file.fileno()).st_size

    def delete(self, path: str, expected: str = "") -> None:
        """Remove the file at `path`.

        Args:
            path: Relative to the root.
            expected: The `fingerprint` that was approved, if one was; a file
                that has another one now is left alone.

        Raises `WorkspaceError`. The name is removed relative to the open
        folder and never followed, so nothing outside can be removed.
        """
        with self._parent(path) as (parent, name):
            descriptor = _open_regular(parent, name, path)
            try:
                opened = os.fstat(descriptor)
                if expected and _fingerprint(opened) != expected:
                    raise WorkspaceError(
                        f"{path} changed since its deletion was approved, so it was not deleted."
                    )
                now = os.stat(name, dir_fd=parent, follow_symlinks=False)
                if (now.st_dev, now.st_ino) != (opened.st_dev, opened.st_ino):
                    raise WorkspaceError(f"{path} was replaced meanwhile, so it was not deleted.")
                os.unlink(name, dir_fd=parent)
            except OSError as error:
                raise WorkspaceError(f"{path} could not be deleted: {error.strerror}.") from None
            finally:
                os.close(descriptor)

    @contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        """The open folder that holds the last name of `path`, and that name."""
        names = _names(path)
        folder = os.open(self.root, _DIRECTORY)
        try:
            for name in names[:-1]:
                deeper = _open_folder(folder, name, path)
                os.close(folder)
                folder = deeper
            yield folder, names[-1]
        finally:
            os.close(folder)


def _names(path: str) -> list[str]:
    """The steps of a relative path, or a refusal that says which rule it breaks."""
    shown = repr(path[:80])
    if not path.strip():
        raise WorkspaceError(f"the path is empty. {_HINT}")
    if len(path.encode("utf-8", "surrogatepass")) > MAX_PATH_BYTES:
        raise WorkspaceError(f"the path is longer than {MAX_PATH_BYTES} bytes. {_HINT}")
    if any(unicodedata.category(c) in ("Cc", "Cs") for c in path):
        raise WorkspaceError(f"the path {shown} has a character that no file name has. {_HINT}")
    if path.startswith("/") or "\\" in path:
        raise WorkspaceError(
            f"the path {shown} is not relative to the workspace. Use a name such as notes.txt. "
            + _HINT
        )
    names = [name for name in path.split("/") if name not in ("", ".")]
    if ".." in names:
        raise WorkspaceError(f"the path {shown} leaves the workspace; `..` is not allowed. {_HINT}")
    if not names:
        raise WorkspaceError(f"{shown} is a folder, not a file. {_HINT}")
    return names


def _open_folder(parent: int, name: str, path: str) -> int:
    try:
        descriptor = os.open(name, _DIRECTORY, dir_fd=parent)
    except OSError as error:
        raise _why_not(parent, name, path, error, want_folder=True) from None
    if not _spelled_so(parent, name):
        os.close(descriptor)
        raise _missing(path)
    return descriptor


def _open_regular(parent: int, name: str, path: str) -> int:
    """Open a regular file with one name.

    It is looked at before it is opened, since opening a device or a pipe can
    have effects, and again once it is open.
    """
    try:
        before = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not stat.S_ISREG(before.st_mode):
            raise _why_not(parent, name, path)
        descriptor = os.open(name, _FILE, dir_fd=parent)
    except OSError as error:
        raise _why_not(parent, name, path, error) from None
    opened = os.fstat(descriptor)
    problem: WorkspaceError | None = None
    if not stat.S_ISREG(opened.st_mode):
        problem = WorkspaceError(f"{path} is not a regular file. {_HINT}")
    elif opened.st_nlink > 1:
        problem = WorkspaceError(
            f"{path} has a second name (a hard link), which may lie outside the workspace, "
            "so it is not touched."
        )
    elif not _spelled_so(parent, name):
        problem = _missing(path)
    if problem is not None:
        os.close(descriptor)
        raise problem
    return descriptor


def _why_not(
    parent: int,
    name: str,
    path: str,
    failure: OSError | None = None,
    *,
    want_folder: bool = False,
) -> WorkspaceError:
    """The reason in words, from a second look at the name."""
    try:
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return _missing(path)
    except OSError as error:
        return _unusable(path, error)
    if stat.S_ISLNK(mode):
        return WorkspaceError(f"{path} goes through a symbolic link, which is not followed.")
    if stat.S_ISDIR(mode) and not want_folder:
        return WorkspaceError(f"{path} is a folder, not a file. {_HINT}")
    if want_folder and not stat.S_ISDIR(mode):
        return WorkspaceError(f"{path}: {name} is not a folder. {_HINT}")
    if failure is not None:
        return _unusable(path, failure)
    return WorkspaceError(f"{path} is a device, a pipe or a socket, not a file. {_HINT}")


def _unusable(path: str, error: OSError) -> WorkspaceError:
    return WorkspaceError(f"{path} cannot be opened: {error.strerror}. {_HINT}")


def _missing(path: str) -> WorkspaceError:
    return NoSuchFile(f"no such file: {path}. {_HINT}")


def _spelled_so(parent: int, name: str) -> bool:
    """Whether the folder holds exactly this name.

    Where case or Unicode form does not count (macOS), another spelling would
    open the same file and slip past a rule that names it.
    """
    with os.scandir(parent) as entries:
        return any(entry.name == name for entry in entries)


def _fingerprint(info: os.stat_result) -> str:
    parts = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
    return ":".join(str(part) for part in parts)


def _is_unicode(name: str) -> bool:
    return not any(unicodedata.category(c) == "Cs" for c in name)


def _files_below(folder: int, prefix: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        items = sorted(entries, key=lambda entry: entry.name)
    for entry in items:
        if entry.name.startswith(".") or not _is_unicode(entry.name):
            continue
        if entry.is_file(follow_symlinks=False):
            yield prefix + entry.name
        elif entry.is_dir(follow_symlinks=False):
            try:
                deeper = os.open(entry.name, _DIRECTORY, dir_fd=folder)
            except OSError:  # gone, swapped or not readable: it cannot be listed
                continue
            try:
                yield from _files_below(deeper, f"{prefix}{entry.name}/")
            finally:
                os.close(deeper)
