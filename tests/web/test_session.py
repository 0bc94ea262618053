import stat
from pathlib import Path

import pytest

from web.session import Sessions, load_key


def test_a_key_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "page.key"
    key = load_key(path)
    assert len(key) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_key(path) == key


def test_a_key_that_others_may_read_is_closed_again(tmp_path: Path) -> None:
    path = tmp_path / "page.key"
    load_key(path)
    path.chmod(0o644)
    load_key(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_broken_key_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "page.key"
    path.write_bytes(b"short")
    with pytest.raises(ValueError, match="remove it"):
        load_key(path)


def test_a_token_is_exchanged_once() -> None:
    told: list[str] = []
    sessions = Sessions(b"k" * 32, "first-token-of-the-page", told.append)
    assert sessions.exchange("wrong") is None
    cookie = sessions.exchange("first-token-of-the-page")
    assert cookie is not None
    assert sessions.open(cookie)
    assert sessions.exchange("first-token-of-the-page") is None
    assert told == [sessions.token]
    assert sessions.exchange(sessions.token) is not None


def test_a_cookie_outlives_a_restart_and_belongs_to_its_key() -> None:
    cookie = Sessions(b"k" * 32, "t" * 20).exchange("t" * 20)
    assert Sessions(b"k" * 32).open(cookie)
    assert Sessions(b"x" * 32).open(cookie) is None


@pytest.mark.parametrize("cookie", [None, "", "a", "a.b.c", "\xff", "x" * 5000])
def test_a_made_up_cookie_opens_nothing(cookie: str | None) -> None:
    assert Sessions(b"k" * 32).open(cookie) is None


def test_a_csrf_token_belongs_to_one_session() -> None:
    sessions = Sessions(b"k" * 32)
    assert sessions.csrf_ok("one", sessions.csrf("one"))
    assert not sessions.csrf_ok("two", sessions.csrf("one"))
    for wrong in (None, "", "\ud800", sessions.csrf("one")[:-1]):
        assert not sessions.csrf_ok("one", wrong)
