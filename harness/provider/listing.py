"""Which models an endpoint has, by its `/v1/models`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from harness.errors import SettingsError
from harness.prices import prices_said_by
from harness.profiles import policies_of
from harness.provider.endpoint import Endpoint, is_local
from harness.provider.errors import ReplyUnreadable, RequestRefused, nobody_answers
from harness.state import Prices


@dataclass(frozen=True, slots=True)
class OfferedModel:
    """One entry. What only our servers say is `None` or unknown elsewhere."""

    name: str
    ours: bool = False
    """A server of this project says so; it knows all names that it answers to."""
    scripted: bool = False
    profile: str | None = None
    """The guidance profile that suits it."""
    description: str = ""
    tools: tuple[str, ...] = ()
    """The tools that a scripted model asks for; empty where nothing is said."""
    prices: Prices = field(default_factory=Prices)

    def policies(self, profile: str = "default") -> tuple[str, ...]:
        """The guidance of a run with `profile`: see `policies_of`.

        A scripted scenario answers to the plain loop; any other would leave its script.
        """
        return policies_of("none" if self.scripted else profile, self.profile)


def offered_models(
    base_url: str, api_key: str | None = None, timeout: float = 10.0
) -> list[OfferedModel]:
    """The models of the endpoint, in its order.

    Raises `EndpointUnreachable`, `RequestRefused` or `ReplyUnreadable`.
    """
    headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        response = httpx.get(
            f"{base_url}/models",
            headers=headers,
            timeout=timeout,
            trust_env=not is_local(base_url),
        )
    except httpx.HTTPError as error:
        raise nobody_answers(base_url) from error
    if response.status_code != 200:
        hint = "Check LLM_BASE_URL: a model's address usually ends in /v1."
        if response.status_code in (401, 403):
            hint = "It asks for a key (LLM_API_KEY), or is no model's address (LLM_BASE_URL)."
        raise RequestRefused(f"{base_url}/models answered {response.status_code}. {hint}")
    try:
        entries = response.json()["data"]
        return [_model(entry) for entry in entries]
    except (ValueError, KeyError, TypeError):
        raise ReplyUnreadable(
            f"{base_url}/models is no list of models. Check LLM_BASE_URL: a model's address "
            "usually ends in /v1."
        ) from None


def choose_model(endpoint: Endpoint, wanted: str | None) -> OfferedModel:
    """The model to ask: the one that was named, or the first that the endpoint has.

    Raises a `ProviderFailed` where the endpoint cannot say what it has and no
    name was given, `SettingsError` where it has none.
    """
    name = wanted or endpoint.model
    offered = offered_models(endpoint.base_url, endpoint.api_key)
    if name:
        model = find_model(offered, name)
        if not model.ours and any(one.ours for one in offered):
            known = ", ".join(one.name for one in offered)
            raise SettingsError(f"{endpoint.base_url} has no model {name}. It has: {known}.")
        return model
    if not offered:
        raise SettingsError(
            f"{endpoint.base_url} lists no model. Name the one to ask: --model NAME, or "
            'model="NAME" in Python.'
        )
    return offered[0]


def find_model(models: list[OfferedModel], name: str) -> OfferedModel:
    """The entry for `name`, or one that knows nothing but the name.

    A scripted model may carry a fault behind a question mark.
    """
    plain = name.partition("?")[0]
    known = next((model for model in models if model.name in (name, plain)), OfferedModel(name))
    return replace(known, name=name)


def _model(entry: Mapping[str, Any]) -> OfferedModel:
    ours = entry.get("uitweg")
    about: Mapping[str, Any] = ours if isinstance(ours, Mapping) else {}
    profile, tools = about.get("profile"), about.get("tools")
    return OfferedModel(
        name=str(entry["id"]),
        ours=isinstance(ours, Mapping),
        scripted=about.get("scripted") is True,
        profile=profile if isinstance(profile, str) else None,
        description=str(about.get("description") or ""),
        tools=tuple(str(name) for name in tools) if isinstance(tools, list) else (),
        prices=prices_said_by(entry),
    )
