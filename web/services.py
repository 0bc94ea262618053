"""What the views work with, made once for one page."""

from __future__ import annotations

from dataclasses import dataclass

from flask import current_app

from harness.store import Store
from web.carrier import Carrier
from web.config import PageConfig
from web.endpoints import Endpoints
from web.hub import Hub
from web.reading import Reader
from web.session import Sessions
from web.watch import StoreWatch

KEY = "uitweg"


@dataclass(frozen=True, slots=True)
class Services:
    """Close it when the page stops."""

    config: PageConfig
    store: Store
    hub: Hub
    watch: StoreWatch
    carrier: Carrier
    endpoints: Endpoints
    reader: Reader
    sessions: Sessions

    def close(self) -> None:
        """Let the watchers go, end the runs, write what is left."""
        self.hub.close()
        self.watch.close()
        self.carrier.close()
        self.endpoints.close()
        self.store.close()


def services() -> Services:
    """Those of the page that handles this request."""
    found: Services = current_app.extensions[KEY]
    return found
