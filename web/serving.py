"""Serves the page with waitress, in a thread of this process, until it is stopped."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from flask import Flask
from waitress import wasyncore  # type: ignore[import-untyped]  # it has no types
from waitress.server import create_server  # type: ignore[import-untyped]  # the same

from local.guard import bracketed
from web import config as configuration
from web.app import MOST_BODY, THREADS, create_app
from web.config import ConfigError, PageConfig
from web.services import KEY, Services

JOIN_SECONDS = 5.0


class Served:
    """A page that is being served. `url` opens it in a browser that has no access yet."""

    def __init__(
        self, config: PageConfig, bound: socket.socket, on_url: Callable[[str], None] | None
    ) -> None:
        self.config = config
        self._on_url = on_url
        app = create_app(config, self._token_used)
        self._services: Services = app.extensions[KEY]
        self._sockets: dict[int, Any] = {}
        self._server = create_server(
            app,
            map=self._sockets,
            sockets=[bound],
            threads=THREADS,
            ident=None,
            connection_limit=400,
            channel_timeout=60,
            cleanup_interval=15,
            max_request_body_size=MOST_BODY,
            # Lets waitress see that a browser has gone while its answer still flows.
            channel_request_lookahead=1,
            clear_untrusted_proxy_headers=True,
        )
        self._thread = threading.Thread(target=self._server.run, name="page", daemon=True)
        self._thread.start()
        # Half a second of work, which the first page would else wait for.
        self._warm = threading.Thread(target=_compile_templates, args=(app,), daemon=True)
        self._warm.start()

    @property
    def address(self) -> str:
        """Where the page is, for a browser that has access."""
        return f"http://{bracketed(self.config.host)}:{self.config.port}/"

    @property
    def url(self) -> str:
        """The address with the start-up token that the next browser can use, once."""
        return f"{self.address}?token={quote(self._services.sessions.token)}"

    def stop(self) -> None:
        """End the page: its runs are cancelled and recorded, nothing is left behind."""
        # The runs first: whoever watches sees how they end.
        self._services.carrier.end_runs()
        self._services.hub.close()
        self._server.task_dispatcher.shutdown(timeout=JOIN_SECONDS)
        # In the thread that owns the sockets; with none left its loop ends.
        self._server.trigger.pull_trigger(lambda: wasyncore.close_all(self._sockets))
        self._thread.join(JOIN_SECONDS)
        self._warm.join(JOIN_SECONDS)
        self._services.close()

    def _token_used(self, _token: str) -> None:
        if self._on_url is not None:
            self._on_url(self.url)


def _compile_templates(app: Flask) -> None:
    for name in app.jinja_env.list_templates():
        app.jinja_env.get_template(name)


def serve(config: PageConfig, on_url: Callable[[str], None] | None = None) -> Served:
    """Serve the page in the background.

    Args:
        config: With port 0 a free one is taken; the handle's `config` names it.
        on_url: Called with the next address to open whenever one has been used.

    Raises `ConfigError` when the page cannot listen or must not be served like
    this, and `StoreError` where the store cannot be opened.
    """
    configuration.check(config)
    # It would say on the terminal that a request waits for a thread.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    bound = _bind(config.host, config.port)
    try:
        return Served(replace(config, port=bound.getsockname()[1]), bound, on_url)
    except BaseException:
        bound.close()
        raise


def _bind(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=256)
    except OSError as error:
        raise ConfigError(
            f"The page cannot listen on {host}:{port}: {error.strerror or error}. "
            "Stop what listens there, or choose another port."
        ) from None
