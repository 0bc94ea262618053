"""The experiment file: which tasks, on what, how often, and what is right.

name = "logs"
what = "Two questions about the logs"        # one line, for the report
repeats = 1

[[provider]]                                 # at least one
name = "real"
server = "default"                           # or "scripted", or a base URL
model = ""                                   # "{task}" in it becomes the task's id
recordings = ["logs/recorded"]               # scripted only: files, or folders of them

[[setting]]                                  # at least one
name = "default"
profile = "default"                          # or policies = ["look_first", …]
max_turns = 12
max_tokens = 256                             # of one reply

[[task]]
id = "timeout"
task = "Which file mentions a timeout?"
workspace = "demo"                           # or a folder beside this file
tags = ["several files"]
approve = ["delete_file access.log"]         # calls a person would approve
judge = { contains = ["errors.log"], excludes = ["access.log"] }
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]


class PlanError(Exception):
    """The experiment file cannot be used; the text says where and why."""


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Judge(Part):
    """What makes a run right. Everything that is stated must hold; letter case never counts."""

    contains: tuple[str, ...] = ()
    """Texts that the answer holds, every one."""
    excludes: tuple[str, ...] = ()
    """Texts that the answer does not hold."""
    regex: str | None = None
    """Found somewhere in the answer."""
    number: float | None = None
    """The first number in the answer, in digits or as a word up to twenty. Numbers
    inside file names and other numbers that the task itself names do not count."""
    reads: tuple[str, ...] = ()
    """Files that were read, whatever the answer says."""
    gone: tuple[str, ...] = ()
    """Files that are no longer in the workspace after the run."""
    present: tuple[str, ...] = ()
    """Files that still are."""
    unanswerable: bool = False
    """The files do not say: right is an answer that says so, or that is marked as unsupported."""

    @field_validator("regex")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"not a regular expression: {error}") from None
        return pattern

    @model_validator(mode="after")
    def _says_something(self) -> Judge:
        if self == Judge.model_construct():
            raise ValueError("states nothing: give contains, regex, number, reads, gone, …")
        return self


class Task(Part):
    """One question or order. `workspace` is "demo" or a folder beside the file."""

    id: Name
    task: Annotated[str, Field(min_length=1)]
    workspace: str = "demo"
    tags: tuple[str, ...] = ()
    approve: tuple[str, ...] = ()
    """`tool argument`: calls that the person of this experiment approves; all others are
    rejected with a reason."""
    judge: Judge


class Provider(Part):
    """Where the model is. See the module's docstring."""

    name: Name
    server: Annotated[str, Field(pattern=r"^(default|scripted|https?://.+)$")] = "default"
    model: str = ""
    recordings: tuple[str, ...] = ()

    def model_for(self, task: Task) -> str:
        return self.model.replace("{task}", task.id)


class Setting(Part):
    """How the harness carries the run. `profile` or `policies`, not both."""

    name: Name
    profile: str | None = None
    policies: tuple[str, ...] | None = None
    max_turns: Annotated[int, Field(ge=1)] = 12
    max_tokens: Annotated[int, Field(ge=1)] = 256
    """Of one reply: these tasks are answered in a sentence, and a model that rambles on
    would only cost time."""
    max_seconds: Annotated[float, Field(gt=0)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0

    @model_validator(mode="after")
    def _one_source(self) -> Setting:
        if (self.profile is None) == (self.policies is None):
            raise ValueError("give a profile or policies, one of the two")
        return self


class PlannedRun(Part):
    """One run that is to be made. `key` is the same in every process and version of the file."""

    task: Task
    provider: Provider
    setting: Setting
    repeat: int

    @property
    def key(self) -> str:
        return f"{self.task.id}/{self.provider.name}/{self.setting.name}/{self.repeat}"

    def digest(self, workspace: str) -> str:
        """Changes when anything about the run does, so that a stale result is run again."""
        text = self.model_dump_json(exclude={"repeat": True}) + workspace
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Experiment(Part):
    """A whole experiment file. `folder` is where its workspaces are looked for."""

    name: Name
    what: str = ""
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1
    provider: Annotated[tuple[Provider, ...], Field(min_length=1)]
    setting: Annotated[tuple[Setting, ...], Field(min_length=1)]
    task: Annotated[tuple[Task, ...], Field(min_length=1)]
    folder: Path = Path()

    @model_validator(mode="after")
    def _names_once(self) -> Experiment:
        for what, names in (
            ("tasks", [t.id for t in self.task]),
            ("providers", [p.name for p in self.provider]),
            ("settings", [s.name for s in self.setting]),
        ):
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise ValueError(f"two {what} are called {twice!r}")
        return self

    def runs(self) -> tuple[PlannedRun, ...]:
        """Every run, in the order in which they are carried out: one provider and one
        setting at a time, so that timings of one kind lie together."""
        return tuple(
            PlannedRun(task=task, provider=provider, setting=setting, repeat=repeat)
            for provider in self.provider
            for setting in self.setting
            for repeat in range(1, self.repeats + 1)
            for task in self.task
        )

    def only(self, kind: Literal["task", "provider", "setting"], names: list[str]) -> Experiment:
        """The same experiment with only these tasks, providers or settings.

        Raises:
            PlanError: when it has none of that name.
        """
        if not names:
            return self
        parts = {getattr(p, "id", "") or p.name: p for p in getattr(self, kind)}
        unknown = next((name for name in names if name not in parts), None)
        if unknown is not None:
            raise PlanError(f"There is no {kind} {unknown!r}; there are: {', '.join(parts)}.")
        return self.model_copy(update={kind: tuple(parts[name] for name in names)})


def read_plan(path: Path) -> Experiment:
    """The experiment in a file, with every workspace checked to be there.

    Raises:
        PlanError: when there is no such file, or something in it is wrong.
    """
    try:
        values = tomllib.loads(path.read_text("utf-8"))
        plan = Experiment.model_validate({**values, "folder": path.resolve().parent})
    except OSError as error:
        raise PlanError(f"{path} cannot be read: {error.strerror}.") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise PlanError(f"{path}: {where}: {first['msg'].removeprefix('Value error, ')}.") from None
    except ValueError as error:  # not UTF-8, or no TOML
        raise PlanError(f"{path} is not valid TOML: {error}.") from None
    for task in plan.task:
        if task.workspace != "demo" and not (plan.folder / task.workspace).is_dir():
            raise PlanError(f"{path}: task {task.id}: there is no folder {task.workspace}.")
    return plan
