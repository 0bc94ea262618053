"""Where the model is: the address, the key and the name, out of the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from harness.errors import SettingsError

DEFAULT_BASE_URL = "http://127.0.0.1:8080/v1"
"""The bundled server."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One OpenAI-compatible endpoint. The key is kept out of every record and print."""

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    model: str | None = None
    named: bool = False
    """A person named the address, so nothing is started in its stead."""

    def key_for(self, base_url: str) -> str | None:
        """The key, if `base_url` is this endpoint's host: a key goes nowhere else."""
        return self.api_key if _origin(base_url) == _origin(self.base_url) else None


def endpoint_from_environment(environment: Mapping[str, str] | None = None) -> Endpoint:
    """The endpoint named by `LLM_BASE_URL`, `LLM_API_KEY` and `LLM_MODEL`.

    `OPENAI_BASE_URL` and `OPENAI_API_KEY` fill what those leave out: the key
    only together with its own address. Raises `SettingsError`.
    """
    values = os.environ if environment is None else environment
    base_url = values.get("LLM_BASE_URL")
    key = values.get("LLM_API_KEY")
    if not base_url:
        base_url = values.get("OPENAI_BASE_URL")
        key = key or (values.get("OPENAI_API_KEY") if base_url else None)
    return Endpoint(
        base_url=normal_base_url(base_url or DEFAULT_BASE_URL),
        api_key=key or None,
        model=values.get("LLM_MODEL") or None,
        named=bool(base_url),
    )


def normal_base_url(text: str) -> str:
    """`text` as a base address without a slash at its end; `/v1` where no path is given.

    Raises `SettingsError` for what is no http address or carries a password.
    """
    try:
        parts = urlsplit(text.strip())
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise SettingsError(f"{text!r} is no address for a model: {error}.") from None
    if parts.scheme not in ("http", "https") or not host:
        raise SettingsError(
            f"{text!r} is no address for a model. It looks like http://127.0.0.1:8080/v1."
        )
    if parts.username or parts.password:
        raise SettingsError("An address must not carry a password. Put the key in LLM_API_KEY.")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/') or '/v1'}"


def is_local(url: str) -> bool:
    """Whether `url` is on this machine: no proxy from the environment must carry it elsewhere."""
    return urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port
