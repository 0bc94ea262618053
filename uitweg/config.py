"""What a person has set: defaults, two files, the environment, in rising order.

    ~/.config/uitweg/uitweg.toml    the user's own (the platform's place for it)
    ./uitweg.toml                   the project's, in the current folder
    LLM_BASE_URL, LLM_MODEL         the environment

What is given on the command line comes over all of these. A table such as `limits` is
merged key by key. docs/settings.md explains every key.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, Field

from harness.mcp_server import McpServer
from harness.provider import DEFAULT_BASE_URL, Endpoint, endpoint_from_environment
from harness.state import Limits, Prices, Value
from local import folders
from uitweg.config_file import FILE_NAME, read_file
from uitweg.hosting import local_url
from uitweg.trust import check_trusted

Port = Annotated[int, Field(ge=1, le=65535)]
McpName = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,32}$")]

VARIABLES = {"base_url": ("LLM_BASE_URL", "OPENAI_BASE_URL"), "model": ("LLM_MODEL",)}
"""The environment's names for a key, the first that is set wins."""


class Ports(Value):
    """Where `uitweg start` and `uitweg serve` listen on this machine."""

    page: Port = 8000
    model: Port = 8080
    scripted: Port = 8081


class Config(Value):
    """Every key of `uitweg.toml`."""

    base_url: str = DEFAULT_BASE_URL
    model: str | None = None
    workspace: Path | None = None
    profile: str = "default"
    tools: tuple[str, ...] = ()
    limits: Limits = Limits()
    prices: Prices = Prices()
    ports: Ports = Ports()
    mcp: dict[McpName, McpServer] = Field(default_factory=dict)


class Line(NamedTuple):
    """One setting that holds, and where it comes from."""

    key: str
    value: Any
    source: str


@dataclass(frozen=True, slots=True)
class Held:
    """The settings that hold."""

    config: Config
    sources: Mapping[str, str]
    """Of each key that is not at its default: the file or the variable."""
    files: tuple[tuple[Path, bool], ...]
    """The files that were looked for, the strongest first, and whether each is there."""
    endpoint: Endpoint

    def lines(self) -> Iterator[Line]:
        """Every setting in the order of the documentation."""
        for key, value in flat(self.config).items():
            yield Line(key, value, self.sources.get(key, "default"))


def project_file() -> Path:
    """The current folder's file, whether or not it is there."""
    return Path.cwd() / FILE_NAME


def user_file() -> Path:
    """The user's file, whether or not it is there."""
    return folders.config() / FILE_NAME


def read_config(env: Mapping[str, str] = os.environ, *, trust: bool = False) -> Held:
    """The settings that hold here and now.

    Args:
        env: The environment.
        trust: Believe the project's file without having been told to.

    Raises `ConfigError` with the file, the key and what is expected there.
    """
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    project, user = project_file(), user_file()
    files = (project, user) if project != user else (user,)
    for path in reversed(files):
        read = values_in(path)
        if read and path == project and path != user and not trust:
            check_trusted(path, read)
        values |= read
        sources |= dict.fromkeys(read, str(path))
    for key, names in VARIABLES.items():
        name = next((name for name in names if env.get(name)), None)
        if name:
            values[key], sources[key] = env[name], name
    config = Config.model_validate(_nested(values))
    endpoint = _endpoint(env, config, sources)
    return Held(
        config=config.model_copy(update={"base_url": endpoint.base_url}),
        sources=sources,
        files=tuple((path, path.is_file()) for path in files),
        endpoint=endpoint,
    )


def _endpoint(env: Mapping[str, str], config: Config, sources: Mapping[str, str]) -> Endpoint:
    """The endpoint that the settings name, or the bundled server where they name none."""
    if "base_url" not in sources:
        endpoint = endpoint_from_environment(env)
        return replace(endpoint, base_url=local_url(config.ports.model), model=config.model)
    if sources["base_url"] not in VARIABLES["base_url"]:
        env = {**env, "LLM_BASE_URL": config.base_url}
    return replace(endpoint_from_environment(env), model=config.model)


def values_in(path: Path) -> dict[str, Any]:
    """The keys that a file sets, flat. Paths in it count from its own folder."""
    config = read_file(path, Config)
    if config is None:
        return {}
    values = {key: value for key, value in flat(config).items() if _is_set(config, key)}
    if config.workspace is not None:
        values["workspace"] = path.parent / config.workspace.expanduser()
    if "tools" in values:
        values["tools"] = tuple(_tool_place(place, path.parent) for place in config.tools)
    for name, server in config.mcp.items():
        values[f"mcp.{name}"] = server.model_copy(update={"folder": path.parent})
    return values


def _tool_place(place: str, folder: Path) -> str:
    return str(folder / Path(place).expanduser()) if place.endswith(".py") else place


def _is_set(config: Config, key: str) -> bool:
    head, _, rest = key.partition(".")
    if head not in config.model_fields_set:
        return False
    part = getattr(config, head)
    return not isinstance(part, BaseModel) or rest in part.model_fields_set


def flat(config: Config) -> dict[str, Any]:
    """Every setting by its whole key, such as `limits.max_turns`."""
    found: dict[str, Any] = {}
    for name in Config.model_fields:
        value = getattr(config, name)
        if isinstance(value, BaseModel):
            value = {key: getattr(value, key) for key in type(value).model_fields}
        if isinstance(value, dict):
            found |= {f"{name}.{key}": item for key, item in value.items()}
        else:
            found[name] = value
    return found


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """The opposite of `flat`."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        head, _, rest = key.partition(".")
        if rest:
            found.setdefault(head, {})[rest] = value
        else:
            found[head] = value
    return found
