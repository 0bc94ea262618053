"""Who may use the page: a start-up token, then a signed cookie, and a CSRF token.

The start-up token stands in the printed address. It is exchanged once for a
cookie; then a new token takes its place, so that an address found in a history
or a process list opens nothing. The key that signs cookies is kept in a file
beside the store (mode 0600), so a restart does not send anybody away.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import tempfile
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from itsdangerous import BadSignature, TimestampSigner

COOKIE_DAYS = 30
COOKIE_SECONDS = COOKIE_DAYS * 24 * 3600


def load_key(path: Path) -> bytes:
    """The 32 bytes kept at `path`; made on first use, readable by the owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        return _checked(path)
    # Written aside and linked into place: of two first starts one wins, whole.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".page-key-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(32))
        with contextlib.suppress(FileExistsError):
            os.link(name, path)
    finally:
        Path(name).unlink()
    return _checked(path)


def _checked(path: Path) -> bytes:
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)
    key = path.read_bytes()
    if len(key) != 32:
        raise ValueError(f"{path} is no key of this page: remove it and start again.")
    return key


class Sessions:
    """Tokens and cookies of one page. Safe to use from several threads."""

    def __init__(
        self, key: bytes, token: str | None = None, on_token: Callable[[str], None] | None = None
    ) -> None:
        self._key = key
        self._signer = TimestampSigner(key, salt="uitweg.page.session", digest_method=sha256)
        self._lock = threading.Lock()
        self._token = token or secrets.token_urlsafe(24)
        self._on_token = on_token

    @property
    def token(self) -> str:
        """The start-up token that the next exchange takes."""
        return self._token

    def exchange(self, token: str) -> str | None:
        """A cookie for the right token, which is then used up; `None` for any other."""
        with self._lock:
            if not hmac.compare_digest(token.encode(), self._token.encode()):
                return None
            self._token = secrets.token_urlsafe(24)
        if self._on_token is not None:
            self._on_token(self._token)
        return self._signer.sign(secrets.token_urlsafe(18)).decode()

    def open(self, cookie: str | None) -> str | None:
        """The session's id, or `None` when the cookie is missing, old or not ours."""
        if not cookie:
            return None
        try:
            return self._signer.unsign(cookie, max_age=COOKIE_SECONDS).decode()
        except (BadSignature, UnicodeError):
            return None

    def csrf(self, session: str) -> str:
        """The token that every change of this session must carry."""
        return hmac.new(self._key, b"uitweg.page.csrf:" + session.encode(), sha256).hexdigest()

    def csrf_ok(self, session: str, given: str | None) -> bool:
        return given is not None and hmac.compare_digest(
            self.csrf(session).encode(), given.encode("utf-8", "surrogatepass")
        )
