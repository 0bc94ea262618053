"""The models that are known, as data: `catalogue.json` beside this file, in order of preference."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from models.errors import UnknownModel

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

    @property
    def filename(self) -> str:
        """Its name in the folder for models."""
        return f"{self.name}.gguf"

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if self.hub is None and not self.parts:
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

    @model_validator(mode="after")
    def _names_are_keys(self) -> Self:
        names = [model.name for model in self.models]
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
        for model in self.models:
            if model.name == name:
                return model
        known = ", ".join(model.name for model in self.models)
        raise UnknownModel(f"There is no model {name!r}. There are: {known}.")

    def choices(self, name: str | None) -> tuple[Model, ...]:
        """The models that will do, best first: only the one that was named, if one was."""
        if name is not None:
            return (self.find(name),)
        first = self.find(self.default)
        return self.models[self.models.index(first) :]


def load(path: Path | None = None) -> Catalogue:
    """Read a catalogue, by default the one beside this file."""
    path = path or Path(__file__).with_name("catalogue.json")
    return Catalogue.model_validate_json(path.read_bytes())
