"""The outermost layer: what it refuses never reaches a handler.

In this order: method, Host, Origin (`local.guard`), the start-up token, the
cookie. Everything that leaves, refusals included, carries the same headers.
The CSRF token of a change lies in the form and is checked by `web.app` before
any view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode

from local import guard
from web.session import COOKIE_SECONDS, Sessions

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

METHODS = ("GET", "HEAD", "POST")
OPEN_PATHS = ("/static/",)
"""Style and icons of ours: the refusal itself needs them."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    # Not no-referrer: with it browsers send "Origin: null" with our own forms. Other sites are
    # told nothing either way.
    ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)

SESSION = "uitweg.session"
"""Where in the WSGI environment the session's id is put."""

Headers = list[tuple[str, str]]


class Gate:
    """WSGI middleware; see the module's docstring."""

    def __init__(
        self, app: WSGIApplication, sessions: Sessions, hosts: tuple[str, ...], cookie: str
    ) -> None:
        self._app = app
        self._sessions = sessions
        self._hosts = hosts
        self._cookie = cookie

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        start = _with_headers(start_response)
        method = environ["REQUEST_METHOD"]
        if method not in METHODS:
            return _refuse(start, "405 Method Not Allowed", "This page takes GET and POST only.")
        reason = guard.check(
            method, environ.get("HTTP_HOST"), environ.get("HTTP_ORIGIN"), self._hosts
        ) or _cross_site(environ)
        if reason:
            return _refuse(start, "403 Forbidden", reason)
        session = self._sessions.open(self._cookie_of(environ))
        query = environ.get("QUERY_STRING", "")
        if method == "GET" and "token=" in query:
            entered = self._enter(environ, query, session)
            if entered is not None:
                start("303 See Other", entered)
                return []
        if session is None and not environ.get("PATH_INFO", "").startswith(OPEN_PATHS):
            return _refuse(start, "401 Unauthorized", LOCKED)
        environ[SESSION] = session
        return self._app(environ, start)

    def _cookie_of(self, environ: WSGIEnvironment) -> str | None:
        try:
            morsel = SimpleCookie(environ.get("HTTP_COOKIE", "")).get(self._cookie)
        except CookieError:
            return None
        return morsel.value if morsel else None

    def _enter(self, environ: WSGIEnvironment, query: str, session: str | None) -> Headers | None:
        """Headers that lead to the address without its token; `None` for a wrong token."""
        pairs = parse_qsl(query, keep_blank_values=True)
        token = next((value for name, value in pairs if name == "token"), "")
        cookie = self._sessions.exchange(token)
        if cookie is None and session is None:
            return None
        rest = urlencode([pair for pair in pairs if pair[0] != "token"])
        # One leading slash only: "//host" would lead to another site.
        path = "/" + quote(environ.get("PATH_INFO", "/").encode("latin-1")).lstrip("/")
        headers = [("Location", path + ("?" + rest if rest else "")), ("Cache-Control", "no-store")]
        if cookie is not None:
            headers.append(
                (
                    "Set-Cookie",
                    f"{self._cookie}={cookie}; Path=/; Max-Age={COOKIE_SECONDS}; "
                    "HttpOnly; SameSite=Strict",
                )
            )
        return headers


def _cross_site(environ: WSGIEnvironment) -> str | None:
    """Browsers say where a request comes from; a change from elsewhere is refused
    even where no Origin is sent."""
    site = environ.get("HTTP_SEC_FETCH_SITE")
    if environ["REQUEST_METHOD"] == "POST" and site not in (None, "same-origin", "none"):
        return "This change was asked for by another site."
    return None


LOCKED = (
    "This browser has no access yet, or its access has ended. Open the address that the "
    "terminal shows where Uitweg runs. Each address works once; the terminal then shows a new one."
)


def _with_headers(start_response: StartResponse) -> Callable[..., Any]:
    def start(status: str, headers: Headers, exc_info: Any = None) -> Any:
        own = {name for name, _ in HEADERS}
        kept = [pair for pair in headers if pair[0] not in own]
        if not any(name == "Cache-Control" for name, _ in kept):
            kept.append(("Cache-Control", "no-store"))
        return start_response(status, [*kept, *HEADERS], exc_info)

    return start


def _refuse(start: Callable[..., Any], status: str, reason: str) -> Iterable[bytes]:
    body = REFUSAL.format(title=escape(status[4:]), reason=escape(reason)).encode()
    headers = [
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Length", str(len(body))),
    ]
    if status.startswith("405"):
        headers.append(("Allow", ", ".join(METHODS)))
    start(status, headers)
    return [body]


REFUSAL = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · Uitweg</title><link rel="stylesheet" href="/static/page.css">
<link rel="icon" href="/static/icon.svg"></head>
<body><main class="narrow"><h1>{title}</h1><p>{reason}</p></main></body></html>
"""
