"""Hosts, origins, tokens, cookies and methods: every route under every bad combination."""

from __future__ import annotations

import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Message

from attack.tally import Tally
from server.app import create_app as server_app
from server.scripted import ScriptedBackend
from web import PageConfig, create_app
from web.services import KEY

TITLE = "Who is let in"
PORT = 8000
HOST = f"127.0.0.1:{PORT}"
ORIGIN = f"http://{HOST}"
TOKEN = "a-start-up-token-for-tests"
HOSTS = (
    HOST, "localhost:8000", None, "", "evil.example", "evil.example:8000", "127.0.0.1",
    "127.0.0.1:80", "127.0.0.1:8000.", "127.0.0.1:8000@evil.example", "127.0.0.2:8000",
    "0.0.0.0:8000", "localhost.evil.example:8000", "[::1]:8001", "127.1:8000", "2130706433:8000",
    "127.0.0.1:08000", "127.0.0.1:8000,evil.example", "127.0.0.1:8000/", "0x7f.1:8000",
)  # fmt: skip
GOOD_HOSTS = HOSTS[:2]
ORIGINS = (
    None, ORIGIN, "null", "", "http://evil.example", f"https://{HOST}", "http://127.0.0.1",
    "http://127.0.0.1:8001", f"{ORIGIN}.evil.example", f"{ORIGIN}/", f"http://evil@{HOST}", "file://",
    f"{ORIGIN}, http://evil.example", "chrome-extension://abc",
)  # fmt: skip
GOOD_ORIGINS = ORIGINS[:2]
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "QUERY")
SITES = (None, "cross-site")


def attack(tally: Tally, folder: Path, long: bool) -> None:
    """Handlers are replaced by ones that only say that they were reached."""
    hosts, origins = (HOSTS, ORIGINS) if long else (HOSTS[::5], ORIGINS[::5])
    _page(tally, folder, hosts, origins)
    anyio.run(_server, tally, hosts, origins)


def _page(
    tally: Tally, folder: Path, hosts: Iterable[str | None], origins: Iterable[str | None]
) -> None:
    config = PageConfig(store=folder / "runs.db", scripted_url=None, port=PORT, token=TOKEN)
    app = create_app(config)
    sessions = app.extensions[KEY].sessions
    reached: Counter[str] = Counter()
    for name in app.view_functions:
        app.view_functions[name] = lambda name=name, **_: (reached.update([name]), "reached")[1]
    cookie = sessions.exchange(TOKEN)
    csrf = sessions.csrf(sessions.open(cookie))
    addresses = [
        (re.sub(r"<(\w+:)?\w+>", "1", rule.rule), (rule.methods or set()) & {"GET", "HEAD", "POST"})
        for rule in app.url_map.iter_rules()
    ]
    cookies = (None, "made.up.cookie", cookie[:-1], f"{cookie}x", cookie)
    forms = (None, "", "0" * 64, csrf[:-1], sessions.csrf("somebody else"), csrf)
    combinations = itertools.product(
        addresses, METHODS, hosts, origins, cookies, forms[:: 1 if hosts is HOSTS else 2], SITES
    )
    for (path, allowed), method, host, origin, card, form, site in combinations:
        good = (
            method in allowed
            and host in GOOD_HOSTS
            and origin in GOOD_ORIGINS
            and (card == cookie or path.startswith("/static/"))
            and (method != "POST" or (form == csrf and site is None))
        )
        environ = _environ(path, method, host, origin, card, form, site)
        reached.clear()
        status = _call(app, environ)
        problem = None
        if good and not reached:
            problem = "a good request was refused"
        elif not good and reached:
            problem = "the handler ran"
        elif not good and not 400 <= status < 500:
            problem = f"it was answered with {status}"
        what = "good requests to the page" if good else "bad requests to the page"
        where = (method, path, host, origin, card and card[:20], form and form[:8], site)
        tally.tried(what, problem and f"{problem}: {where}")
    app.extensions[KEY].close()


def _environ(
    path: str,
    method: str,
    host: str | None,
    origin: str | None,
    cookie: str | None,
    form: str | None,
    site: str | None,
) -> dict[str, Any]:
    given = {
        "HTTP_HOST": host,
        "HTTP_ORIGIN": origin,
        "HTTP_COOKIE": None if cookie is None else f"uitweg_{PORT}={cookie}",
        "HTTP_X_CSRF_TOKEN": form,
        "HTTP_SEC_FETCH_SITE": site,
    }
    return {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "SCRIPT_NAME": "",
        "QUERY_STRING": "",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": str(PORT),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_LENGTH": "0",
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": io.StringIO(),
        **{name: value for name, value in given.items() if value is not None},
    }


def _call(app: Any, environ: dict[str, Any]) -> int:
    seen: list[str] = []

    def start(status: str, headers: Any, exc_info: Any = None) -> Any:
        seen.append(status)
        return lambda _: None

    answer = app(environ, start)
    for _ in answer:
        pass
    if hasattr(answer, "close"):
        answer.close()
    return int(seen[0].split()[0])


async def _server(tally: Tally, hosts: Iterable[str | None], origins: Iterable[str | None]) -> None:
    """The model server, with a token that clients must send."""
    app = server_app(ScriptedBackend(), allowed_hosts=[*GOOD_HOSTS, "[::1]:8000"], token=TOKEN)
    inner: Any = app
    while not isinstance(inner, Starlette):
        inner = inner._app
    reached: Counter[str] = Counter()
    routes = []
    for route in inner.routes:
        assert isinstance(route, Route)
        routes.append((route.path.replace("{name:path}", "plan"), route.methods or set()))
        route.app = _standing_in(reached, route.path, route.methods or set())
    tokens = (
        None, "", TOKEN, f"bearer {TOKEN}", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}",
        f"Basic {TOKEN}", f"Bearer  {TOKEN}", "Bearer \xff", f"Bearer {TOKEN}",
    )  # fmt: skip
    combinations = itertools.product(routes, METHODS, hosts, origins, tokens)
    for (path, allowed), method, host, origin, token in combinations:
        good = (
            method in allowed
            and host in GOOD_HOSTS
            and origin in GOOD_ORIGINS
            and (token == tokens[-1] or path == "/health")
        )
        reached.clear()
        status = await _ask(app, path, method, host, origin, token)
        problem = None
        if good and not reached:
            problem = f"a good request was refused with {status}"
        elif not good and reached:
            problem = "the handler ran"
        elif not good and not 400 <= status < 500:
            problem = f"it was answered with {status}"
        what = "good requests to the model server" if good else "bad requests to the model server"
        tally.tried(what, problem and f"{problem}: {(method, path, host, origin, token)}")


def _standing_in(reached: Counter[str], path: str, methods: set[str]) -> Any:
    """In a handler's place, behind the routing's own check of the method."""

    async def endpoint(scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] not in methods:
            await send({"type": "http.response.start", "status": 405, "headers": []})
        else:
            reached[path] += 1
            await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return endpoint


async def _ask(
    app: Any, path: str, method: str, host: str | None, origin: str | None, token: str | None
) -> int:
    given = (("host", host), ("origin", origin), ("authorization", token))
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in _set(given)],
    }
    seen: list[int] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            seen.append(message["status"])

    await app(scope, receive, send)
    return seen[0]


def _set(given: Iterable[tuple[str, str | None]]) -> Iterator[tuple[str, str]]:
    return ((name, value) for name, value in given if value is not None)
