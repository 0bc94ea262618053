"""What the page must know to start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from harness.journal import OnEvent
from harness.state import Limits, Prices
from harness.tool import Tool
from harness.tools import bundled_tools
from local.guard import is_loopback


class ConfigError(Exception):
    """The page cannot be served as asked; the text says what to change."""


@dataclass(frozen=True, slots=True)
class PageConfig:
    """Settings of the page. Addresses of models end in `/v1`."""

    store: Path
    """The harness's SQLite file."""
    workspace: Path | None = None
    """The folder that a new task sees unless the person names another; without
    one the demo's, beside the store, in which a new task finds every file again."""
    base_url: str = "http://127.0.0.1:8080/v1"
    scripted_url: str | None = "http://127.0.0.1:8081/v1"
    named_url: str | None = None
    """A server that the person has named (LLM_BASE_URL), where it is none of those."""
    api_key: str | None = field(default=None, repr=False)
    """Sent to `named_url` and to nobody else."""
    host: str = "127.0.0.1"
    port: int = 8000
    """0 takes a free port."""
    token: str | None = None
    """The first start-up token; a random one when none is given."""
    rules: Path | None = None
    """The file of standing rules."""
    limits: Limits = field(default_factory=Limits)
    """What stands in the form of a new task; limits that it has no field for hold as they are."""
    prices: Prices = field(default_factory=Prices)
    """What real models cost, as far as the person says it: instead of what their server says."""
    profile: str = "default"
    """How runs of real models are helped: a name of `harness.profiles`."""
    tools: Mapping[str, Tool] = field(default_factory=dict)
    """The person's own tools, which every new task may use besides the bundled ones."""
    observer: OnEvent | None = None
    """Told of every event of the runs that the page carries."""

    @property
    def all_tools(self) -> dict[str, Tool]:
        """Every tool that a run of the page may name."""
        return bundled_tools() | dict(self.tools)

    @property
    def folder(self) -> Path:
        """The folder of a new task, as the form shows it."""
        return self.workspace or self.store.with_name("demo")

    @property
    def secret_path(self) -> Path:
        """Where the cookie's key is kept."""
        return self.store.with_name("page.key")


def check(config: PageConfig) -> None:
    """Raise `ConfigError` when the page must not be served like this."""
    try:
        unspecified = ip_address(config.host).is_unspecified
    except ValueError:
        unspecified = False
    if unspecified:
        raise ConfigError(
            f"{config.host} listens everywhere, so no exact Host can be checked. "
            "Name one address of this machine instead."
        )
    if not is_loopback(config.host) and not config.token:
        raise ConfigError(
            f"{config.host} can be reached from other machines. "
            "Give a start-up token of your own (at least 16 characters)."
        )
    if config.token is not None and len(config.token) < 16:
        raise ConfigError("The start-up token is too short: give at least 16 characters.")
