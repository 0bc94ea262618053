"""The providers of the runs that one runner carries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from harness.ports import Provider
from harness.state import Settings

ProviderFactory = Callable[[Settings], Provider]


def http_provider(settings: Settings) -> Provider:
    """The default: the run's endpoint over HTTP, with the environment's key if it is for it."""
    # Imported here, because it takes longer than all the rest together.
    from harness.provider import HttpProvider, endpoint_from_environment

    endpoint = endpoint_from_environment()
    return HttpProvider(settings.base_url, endpoint.key_for(settings.base_url))


class Providers:
    """One provider for each event loop and address: connections belong to a loop."""

    def __init__(self, factory: ProviderFactory) -> None:
        self._factory = factory
        self._made: dict[tuple[int, str], Provider] = {}

    def of(self, settings: Settings) -> Provider:
        """The one for a run with these settings, made when it is first needed."""
        key = (id(asyncio.get_running_loop()), settings.base_url)
        if key not in self._made:
            self._made[key] = self._factory(settings)
        return self._made[key]

    async def aclose(self) -> None:
        """Close all of them; those asked for after that are new ones."""
        made = list(self._made.values())
        self._made.clear()
        for provider in made:
            await provider.aclose()
