"""Every route against every kind of request that must not get in."""

from __future__ import annotations

from typing import Any

import pytest
from werkzeug.routing import Rule

ORIGIN = "http://127.0.0.1:8000"
BAD_HOSTS = (
    "evil.example", "127.0.0.1", "127.0.0.1:8001", "localhost.evil.example:8000", "127.0.0.1:8000.",
    "127.0.0.1:8000@evil.example", "[::1]:8001", "0.0.0.0:8000", "", "127.1:8000",
)  # fmt: skip
BAD_ORIGINS = (
    "null", "http://evil.example", "https://127.0.0.1:8000", "http://127.0.0.1:8001",
    "http://127.0.0.1", "http://127.0.0.1:8000.evil.example", "file://", "",
)  # fmt: skip
BAD_METHODS = ("PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get")


def paths(page: Any) -> list[tuple[str, str]]:
    """A method and an address for each route."""
    return [
        (method, address(rule))
        for rule in page.app.url_map.iter_rules()
        for method in sorted((rule.methods or set()) & {"GET", "POST"})
    ]


def address(rule: Rule) -> str:
    values = {"run_id": "abc", "seq": 1, "filename": "page.css"}
    path = rule.rule
    for name in rule.arguments:
        for kind in ("", "int:", "path:"):
            path = path.replace(f"<{kind}{name}>", str(values[name]))
    assert "<" not in path
    return path


@pytest.fixture
def reached(page: Any) -> list[str]:
    """The handlers that have run; each is replaced by one that only says so."""
    seen: list[str] = []

    def stand_in(name: str) -> Any:
        def view(**_: Any) -> str:
            seen.append(name)
            return "reached"

        return view

    for name in page.app.view_functions:
        page.app.view_functions[name] = stand_in(name)
    page.app.before_request_funcs[None].insert(0, lambda: seen.append("before") and None)
    return seen


def test_a_good_request_reaches_every_route(page: Any, reached: list[str]) -> None:
    for method, path in paths(page):
        reached.clear()
        csrf = page.services.sessions.csrf(session_of(page))
        answer = page.client.open(
            path, method=method, base_url=ORIGIN, headers={"Origin": ORIGIN, "X-CSRF-Token": csrf}
        )
        assert answer.status_code == 200, (method, path, answer.text)
        assert len(reached) == 2


def session_of(page: Any) -> str:
    cookie = page.client.get_cookie("uitweg_8000", domain="127.0.0.1")
    found: str = page.services.sessions.open(cookie.value)
    return found


@pytest.mark.parametrize("host", BAD_HOSTS)
def test_w2_no_handler_runs_under_another_name(page: Any, reached: list[str], host: str) -> None:
    for method, path in paths(page):
        answer = page.client.open(path, method=method, environ_overrides={"HTTP_HOST": host})
        assert answer.status_code == 403, (method, path)
        assert_safe(answer)
    assert reached == []


@pytest.mark.parametrize("origin", BAD_ORIGINS)
def test_w2_no_handler_runs_for_another_site(page: Any, reached: list[str], origin: str) -> None:
    for method, path in paths(page):
        answer = page.client.open(path, method=method, base_url=ORIGIN, headers={"Origin": origin})
        assert answer.status_code == 403, (method, path)
        assert_safe(answer)
    assert reached == []


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_w2_a_change_from_another_site_is_refused_without_an_origin(
    page: Any, reached: list[str], site: str
) -> None:
    for method, path in paths(page):
        if method == "POST":
            answer = page.client.post(path, base_url=ORIGIN, headers={"Sec-Fetch-Site": site})
            assert answer.status_code == 403
    assert reached == []


@pytest.mark.parametrize("method", BAD_METHODS)
def test_no_handler_runs_for_another_method(page: Any, reached: list[str], method: str) -> None:
    for _, path in paths(page):
        answer = page.client.open(path, method=method, base_url=ORIGIN)
        # The test client writes every method in capitals.
        if method != "get":
            assert answer.status_code == 405, (method, path)
            assert answer.headers["Allow"] == "GET, HEAD, POST"
            assert reached == []


@pytest.mark.parametrize("cookie", [None, "", "made.up.cookie", "x" * 3000])
def test_w2_no_handler_runs_without_access(
    page: Any, reached: list[str], cookie: str | None
) -> None:
    headers = {"Cookie": f"uitweg_8000={cookie}"} if cookie is not None else {}
    client = page.app.test_client(use_cookies=False)
    for method, path in paths(page):
        if not path.startswith("/static/"):
            answer = client.open(path, method=method, base_url=ORIGIN, headers=headers)
            assert answer.status_code == 401, (method, path)
            assert "terminal" in answer.text
            assert_safe(answer)
    assert reached == []


def test_w2_no_change_without_its_csrf_token(page: Any) -> None:
    for method, path in paths(page):
        if method == "POST":
            for token in (None, "", "0" * 64):
                headers = {"Origin": ORIGIN} | ({"X-CSRF-Token": token} if token else {})
                answer = page.client.post(path, base_url=ORIGIN, headers=headers)
                assert answer.status_code == 403, path
                assert "Nothing was changed" in answer.text
    assert page.store.runs() == []


def test_no_route_changes_anything_by_get(page: Any) -> None:
    for rule in page.app.url_map.iter_rules():
        methods = rule.methods or set()
        assert not ({"GET", "POST"} <= methods), rule


def test_the_start_up_token_is_exchanged_once_for_a_cookie(page: Any) -> None:
    token = page.services.sessions.token
    client = page.app.test_client()
    first = client.get(f"/compare?run=a&token={token}&run=b", base_url=ORIGIN)
    assert first.status_code == 303
    assert first.headers["Location"] == "/compare?run=a&run=b"
    cookie = first.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert client.get("/model", base_url=ORIGIN).status_code == 200
    second = page.app.test_client().get(f"/?token={token}", base_url=ORIGIN)
    assert second.status_code == 401


def test_a_used_address_still_opens_where_there_is_access(page: Any) -> None:
    answer = page.get("/?token=an-old-one-that-was-used")
    assert answer.status_code == 303
    assert answer.headers["Location"] == "/"


def test_a_token_never_leads_to_another_site(page: Any) -> None:
    for path in ("//evil.example/", "///evil.example/%2e%2e", "/\\evil.example"):
        answer = page.client.get(
            f"{path}?token=x", base_url=ORIGIN, environ_overrides={"PATH_INFO": path}
        )
        assert answer.status_code == 303
        assert not answer.headers["Location"].startswith(("//", "/\\"))


def test_every_answer_carries_the_headers(page: Any) -> None:
    for path in ("/", "/model", "/static/page.css", "/nothing", "/runs/none"):
        answer = page.get(path)
        assert_safe(answer)
        answer.close()


def assert_safe(answer: Any) -> None:
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "same-origin"
    assert "Access-Control-Allow-Origin" not in answer.headers
