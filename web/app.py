"""The Flask application: `create_app(config)`.

A blueprint a concern in `web/views/`; what they read comes from `Reader`, what
they start goes to `Carrier`; no view holds SQL. `Gate` stands in front.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from flask import Flask, g, render_template, request
from werkzeug.exceptions import Forbidden, HTTPException

from harness.errors import (
    DecisionError,
    DecisionIncomplete,
    HarnessError,
    NoSuchRun,
    RunError,
    SettingsError,
)
from harness.store import Store
from local import guard
from web import config as configuration
from web import filters
from web.carrier import Carrier, make_runner
from web.config import PageConfig
from web.endpoints import Endpoints, Place
from web.examples import READY_REASONS
from web.gate import SESSION, Gate
from web.hub import Hub
from web.reading import Reader
from web.reply import said, wants_json
from web.services import KEY, Services, services
from web.session import Sessions, load_key
from web.views import act, compare, describe, live, model, run, runs
from web.watch import StoreWatch

THREADS = 64
"""Of waitress. Each page that watches holds one."""
WATCHERS = 48
"""Pages that may watch at once, so that others are still served."""
MOST_BODY = 2_000_000
STATIC = Path(__file__).parent / "static"


def create_app(config: PageConfig, on_token: Callable[[str], None] | None = None) -> Flask:
    """The page as a WSGI application.

    Args:
        config: What it shows and where. Its `port` must be the real one.
        on_token: Called with the next start-up token when one has been used.

    Raises `ConfigError` for a page that must not be served like this, and
    `StoreError` where the store cannot be opened.
    """
    configuration.check(config)
    app = Flask(__name__)
    app.config["MAX_CONTENT_LENGTH"] = MOST_BODY
    app.config["MAX_FORM_MEMORY_SIZE"] = MOST_BODY
    app.json.sort_keys = False  # type: ignore[attr-defined]  # Flask's default provider has it
    made = _services(config, on_token)
    app.extensions[KEY] = made
    filters.install(app)
    app.add_template_global(asset)
    app.before_request(_check_change)
    app.context_processor(_common)
    for blueprint in (
        runs.views,
        run.views,
        act.views,
        live.views,
        compare.views,
        model.views,
        describe.views,
    ):
        app.register_blueprint(blueprint)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(HarnessError, _harness_error)
    hosts = guard.allowed_hosts(config.host, config.port)
    app.wsgi_app = Gate(app.wsgi_app, made.sessions, hosts, f"uitweg_{config.port}")  # type: ignore[method-assign]  # Flask's documented way to wrap
    return app


def _services(config: PageConfig, on_token: Callable[[str], None] | None) -> Services:
    store = Store.open(config.store)
    hub = Hub(WATCHERS)
    carrier = Carrier(lambda: make_runner(store, config), config, hub)
    places = [Place("real", "Real model", config.base_url)]
    if config.named_url and config.named_url not in (config.base_url, config.scripted_url):
        places.append(Place("named", "LLM_BASE_URL", config.named_url, config.api_key))
    if config.scripted_url:
        places.append(Place("scripted", "Scripted (no model)", config.scripted_url))
    return Services(
        config=config,
        store=store,
        hub=hub,
        watch=StoreWatch(store, hub),
        carrier=carrier,
        endpoints=Endpoints(tuple(places)),
        reader=Reader(store, carrier.carries),
        sessions=Sessions(load_key(config.secret_path), config.token, on_token),
    )


def _check_change() -> None:
    """First of all: the session, and for a change its CSRF token."""
    g.session = request.environ[SESSION]
    if request.method == "POST":
        given = request.headers.get("X-CSRF-Token") or request.form.get("csrf")
        if g.session is None or not services().sessions.csrf_ok(g.session, given):
            raise Forbidden(
                "This form is no longer good. Reload the page and try again. Nothing was changed."
            )


def _common() -> dict[str, Any]:
    """What every template may use."""
    made = services()
    return {
        "csrf": made.sessions.csrf(g.session) if g.get("session") else "",
        "ready_reasons": READY_REASONS,
    }


@cache
def _digest(name: str) -> str:
    return hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]


def asset(name: str) -> str:
    """The address of a file of ours, with its digest so that it can be kept for long."""
    return f"/static/{name}?v={_digest(name)}"


_WORDS = {
    404: "There is nothing at this address.",
    405: "This address does not take that method.",
    413: f"That is too much for one request: at most {MOST_BODY:,} bytes.",
    500: "The page made a mistake. The terminal where Uitweg runs shows more.",
}


def _http_error(error: HTTPException) -> Any:
    code = error.code or 500
    return _failed(code, error.name, _WORDS.get(code) or error.description or error.name)


_CODES: tuple[tuple[type[HarnessError], int], ...] = (
    (NoSuchRun, 404),
    (SettingsError, 422),
    (DecisionIncomplete, 422),
    (DecisionError, 409),
    (RunError, 409),
)


def _harness_error(error: HarnessError) -> Any:
    code = next((code for kind, code in _CODES if isinstance(error, kind)), 503)
    return _failed(code, "Not found" if code == 404 else "That did not work", str(error))


def _failed(code: int, title: str, text: str) -> Any:
    if wants_json():
        return said(text, code)
    try:
        page = render_template("error.html", title=title, text=text, waiting_count=0)
    except HarnessError:
        page = text
    return page, code
