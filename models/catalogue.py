"""The models that are known, as data.

`catalogue.json` beside this file has those that come with the program, in order of preference;
`models.json` in the data folder has those that a person has added (see `models.added`).
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from local import folders
from models.errors import Damaged, UnknownModel

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=100)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Bytes = Annotated[int, Field(gt=0)]


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class HubFile(_Data):
    """One file of a repository on the Hugging Face hub, at one commit of it."""

    repo: str
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    file: str


class Part(_Data):
    """One member of a Python package's wheel, which is one piece of the file."""

    package: str
    version: str
    member: str
    bytes: Bytes
    sha256: Digest
    """Of the member, not of the wheel."""


class Model(_Data):
    """One GGUF file and where it can be had."""

    name: Name
    role: str
    profile: str = "small"
    """The guidance profile of the harness that suits it."""
    licence: str
    bytes: Bytes
    sha256: Digest
    hub: HubFile | None = None
    parts: tuple[Part, ...] = ()
    """The package source: joined in this order they are the file."""
    path: Path | None = None
    """A person's own file where it lies, which is neither fetched nor changed."""

    @property
    def filename(self) -> str:
        """Its name in the folder for models."""
        return f"{self.name}.gguf"

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if self.hub is None and not self.parts and self.path is None:
            raise ValueError(f"{self.name} has no source")
        if self.parts and sum(part.bytes for part in self.parts) != self.bytes:
            raise ValueError(f"the parts of {self.name} do not add up to its size")
        if any(".." in PurePosixPath(part.member).parts for part in self.parts):
            raise ValueError(f"a part of {self.name} lies outside its package")
        return self


class Catalogue(_Data):
    """All models. Those after the default stand in for it, in this order."""

    default: str
    models: tuple[Model, ...]
    added: tuple[Model, ...] = ()
    """Those that a person has added. They are used only by name."""

    @model_validator(mode="after")
    def _names_are_keys(self) -> Self:
        names = [model.name for model in (*self.models, *self.added)]
        if len(set(names)) != len(names):
            raise ValueError("two models have the same name")
        if self.default not in names:
            raise ValueError("the default is not in the catalogue")
        return self

    def find(self, name: str) -> Model:
        """The model of that name.

        Raises:
            UnknownModel: there is none; the message lists the names.
        """
        every = (*self.models, *self.added)
        for model in every:
            if model.name == name:
                return model
        known = ", ".join(model.name for model in every)
        raise UnknownModel(f"There is no model {name!r}. There are: {known}.")

    def choices(self, name: str | None) -> tuple[Model, ...]:
        """The models that will do, best first: only the one that was named, if one was."""
        if name is not None:
            return (self.find(name),)
        first = self.find(self.default)
        return self.models[self.models.index(first) :]


class Added(_Data):
    """The file of the models that a person has added."""

    models: tuple[Model, ...] = ()


def load(path: Path | None = None) -> Catalogue:
    """Read a catalogue, by default the one beside this file and what a person has added to it."""
    if path is not None:
        return Catalogue.model_validate_json(path.read_bytes())
    known = load(Path(__file__).with_name("catalogue.json"))
    return known.model_copy(update={"added": load_added()})


def added_path() -> Path:
    """The file of the models that a person has added."""
    return folders.data() / "models.json"


def load_added() -> tuple[Model, ...]:
    """The models that a person has added. Raises `Damaged` where their file cannot be read."""
    path = added_path()
    try:
        return Added.model_validate_json(path.read_bytes()).models
    except FileNotFoundError:
        return ()
    except (OSError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise Damaged(
            f"{path} cannot be read ({reason}). Move it away and add your models again."
        ) from None
