"""The page and the scripted server as processes, and a browser to look at them.

The tests here use it, and so do scripts/bench-page and scripts/screenshots.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Playwright

SERVE = Path(__file__).with_name("serve_page.py")
TOKEN = "a-start-up-token-for-the-browser"
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
MISSING = (
    "There is no Chromium here. Install it: `apt-get install chromium`, or "
    "`.venv/bin/playwright install chromium`; or name one in CHROMIUM."
)


class NoBrowser(Exception):
    """There is no Chromium; the text says how to get one."""


def launch(playwright: Playwright) -> Browser:
    """A Chromium: the one that is named, the system's, or Playwright's own."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    own = playwright.chromium.executable_path
    program = found or (own if Path(own).exists() else None)
    if program is None:
        raise NoBrowser(MISSING)
    return playwright.chromium.launch(executable_path=program, args=ARGUMENTS)


def free_port() -> int:
    """A port that nothing listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Stack:
    """The two processes, on ports that stay the same when they are started again."""

    data: Path
    real: str = "http://127.0.0.1:9/v1"
    page_port: int = field(default_factory=free_port)
    scripted_port: int = field(default_factory=free_port)
    processes: list[subprocess.Popen[str]] = field(default_factory=list)
    cookies: Any = None

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.page_port}"

    @property
    def scripted(self) -> str:
        """Where the scripted server is."""
        return f"http://127.0.0.1:{self.scripted_port}/v1"

    def start(self) -> None:
        """Start both and wait until they answer."""
        self._run("-m", "uitweg", "serve", "--scripted", "--port", str(self.scripted_port))
        page = [str(SERVE), str(self.data), str(self.page_port)]
        self._run(*page, self.scripted, self.real, TOKEN)
        self._reached(f"{self.scripted}/models")

    def enter(self, browser: Browser) -> None:
        """Exchange the start-up token; `cookies` then opens the page in any profile."""
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{self.address}/?token={TOKEN}")
        self.cookies = context.storage_state()
        context.close()

    def _run(self, *arguments: str) -> None:
        process = subprocess.Popen(
            [sys.executable, *arguments], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self.processes.append(process)
        assert process.stdout is not None
        assert "http://" in process.stdout.readline(), arguments

    @staticmethod
    def _reached(url: str) -> None:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                urllib.request.urlopen(url, timeout=5).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise AssertionError(f"{url} does not answer")

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End both; with SIGKILL without a word to either."""
        for process in self.processes:
            os.killpg(process.pid, number)
        for process in self.processes:
            process.wait(30)
            assert process.stdout is not None
            process.stdout.close()
        self.processes.clear()


def begin(page: Any, example: str, **fields: str) -> None:
    """Start an example from the front page and wait for its run's page."""
    page.get_by_role("link", name=example).click()
    for name, value in fields.items():
        page.locator(f"[name={name}]").first.fill(value)
    page.locator("#task").press("Enter")
    page.wait_for_url("**/runs/*")


def ending(page: Any, word: str) -> None:
    """Wait until the page says how its run ended."""
    page.locator("#part-state .chip", has_text=word).wait_for()
