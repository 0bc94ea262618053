"""A page over a real store, a real runner and the real scripted server."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from harness.demo import copy_demo
from harness.state import Limits, RunState, Settings
from harness.store import Store
from web import PageConfig, create_app
from web.begin import settings_for
from web.endpoints import Place
from web.services import KEY, Services

PORT = 8000
ORIGIN = f"http://127.0.0.1:{PORT}"
TOKEN = "a-start-up-token-for-tests"


@pytest.fixture(scope="session")
def scripted() -> Iterator[str]:
    """The address of a scripted server in a process of its own."""
    command = [sys.executable, "-m", "uitweg", "serve", "--scripted", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "http://" in line, line
        yield "http://" + line.split("http://")[1].split()[0]
        process.terminate()


@dataclass
class Page:
    """A page of the tests: its app, a client that has access, and shortcuts."""

    app: Flask
    client: FlaskClient
    workspace: Path
    scripted: str
    closed: bool = False

    def close(self) -> None:
        """As when the program ends."""
        if not self.closed:
            self.closed = True
            self.services.close()

    @property
    def services(self) -> Services:
        found: Services = self.app.extensions[KEY]
        return found

    @property
    def store(self) -> Store:
        return self.services.store

    @property
    def csrf(self) -> str:
        text = self.client.get("/model", base_url=ORIGIN).text
        return text.split('name="csrf" content="')[1].split('"')[0]

    def get(self, path: str, **more: Any) -> TestResponse:
        return self.client.get(path, base_url=ORIGIN, **more)

    def post(self, path: str, data: dict[str, Any] | None = None, **more: Any) -> TestResponse:
        headers = {"Origin": ORIGIN} | more.pop("headers", {})
        return self.client.post(
            path,
            data={"csrf": self.csrf} | (data or {}),
            base_url=ORIGIN,
            headers=headers,
            **more,
        )

    def send(self, path: str, data: dict[str, Any] | None = None) -> TestResponse:
        """As the page's script sends a form."""
        return self.post(path, data, headers={"Accept": "application/json"})

    def settings(self, model: str, **more: Any) -> Settings:
        place = Place("scripted", "Scripted", self.scripted)
        made = settings_for(self.services.config, place, model, "", Limits())
        return made.model_copy(update=more)

    def start(self, model: str, task: str = "A task.", **more: Any) -> str:
        return self.services.carrier.start(task, self.settings(model, **more))

    def ended(self, run_id: str, seconds: float = 20.0) -> RunState:
        """The run once nobody carries it any more."""
        return self.until(
            lambda: None if self.services.reader.carried(run_id) else self.store.load(run_id),
            seconds,
        )

    @staticmethod
    def until(look: Callable[[], Any], seconds: float = 20.0) -> Any:
        """What `look` gives as soon as it is something."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := look():
                return found
            time.sleep(0.01)
        raise AssertionError("it did not happen in time")


@pytest.fixture
def config(tmp_path: Path, scripted: str) -> PageConfig:
    workspace = copy_demo(tmp_path / "workspace")
    return PageConfig(
        store=tmp_path / "data" / "runs.db",
        workspace=workspace,
        base_url="http://127.0.0.1:9/v1",
        scripted_url=scripted,
        port=PORT,
        token=TOKEN,
    )


@pytest.fixture
def make_page(config: PageConfig) -> Iterator[Callable[[], Page]]:
    """Makes a page; called again, a second one over the same store, as after a restart."""
    made: list[Page] = []

    def make() -> Page:
        app = create_app(config)
        page = Page(app, app.test_client(), config.workspace, config.scripted_url or "")
        made.append(page)
        page.client.get(f"/?token={TOKEN}", base_url=ORIGIN)
        return page

    yield make
    for page in made:
        page.close()


@pytest.fixture
def page(make_page: Callable[[], Page]) -> Page:
    return make_page()
