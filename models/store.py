"""Model files on this machine: fetched, checked, found.

A file is there under its own name only when its digest has been checked. While it is fetched it is
`NAME.gguf.part`, which a later try goes on with; whoever fetches holds `NAME.gguf.lock`, and
whoever else wants the same file waits. The digest is taken again whenever a model is asked for:
that takes about a second for 500 MB, which is less trouble than knowing when it may be skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from filelock import FileLock, Timeout

from local import folders
from models import catalogue, disk, gguf, hub, made, packages
from models.catalogue import Catalogue, Model
from models.download import download
from models.errors import Damaged, NotFetched, SourceError, Unreachable, WrongContent
from models.progress import Progress


@dataclass(frozen=True, slots=True)
class Resolved:
    """A model file that is what it should be."""

    name: str
    path: Path
    sha256: str
    bytes: int
    profile: str = "small"
    """The guidance profile of the harness that suits it."""
    instead_of: str | None = None
    """The default, where it could not be had and nobody had named a model."""


def ensure(name: str | None, progress: Progress) -> Resolved:
    """`Store.ensure` for the models that come with the program, in this user's folder."""
    return Store().ensure(name, progress)


@dataclass(frozen=True, slots=True)
class Store:
    """The models of one catalogue in one folder."""

    catalogue: Catalogue = field(default_factory=catalogue.load)
    folder: Path = field(default_factory=folders.models)

    def path(self, model: Model) -> Path:
        """Where the file of a model is, or would be."""
        return model.path or self.folder / model.filename

    def verify(self, name: str) -> Resolved:
        """Check a file that should be there.

        Raises:
            UnknownModel: no such name.
            NotFetched: there is nothing to check.
            Damaged: it is not what it should be.
        """
        if (own := made.find(self.folder, name)) is not None:
            made.check(self.folder, own)
            path = own.path(self.folder)
            return Resolved(name, path, own.sha256, own.bytes, profile=own.profile)
        model = self.catalogue.find(name)
        path = self.path(model)
        if not path.exists():
            if model.path is not None:
                raise NotFetched(f"{path} is gone. Put it back, or add {name} anew.")
            raise NotFetched(f"{name} is not here yet. Get it with: uitweg models fetch {name}")
        problem = _difference(model, path)
        if problem:
            anew = f"Get it anew with: uitweg models fetch {name}"
            if model.path is not None:
                anew = f"If that is meant: uitweg models add {name} --path {path}"
            raise Damaged(f"{path} {problem}. {anew}")
        gguf.check(path)
        return Resolved(name, path, model.sha256, model.bytes, model.profile)

    def ensure(self, name: str | None, progress: Progress) -> Resolved:
        """Give a model that is ready to load; fetch it first where it is missing.

        Args:
            name: a model of the catalogue, which nothing then replaces; None for the default or,
                where no source gives it, the first after it that can be had.
            progress: hears what goes on.

        Raises:
            UnknownModel: no such name.
            SourceError: no source gives it; the message has every source's reason.
            NoRoom: the disk is full.
        """
        if name is not None and made.find(self.folder, name) is not None:
            return self.verify(name)
        first, *others = self.catalogue.choices(name)
        silent: dict[str, str] = {}
        try:
            return self._ensure(first, silent, progress)
        except SourceError as error:
            failure = error
        for model in others:
            progress.say(f"{failure} Taking {model.name} instead.")
            try:
                return replace(self._ensure(model, silent, progress), instead_of=first.name)
            except SourceError as error:
                failure = error
        raise failure

    def _ensure(self, model: Model, silent: dict[str, str], progress: Progress) -> Resolved:
        if model.path is not None:
            return self.verify(model.name)
        folders.make(self.folder)
        with alone(self.path(model), model.name, progress):
            try:
                return self.verify(model.name)
            except NotFetched:
                pass
            except Damaged as error:
                progress.say(f"{str(error).partition('. Get it')[0]}. Fetching it anew.")
                self.path(model).unlink()
            self._fetch(model, silent, progress)
            return self.verify(model.name)

    def _fetch(self, model: Model, silent: dict[str, str], progress: Progress) -> None:
        """Try one source after the other, and put the file into place if one of them gives it.

        Args:
            model: is not there.
            silent: sources that have been found unreachable a moment ago, with the reason; they
                are not asked again, and new ones are added.
            progress: hears what goes on.
        """
        part = self.path(model).with_suffix(".gguf.part")
        disk.check_room(self.folder, model.bytes - disk.size(part))
        reasons: list[str] = []
        for source, fetch in _sources(model):
            reason = silent.get(source) or _try(model, part, fetch, source, progress)
            if reason is None:
                disk.put_in_place(part, self.path(model))
                for path in packages.leftovers(model, self.folder):
                    path.unlink()
                return
            reasons.append(str(reason))
            if isinstance(reason, Unreachable):
                silent[source] = str(reason)
        kind = Unreachable if all(reason in silent.values() for reason in reasons) else SourceError
        raise kind(f"{model.name} could not be fetched. {' '.join(reasons)}")


Fetch = Callable[[Path, Callable[[int], None]], None]


def _sources(model: Model) -> Iterator[tuple[str, Fetch]]:
    """The places that may have a model, in the order in which they are asked."""
    if model.hub is not None:
        yield (
            hub.SOURCE,
            lambda part, told: download(hub.address(model), part, lambda done, _total: told(done)),
        )
    if model.parts:
        yield packages.SOURCE, lambda part, told: packages.fetch(model, part, told)


def _try(
    model: Model, part: Path, fetch: Fetch, source: str, progress: Progress
) -> SourceError | None:
    """Fetch from one source and check what then lies on disk; what went wrong, if anything did."""
    where = f"{model.name} from {source}"
    kept = disk.size(part)
    progress.say(f"Fetching {where}" + (f", going on after {kept:,} bytes." if kept else "."))
    try:
        fetch(part, lambda done: progress.advance(where, done, model.bytes))
    except SourceError as error:
        return error
    problem = _difference(model, part)
    if problem is None:
        return None
    part.unlink()
    return WrongContent(f"What {source} gave {problem}; it has been removed.")


def _difference(model: Model, path: Path) -> str | None:
    """How the file on disk differs from the one in the catalogue, if it does."""
    size = disk.size(path)
    if size != model.bytes:
        return f"has {size:,} bytes where {model.bytes:,} are expected"
    found = disk.digest(path)
    if found != model.sha256:
        return f"has the SHA-256 {found[:12]}… where {model.sha256[:12]}… is expected"
    return None


@contextmanager
def alone(path: Path, name: str, progress: Progress) -> Iterator[None]:
    """Hold the lock of one file; say so when that means waiting."""
    lock = FileLock(path.with_suffix(".gguf.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress.say(f"Another process is busy with {name}. Waiting for it.")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
