"""The modules of scripts/, which is no package: they import one another by their bare names."""

import importlib
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def script(monkeypatch):
    """Import one of them anew: `script("engine")`."""
    monkeypatch.syspath_prepend(SCRIPTS)
    before = set(sys.modules)

    def load(name):
        return importlib.import_module(name)

    yield load
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", "") and SCRIPTS.samefile(
            Path(sys.modules[name].__file__ or ".").parent
        ):
            del sys.modules[name]
