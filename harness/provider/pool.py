"""One client for each endpoint, shared by all runs that talk to it."""

from __future__ import annotations

from harness.provider.client import HttpProvider
from harness.provider.endpoint import Endpoint
from harness.provider.retry import RetryPolicy
from harness.state import Settings


class Providers:
    """Gives each run the client of its endpoint. Belongs to one event loop; close it there.

    Args:
        endpoint: Whose key goes to its own host, and nowhere else.
        policy: When to try again.
    """

    def __init__(self, endpoint: Endpoint, policy: RetryPolicy | None = None) -> None:
        self._endpoint = endpoint
        self._policy = policy
        self._clients: dict[str, HttpProvider] = {}

    def __call__(self, settings: Settings) -> HttpProvider:
        """The client for a run with these settings."""
        base_url = settings.base_url
        if base_url not in self._clients:
            key = self._endpoint.key_for(base_url)
            self._clients[base_url] = HttpProvider(base_url, key, policy=self._policy)
        return self._clients[base_url]

    async def aclose(self) -> None:
        """Close every connection."""
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()
