"""A real browser over real processes: the scripted server and the page."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

HERE = Path(__file__).parent


def _load_lab() -> ModuleType:
    """`pagelab.py`, which the screenshots and the benchmark use as well."""
    spec = importlib.util.spec_from_file_location("pagelab", HERE / "pagelab.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["pagelab"] = module
    spec.loader.exec_module(module)
    return module


lab = _load_lab()
Stack = Any


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        try:
            started = lab.launch(playwright)
        except lab.NoBrowser as missing:
            pytest.skip(str(missing))
        yield started
        started.close()


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Stack]:
    """One for all tests that end nothing; they leave no run that waits."""
    made = lab.Stack(tmp_path_factory.mktemp("stack"))
    made.start()
    made.enter(browser)
    yield made
    made.end()


@pytest.fixture
def own_stack(tmp_path: Path, browser: Browser) -> Iterator[Stack]:
    """One for a test that kills it."""
    made = lab.Stack(tmp_path / "data")
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
        context.set_default_timeout(120_000)
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
    found: Callable[..., None] = lab.begin
    return found


@pytest.fixture
def ending() -> Callable[..., None]:
    """Waits until the page says how its run ended."""
    found: Callable[..., None] = lab.ending
    return found
