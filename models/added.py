"""Adding models of a person's own: any GGUF file, by its path or from the hub at one commit.

The digest is taken when a model is added; whenever it is asked for afterwards, the file has to
have it still.
"""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock
from pydantic import TypeAdapter, ValidationError

from local import folders
from models import disk, gguf, hub
from models.catalogue import Added, HubFile, Model, Name, added_path, load_added
from models.download import download
from models.errors import Damaged, NotAdded
from models.progress import Progress
from models.store import Store, alone

PROFILE = "evidence"
"""What the harness does for a model that nobody knows: nothing while it does well."""


def add_file(name: str, path: Path) -> Model:
    """Add a file where it lies. It is not copied, and nothing here ever changes or removes it.

    Raises:
        NotAdded: the name cannot be, or belongs to another model; or there is no such file.
        NotGguf: llama.cpp could not be given that file.
    """
    _check_name(name)
    path = path.expanduser().absolute()
    if not path.is_file():
        raise NotAdded(f"There is no file {path}.")
    gguf.check(path)
    return _keep(_model(name, path, f"Added by you: {path}", path=path))


def add_from_hub(name: str, repo: str, file: str, revision: str, progress: Progress) -> Model:
    """Fetch one file of a repository at one commit, and add it.

    Raises:
        NotAdded: the name cannot be, or belongs to another model; or the commit is none.
        SourceError: the hub does not give it.
        NotGguf: llama.cpp could not be given that file.
        NoRoom: the disk is full.
    """
    _check_name(name)
    source = _pinned(repo, file, revision)
    store = Store()
    folders.make(store.folder)
    path = store.folder / f"{name}.gguf"
    with alone(path, name, progress):
        # What broke off is begun anew: it may be of another file that was to get this name.
        new = path.with_suffix(".gguf.new")
        new.unlink(missing_ok=True)
        where = f"{name} from {hub.SOURCE}"
        progress.say(f"Fetching {where}.")
        download(
            hub.address_of(source),
            new,
            lambda done, total: progress.advance(where, done, total or done),
        )
        try:
            gguf.check(new)
        except Damaged:
            new.unlink()
            raise
        model = _model(name, new, f"Added by you: {file} of {repo}", hub=source)
        disk.put_in_place(new, path)
        return _keep(model)


def _check_name(name: str) -> None:
    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError:
        raise NotAdded(
            f"{name!r} cannot be a name: it takes lower-case letters, digits, dots, dashes and "
            "underscores, and begins with a letter or a digit."
        ) from None
    if name in {model.name for model in Store().catalogue.models}:
        raise NotAdded(f"{name} is a model of the catalogue. Choose another name.")


def _pinned(repo: str, file: str, revision: str) -> HubFile:
    try:
        return HubFile(repo=repo, file=file, revision=revision)
    except ValidationError:
        raise NotAdded(
            f"{revision!r} is no commit. --revision takes all 40 digits of one (the hub shows "
            "them under History): what a branch holds could change under you."
        ) from None


def _model(
    name: str, file: Path, role: str, *, path: Path | None = None, hub: HubFile | None = None
) -> Model:
    return Model(
        name=name,
        role=role,
        profile=PROFILE,
        licence="unknown",
        bytes=disk.size(file),
        sha256=disk.digest(file),
        path=path,
        hub=hub,
    )


def _keep(model: Model) -> Model:
    """Write it into the list, in the place of one that had its name."""
    path = added_path()
    folders.make(path.parent)
    with FileLock(path.with_suffix(".lock")):
        others = tuple(one for one in load_added() if one.name != model.name)
        part = path.with_suffix(".part")
        part.write_text(Added(models=(*others, model)).model_dump_json(indent=1), "utf-8")
        part.replace(path)
    return model
