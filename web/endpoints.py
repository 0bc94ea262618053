"""The model servers that a task can go to, as they are right now.

Asked over HTTP only: `/v1/models`, `/health`, `/metrics`. What was heard is
kept for a moment and renewed in the background, so that no page waits for a
server that does not answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

import httpx

FRESH_SECONDS = 2.0
TIMEOUT = httpx.Timeout(2.0, connect=0.5)
FIRST_WAIT = 0.4
"""Seconds that a page waits for servers that have never been asked."""

Condition = Literal["ready", "loading", "failed", "absent", "unknown"]


@dataclass(frozen=True, slots=True)
class Model:
    """One entry of `/v1/models`; `about` holds what else the server says of it."""

    name: str
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def extra(self) -> Mapping[str, Any]:
        """What only servers of ours say: description, prices, profile, figures of the engine."""
        found = self.about.get("uitweg")
        return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class ServerState:
    """One model server as it last answered."""

    key: str
    label: str
    base_url: str
    condition: Condition
    detail: str = ""
    models: tuple[Model, ...] = ()
    health: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server is. `key` names it in forms; a key of an API goes only there."""

    key: str
    label: str
    base_url: str
    api_key: str | None = field(default=None, repr=False)


class Endpoints:
    """See the module's docstring. Safe to use from any thread; close it."""

    def __init__(self, places: tuple[Place, ...]) -> None:
        self.places = places
        self._client = httpx.Client(timeout=TIMEOUT, trust_env=False, follow_redirects=False)
        self._pool = ThreadPoolExecutor(max_workers=max(len(places), 1), thread_name_prefix="ask")
        self._lock = threading.Lock()
        self._states: dict[str, tuple[float, ServerState]] = {}
        self._asking: set[str] = set()

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._client.close()

    def place(self, key: str) -> Place | None:
        """The place with this key."""
        return next((place for place in self.places if place.key == key), None)

    def states(self) -> tuple[ServerState, ...]:
        """All servers as last heard; old news is renewed in the background."""
        now = time.monotonic()
        asked = []
        with self._lock:
            for place in self.places:
                known = self._states.get(place.key)
                if (known is None or now - known[0] > FRESH_SECONDS) and (
                    place.key not in self._asking
                ):
                    self._asking.add(place.key)
                    asked.append(self._pool.submit(self._ask, place))
            first = any(place.key not in self._states for place in self.places)
        if first:
            wait(asked, timeout=FIRST_WAIT)
        with self._lock:
            return tuple(
                self._states[place.key][1]
                if place.key in self._states
                else ServerState(place.key, place.label, place.base_url, "unknown", "Asking it…")
                for place in self.places
            )

    def _ask(self, place: Place) -> None:
        try:
            state = ask(self._client, place)
            with self._lock:
                self._states[place.key] = (time.monotonic(), state)
        finally:
            with self._lock:
                self._asking.discard(place.key)


def ask(client: httpx.Client, place: Place) -> ServerState:
    """Ask one server. Never raises for what a server does or does not say."""
    headers = {"Authorization": f"Bearer {place.api_key}"} if place.api_key else {}
    root = _root(place.base_url)
    health = _json(client, f"{root}/health", headers)
    listing = _json(client, f"{place.base_url.rstrip('/')}/models", headers)
    if health is None and listing is None:
        return ServerState(
            place.key,
            place.label,
            place.base_url,
            "absent",
            f"Nothing answers at {place.base_url}.",
        )
    return ServerState(
        key=place.key,
        label=place.label,
        base_url=place.base_url,
        condition=_condition(health, listing),
        detail=str((health or {}).get("detail") or ""),
        models=_models(listing),
        health=health or {},
        metrics=_metrics(client, f"{root}/metrics", headers),
    )


def _root(base_url: str) -> str:
    parts = urlsplit(base_url)
    path = parts.path.rstrip("/").removesuffix("/v1")
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def _json(client: httpx.Client, url: str, headers: Mapping[str, str]) -> dict[str, Any] | None:
    """The object at `url`, whatever its status; `None` where none comes."""
    try:
        value = client.get(url, headers=dict(headers)).json()
    except (httpx.HTTPError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _condition(health: dict[str, Any] | None, listing: dict[str, Any] | None) -> Condition:
    said = (health or {}).get("status")
    if said == "loading":
        return "loading"
    if said == "failed":
        return "failed"
    return "ready" if listing is not None and "data" in listing else "unknown"


def _models(listing: dict[str, Any] | None) -> tuple[Model, ...]:
    data = (listing or {}).get("data")
    if not isinstance(data, list):
        return ()
    return tuple(
        Model(entry["id"], {k: v for k, v in entry.items() if k not in ("id", "object")})
        for entry in data
        if isinstance(entry, dict) and isinstance(entry.get("id"), str)
    )


def _metrics(client: httpx.Client, url: str, headers: Mapping[str, str]) -> dict[str, float]:
    """Samples of Prometheus text, the plain ones and the labelled ones under their whole name."""
    try:
        answer = client.get(url, headers=dict(headers))
        text = answer.text if answer.status_code == 200 else ""
    except httpx.HTTPError:
        return {}
    found: dict[str, float] = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if not name or line.startswith("#"):
            continue
        try:
            found[name] = float(value)
        except ValueError:
            continue
    return found
