"""HTTP to one endpoint, and its failures in the words of this package.

By aiohttp, where the rest of the project uses httpx: a reply in many small events
costs a third of the time, and that is most of what a turn costs besides the model
(measured by scripts/overhead.py).
"""

from __future__ import annotations

import asyncio
import contextlib

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError
from yarl import URL

from harness.errors import SettingsError
from harness.provider.endpoint import is_local
from harness.provider.errors import (
    EndpointUnreachable,
    ProviderError,
    ReplyBroken,
    ReplyUnreadable,
    RequestRefused,
    nobody_answers,
)

_CONNECT_SECONDS = 10.0
_KEEP_SECONDS = 4.0
"""Below the 5 s after which uvicorn closes an idle connection."""
_LINGER = 0.5
"""Seconds to wait for the end of a stream after its last event, to keep the connection."""


class Connection:
    """The connections to one address: as many as there are requests, kept for the next.

    Args:
        url: Where requests are posted.
        api_key: Sent as a bearer token.
        read_timeout: Seconds without a byte after which a reply counts as broken.

    Raises `SettingsError` for an address or a key that cannot be sent.
    """

    def __init__(self, url: str, api_key: str | None, read_timeout: float) -> None:
        try:
            self._url = URL(url)
        except ValueError as error:
            raise SettingsError(f"{url!r} is no address for a model: {error}.") from None
        self._headers = {"content-type": "application/json", "accept": "text/event-stream"}
        if api_key:
            if not (api_key.isascii() and api_key.isprintable()):
                raise SettingsError(
                    "LLM_API_KEY cannot be sent: it holds a line break or what is not ASCII."
                )
            self._headers["authorization"] = f"Bearer {api_key}"
        self._trust_env = not is_local(url)
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=_CONNECT_SECONDS, sock_read=read_timeout
        )
        self._session: aiohttp.ClientSession | None = None

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def post(self, data: bytes, number: int) -> aiohttp.ClientResponse:
        """Send `data` for the `number`-th time, from 0. Close what comes back.

        Raises a `ProviderError` when nothing came back.
        """
        try:
            return await self._open().post(
                self._url,
                data=data,
                headers={"x-attempt": str(number)},
                allow_redirects=False,
            )
        except (aiohttp.ClientError, OSError) as error:
            raise self._failure(error) from error

    async def read(self, response: aiohttp.ClientResponse) -> bytes:
        """Some more of the body, empty at its end. Raises a `ProviderError` when it breaks off."""
        try:
            return await response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise self._failure(error) from error

    async def read_rest(self, response: aiohttp.ClientResponse) -> None:
        """Read to the very end, which is usually there already: the connection can be kept."""
        with contextlib.suppress(TimeoutError, ProviderError):
            async with asyncio.timeout(_LINGER):
                while await self.read(response):
                    pass

    def _open(self) -> aiohttp.ClientSession:
        """The pool, made inside the event loop that it is for."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers=self._headers,
                timeout=self._timeout,
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=self._trust_env,
            )
        return self._session

    def _failure(self, error: Exception) -> ProviderError:
        """What a failure of the connection means to a person."""
        if isinstance(error, aiohttp.ClientSSLError):
            return EndpointUnreachable(f"No secure connection to {self._url}: {error}")
        if isinstance(error, (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)):
            return nobody_answers(self._url)
        if isinstance(error, TimeoutError):
            return ReplyBroken("The endpoint went silent in the middle of its reply.")
        if isinstance(error.__cause__ or error, ContentEncodingError):
            return ReplyUnreadable(f"The endpoint's reply is packed wrongly: {error}")
        if isinstance(error, aiohttp.InvalidURL):
            return RequestRefused(f"The request cannot be sent to {self._url}: {error}")
        return ReplyBroken(f"The connection broke: {error or type(error).__name__}")
