"""One file over HTTP, into a `.part` file, going on where it broke off.

The hub's own downloader is not used for this: both sources need the same rules (short waits for
an answer, a file that may be resumed by another process on another day, a digest over what lies
on disk), and one way of doing it is easier to trust than two.
"""

from __future__ import annotations

import re
import shutil
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import certifi
import httpx

from models import disk
from models.errors import Refused, Unreachable, WrongContent

CONNECT_SECONDS = 3.0
"""An unreachable source is found out within this, so that the next one gets its turn."""
SILENCE_SECONDS = 10.0
"""A connection on which nothing came for so long has broken; a source that has not said anything
yet counts as unreachable then."""
TRIES = 4
"""In a row without a new byte, then the source is given up."""
PAUSE_SECONDS = 1.0
"""Before the second try; twice as long before each one after it."""
CHUNK = 1 << 20

Told = Callable[[int, int | None], None]
"""Called with the bytes that are on disk by now, and with the file's size as far as it is known."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a file is.

    Attributes:
        url: http, https or, for a package index on this machine, file.
        source: how a person calls it: `the hub`, `the package index`.
        bytes: its size, if it is known beforehand.
        headers: to be sent along.
    """

    url: str
    source: str
    bytes: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class _Broken(Exception):
    """The connection ended before the file did, or the server is out of order for now."""


def download(address: Address, part: Path, told: Told) -> None:
    """Fetch what is still missing of a file.

    Args:
        address: where it is.
        part: the file to fill; what it holds already counts as the file's beginning.
        told: hears how far it is.

    Raises:
        Unreachable: nobody answers, or the connection broke again and again.
        Refused: an answer, but not the file.
        WrongContent: the file there has another size.
        NoRoom: the disk is full.
    """
    try:
        parsed = urlsplit(address.url)
    except ValueError as error:
        raise Refused(f"{_name(address)} has an address of no use: {_why(error)}") from error
    if parsed.scheme == "file":
        with disk.room(part.parent):
            shutil.copyfile(url2pathname(parsed.path), part)
        return told(disk.size(part), disk.size(part))
    timeout = httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
    with httpx.Client(timeout=timeout, follow_redirects=True, verify=_trusted()) as client:
        _with_patience(client, address, part, told)
    return None


def _trusted() -> ssl.SSLContext:
    """The certificates that this system trusts, as pip does, and those that httpx brings."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def _with_patience(client: httpx.Client, address: Address, part: Path, told: Told) -> None:
    """Try again after a break, as long as new bytes come now and then."""
    answered = False
    failures = 0
    while True:
        before = disk.size(part)
        try:
            return _once(client, address, part, told)
        except (httpx.UnsupportedProtocol, httpx.InvalidURL, httpx.TooManyRedirects) as error:
            raise Refused(f"{_name(address)} has an address of no use: {_why(error)}") from error
        except (httpx.ConnectError, httpx.TimeoutException) as error:
            answered = answered or disk.size(part) > before
            if not answered:
                host = urlsplit(address.url).netloc.rpartition("@")[2]
                raise Unreachable(
                    f"{_name(address)} cannot be reached at {host} ({_why(error)})."
                ) from error
            broken: Exception = error
        except (httpx.TransportError, _Broken) as error:
            answered = True
            broken = error
        failures = 1 if disk.size(part) > before else failures + 1
        if failures >= TRIES:
            raise Unreachable(
                f"{_name(address)} broke off {TRIES} times in a row ({_why(broken)}). "
                "Try again later: it goes on where it stopped."
            ) from broken
        time.sleep(PAUSE_SECONDS * 2 ** (failures - 1))


def _once(client: httpx.Client, address: Address, part: Path, told: Told) -> None:
    have = disk.size(part)
    if address.bytes is not None and have >= address.bytes:
        return  # whole already; whether it is right is for the digest to say
    # What is compressed on the way has no byte positions to go on from.
    headers = {**address.headers, "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    with client.stream("GET", address.url, headers=headers) as response:
        start, total = _begins(response, have, address, part)
        _same_size(address, total)
        _write(response, part, start, address, lambda done: told(done, address.bytes or total))
    if disk.size(part) < (address.bytes or 0):
        _same_size(address, disk.size(part))


def _begins(
    response: httpx.Response, have: int, address: Address, part: Path
) -> tuple[int, int | None]:
    """Where in the file the body begins, and the file's size if the server tells.

    Raises:
        _Broken: worth another try.
        Refused: not worth one.
    """
    status = response.status_code
    if status == 200:
        length = response.headers.get("Content-Length", "")
        return 0, int(length) if length.isdecimal() else None
    told = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
    if status == 206 and told and int(told[1]) == have:
        return have, int(told[2]) if told[2] != "*" else None
    if status in {206, 416}:
        # What is on disk is longer than the file there, or the server mixes up its ranges.
        part.unlink(missing_ok=True)
        raise _Broken("it could not go on where it stopped")
    if status == 429 or status >= 500:
        raise _Broken(f"status {status}")
    raise Refused(f"{_name(address)} does not give the file: {_meaning(status)}.")


def _same_size(address: Address, total: int | None) -> None:
    if address.bytes is not None and total is not None and total != address.bytes:
        kind = "short" if total < address.bytes else "long"
        raise WrongContent(
            f"{_name(address)} has a file of {total:,} bytes where {address.bytes:,} are expected, "
            f"which is too {kind}: it is not the same file."
        )


def _write(
    response: httpx.Response,
    part: Path,
    start: int,
    address: Address,
    told: Callable[[int], None],
) -> None:
    done = start
    with disk.room(part.parent), part.open("r+b" if start else "wb") as file:
        file.seek(start)
        for chunk in response.iter_raw():
            done += len(chunk)
            if address.bytes is not None and done > address.bytes:
                _same_size(address, done)
            file.write(chunk)
            told(done)


def _name(address: Address) -> str:
    return address.source[:1].upper() + address.source[1:]


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__


def _meaning(status: int) -> str:
    known = {
        401: "401, it wants a login",
        403: "403, it is not allowed",
        404: "404, it is not there",
        410: "410, it is gone",
    }
    return known.get(status, f"status {status}")
