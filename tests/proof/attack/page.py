"""The page in a process of its own: `python -m attack.page STORE SCRIPTED_URL`."""

from __future__ import annotations

import http.client
import re
import signal
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from attack.served import served
from web import PageConfig
from web.serving import serve

NOBODY = "http://127.0.0.1:9/v1"


class Access(NamedTuple):
    """What a browser has that may use the page."""

    host: str
    """With its port."""
    cookie: str
    csrf: str


def page(store: Path, scripted: str, log: Path | None = None) -> AbstractContextManager[str]:
    """Serve it; the address with the start-up token."""
    return served(["attack.page", str(store), scripted], log)


def enter(url: str) -> Access:
    """Use the start-up token as a browser does."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    connection.request("GET", f"/?{parts.query}")
    answer = connection.getresponse()
    answer.read()
    cookie = (answer.getheader("Set-Cookie") or "").partition(";")[0]
    connection.request("GET", "/model", headers={"Cookie": cookie})
    found = re.search(r'name="csrf" content="([^"]*)"', connection.getresponse().read().decode())
    connection.close()
    assert found is not None
    return Access(parts.netloc, cookie, found[1])


if __name__ == "__main__":
    config = PageConfig(store=Path(sys.argv[1]), base_url=NOBODY, scripted_url=sys.argv[2], port=0)
    running = serve(config)
    print(running.url, flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
    running.stop()
