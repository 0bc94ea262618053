"""The page's benchmark, as far as it needs no browser: it goes by the store's interface."""

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

from harness.store import Store

SCRIPT = Path(__file__).parents[2] / "scripts" / "bench-page"


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parents[1] / "tests" / "browser"))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    loader = SourceFileLoader("bench_page", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_page", loader))
    loader.exec_module(module)
    return module


def test_the_runs_that_it_makes_up_are_runs(bench, tmp_path):
    bench.fill(tmp_path / "runs.db", 5)
    with Store.open(tmp_path / "runs.db") as store:
        runs = store.runs()
        assert len(runs) == 5
        run = store.load("bench00002")
        assert (run.status, run.turns) == ("max_turns_exceeded", 3)
        assert [event.seq for event in store.events(run.run_id)] == [1, 2]
