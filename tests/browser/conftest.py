"""A real browser over real processes: the scripted server and the page."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright

HERE = Path(__file__).parent
TOKEN = "a-start-up-token-for-the-browser"
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
MISSING = (
    "There is no Chromium here. Install it: `apt-get install chromium`, or "
    "`.venv/bin/playwright install chromium`; or name one in CHROMIUM."
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


def chromium(playwright: Playwright) -> str | None:
    """The browser's program: named, the system's, or Playwright's own."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if found:
        return found
    own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        program = chromium(playwright)
        if program is None:
            pytest.skip(MISSING)
        started = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield started
        started.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Stack:
    """The two processes, on ports that stay the same when they are started again."""

    data: Path
    real: str = "http://127.0.0.1:9/v1"
    recordings: tuple[Path, ...] = ()
    page_port: int = field(default_factory=free_port)
    scripted_port: int = field(default_factory=free_port)
    processes: list[subprocess.Popen[str]] = field(default_factory=list)
    cookies: Any = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.page_port}"

    @property
    def scripted(self) -> str:
        return f"http://127.0.0.1:{self.scripted_port}/v1"

    def start(self) -> None:
        serve = ["-m", "uitweg", "serve", *map(str, self.recordings), "--scripted", "--port"]
        self._run(*serve, str(self.scripted_port))
        page = [str(HERE / "serve_page.py"), str(self.data), str(self.page_port)]
        self._run(*page, self.scripted, self.real, TOKEN)
        self._reached(f"{self.scripted}/models")

    def enter(self, browser: Browser) -> None:
        """Exchange the start-up token; every profile gets the cookie."""
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


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Stack]:
    """One for all tests that end nothing; they leave no run that waits."""
    made = Stack(tmp_path_factory.mktemp("stack"))
    made.start()
    made.enter(browser)
    yield made
    made.end()


@pytest.fixture
def own_stack(tmp_path: Path, browser: Browser) -> Iterator[Stack]:
    """One for a test that kills it."""
    made = Stack(tmp_path / "data")
    made.start()
    made.enter(browser)
    yield made
    made.end()


class Faults(list[str]):
    """What a page has complained about; a test that expects some clears them."""


@pytest.fixture
def faults() -> Iterator[Faults]:
    found = Faults()
    yield found
    assert found == []


@pytest.fixture
def open_context(browser: Browser, faults: Faults) -> Iterator[Callable[..., BrowserContext]]:
    """Makes a browser profile whose pages report errors, dialogs and foreign requests."""
    made: list[BrowserContext] = []

    def make(stack: Stack, **more: Any) -> BrowserContext:
        given = {"viewport": {"width": 1280, "height": 860}, "storage_state": stack.cookies}
        context = browser.new_context(**(given | more))
        made.append(context)
        context.set_default_timeout(20_000)
        context.on("page", lambda page: _listen(page, faults))
        return context

    yield make
    for context in made:
        context.close()


def _listen(page: Page, faults: Faults) -> None:
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on(
        "console",
        lambda said: faults.append(f"console: {said.text}") if said.type == "error" else None,
    )
    page.on(
        "request",
        lambda request: (
            faults.append(f"request: {request.url}")
            if not request.url.startswith(("http://127.0.0.1:", "data:"))
            else None
        ),
    )


@pytest.fixture
def page(stack: Stack, open_context: Callable[..., BrowserContext]) -> Page:
    """The front page, with access."""
    found = open_context(stack).new_page()
    found.goto(stack.address)
    return found


@pytest.fixture
def own_page(own_stack: Stack, open_context: Callable[..., BrowserContext]) -> Page:
    """The same over a stack that may be killed."""
    found = open_context(own_stack).new_page()
    found.goto(own_stack.address)
    return found


@pytest.fixture
def begin() -> Callable[..., None]:
    """Starts an example from the front page and waits for its run's page."""

    def start(page: Page, example: str, **fields: str) -> None:
        page.get_by_role("link", name=example).click()
        for name, value in fields.items():
            page.locator(f"[name={name}]").first.fill(value)
        page.locator("#task").press("Enter")
        page.wait_for_url("**/runs/*")

    return start


@pytest.fixture
def ending() -> Callable[..., None]:
    """Waits until the page says how its run ended."""

    def wait(page: Page, word: str) -> None:
        page.locator("#part-state .chip", has_text=word).wait_for()

    return wait
