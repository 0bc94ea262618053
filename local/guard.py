"""Who may speak to a server on loopback: a pure check of one request's headers.

Any page that a browser has open can send requests to 127.0.0.1, and a name of its own can be made
to point there (DNS rebinding). Both show in the headers: the page's own origin in `Origin`, its
name in `Host`. So `Host` must be exactly one of ours, port included, and `Origin`, where there is
one, must be one of ours too. A program that is no browser sends no `Origin`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
PLAIN_PORT = 80
"""The one port that a browser leaves out of `Host` and `Origin`."""


def loopback_hosts(port: int) -> tuple[str, ...]:
    """The values of `Host` under which a server on loopback is reached."""
    hosts = tuple(f"{name}:{port}" for name in LOOPBACK)
    return (*hosts, *LOOPBACK) if port == PLAIN_PORT else hosts


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens at `host`."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bracketed(host: str) -> str:
    """A host as it stands in an address: one of IPv6 in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def allowed_hosts(host: str, port: int) -> tuple[str, ...]:
    """The values of `Host` for a server that listens at `host`, which a person may have chosen.

    A server that listens on every address (0.0.0.0, ::) answers to its loopback names only, as
    nothing tells which other name is the right one.
    """
    if host in ("", "0.0.0.0", "::"):  # noqa: S104  only compared with, nothing is bound here
        return loopback_hosts(port)
    name = bracketed(host.lower())
    own = (f"{name}:{port}", name) if port == PLAIN_PORT else (f"{name}:{port}",)
    return tuple(dict.fromkeys((*own, *loopback_hosts(port))))


def check(
    method: str, host: str | None, origin: str | None, allowed_hosts: Collection[str]
) -> str | None:
    """Say why a request must be refused, before anything else looks at it.

    Args:
        method: of the request; reads are held to the same rule, since what they give away is
            worth as much as what a change does. It only goes into the reason.
        host: the `Host` header, None where it is missing.
        origin: the `Origin` header, None where it is missing.
        allowed_hosts: `name:port` in lower case, see `loopback_hosts`.

    Returns:
        A sentence for whoever asked, or None when the request may pass.
    """
    if not host:
        return f"This {method} request has no Host header, so it is refused."
    if host.lower() not in allowed_hosts:
        return (
            f"This server does not answer to the name {_shown(host)}. "
            f"Use one of: {', '.join(allowed_hosts)}."
        )
    if origin is None or origin.lower() in {f"http://{name}" for name in allowed_hosts}:
        return None
    return (
        f"This {method} request comes from a page of {_shown(origin)}, which is another site than "
        "this server, so it is refused."
    )


def _shown(value: str) -> str:
    """A header's value, short and without anything that could act on whoever reads it."""
    short = value if len(value) <= 100 else value[:100] + "…"
    return ascii(short)
