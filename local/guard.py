"""Who may ask a server on loopback: not a web page of somebody else that a browser has open.

Two defences, both pure. `Host` must be a name under which the server may be addressed, or a
foreign name could be made to resolve to loopback (DNS rebinding). `Origin`, which browsers send
and programs do not, must be the server's own.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

LOOPBACK_HOSTS = frozenset(["127.0.0.1", "localhost", "::1"])


def check(method: str, host: str, origin: str | None, allowed_hosts: Collection[str]) -> str | None:
    """Why a request is refused, or None where it is not.

    Args:
        method: the request's method; every method is checked alike.
        host: the `Host` header as sent, with its port; "" where there was none.
        origin: the `Origin` header, or None.
        allowed_hosts: names without ports, IPv6 addresses without brackets.
    """
    name = _name(host)
    if name is None:
        return "A request needs one Host header."
    if name not in {allowed.lower() for allowed in allowed_hosts}:
        return f"This server does not answer under the name {name[:100]!r}."
    if origin is None or origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}"):
        return None
    return f"{method[:20]} from the web page {origin[:100]!r} is not allowed."


def _name(host: str) -> str | None:
    """The name in a Host header, without its port; None if it is none."""
    if not host or set(host) & set("/?#@\\, \t"):
        return None
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # raises for a port that is no number
    except ValueError:
        return None
    return parts.hostname
