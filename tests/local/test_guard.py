"""Host and Origin of a request to a server on loopback."""

import pytest

from local.guard import allowed_hosts, check, is_loopback, loopback_hosts

HOSTS = loopback_hosts(8080)


@pytest.mark.parametrize(
    "host", ["localhost:8080", "127.0.0.1:8080", "[::1]:8080", "LOCALHOST:8080"]
)
@pytest.mark.parametrize("origin", [None, "http://localhost:8080", "http://127.0.0.1:8080"])
def test_s14_our_own_names_pass(host, origin):
    assert check("POST", host, origin, HOSTS) is None


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "localhost",
        "127.0.0.1",
        "localhost:8081",
        "evil.example:8080",
        "evil.example",
        "localhost:8080.evil.example",
        "localhost:8080 ",
        "localhost.:8080",
        "user@localhost:8080",
        "127.1:8080",
        "0.0.0.0:8080",
        "[::]:8080",
        "localhost:08080",
        "localhost:8080,localhost:8080",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
def test_s14_any_other_host_is_refused(host, method):
    assert check(method, host, None, HOSTS)


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://evil.example",
        "https://localhost:8080",
        "http://localhost",
        "http://localhost:8081",
        "http://localhost:8080/",
        "http://localhost:8080@evil.example",
        "http://127.0.0.1.evil.example:8080",
        "file://",
        "chrome-extension://abc",
        "http://localhost:8080 http://evil.example",
    ],
)
def test_s14_any_other_origin_is_refused(origin):
    assert check("POST", "localhost:8080", origin, HOSTS)


def test_a_refusal_shows_what_it_refused_but_nothing_that_acts():
    reason = check("GET", "evil\x1b[31m\u202e" + "x" * 5000, None, HOSTS)
    assert reason is not None
    assert "\x1b" not in reason
    assert "\u202e" not in reason
    assert len(reason) < 400
    assert "localhost:8080" in reason


def test_port_80_may_be_left_out():
    assert check("GET", "localhost", "http://localhost", loopback_hosts(80)) is None
    assert check("GET", "localhost:80", None, loopback_hosts(80)) is None


def test_an_address_of_ones_own():
    assert (
        check("GET", "box.lan:9000", "http://box.lan:9000", allowed_hosts("Box.lan", 9000)) is None
    )
    assert check("GET", "[fe80::1]:9000", None, allowed_hosts("fe80::1", 9000)) is None
    assert check("GET", "localhost:9000", None, allowed_hosts("box.lan", 9000)) is None
    assert check("GET", "192.168.0.7:9000", None, allowed_hosts("0.0.0.0", 9000))


def test_loopback_is_what_only_this_machine_can_reach():
    assert all(map(is_loopback, ["127.0.0.1", "localhost", "::1", "127.0.0.9"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "example.org", "10.0.0.1"]))
