"""A store, a workspace and runners over a scripted model."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.demo import copy_demo
from harness.runner import Runner
from harness.scripted_model import ScriptedModel
from harness.state import Prices, Settings
from harness.store import Store

PRICES = Prices(input_per_million=2, output_per_million=12)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "data" / "runs.db") as opened:
        yield opened


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return copy_demo(tmp_path / "files", archive_seconds=0)


@pytest.fixture
def settings(workspace: Path) -> Callable[..., Settings]:
    """Settings over the demo's files; keywords change them."""

    def make(**changes: Any) -> Settings:
        values = {
            "base_url": "http://127.0.0.1:1/v1",
            "model": "scripted",
            "workspace": str(workspace),
            "tools": ("list_files", "read_file", "delete_file"),
            "prices": PRICES,
        }
        return Settings(**{**values, **changes})

    return make


@pytest.fixture
def runner(store: Store) -> Callable[..., Runner]:
    """A runner whose model says the given lines; keywords go to the `Runner`."""

    def make(*script: Any, **more: Any) -> Runner:
        model = script[0] if script and isinstance(script[0], ScriptedModel) else None
        provider = model or ScriptedModel(*(script or ("done",)))
        more.setdefault("store", store)
        return Runner(provider_factory=lambda _: provider, **more)

    return make
