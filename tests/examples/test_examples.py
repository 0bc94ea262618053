"""Every example with its scripted model: what it gives, one Stop for all, one budget for all."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness import Budget, Store
from harness.demo import copy_demo

FOLDER = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "common")


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "runs.db") as opened:
        yield opened


@pytest.fixture
def workspace(tmp_path):
    return copy_demo(tmp_path / "files", archive_seconds=None)


@pytest.fixture
def example(monkeypatch, store):
    """An example's module by name, and a tree for it."""
    monkeypatch.delenv("LLM_BASE_URL", raising=False)
    monkeypatch.syspath_prepend(FOLDER)

    def load(name):
        spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        from common import Tree

        return module, Tree(module.script, store=store)

    return load


async def call(name, module, tree, workspace):
    """Carry out an example as its own last lines do."""
    work = {
        "prompt_chain": lambda: module.chain(tree, "rusty pipes"),
        "routing": lambda: module.route(tree, "What is 7 x 6?", workspace),
        "parallel_workers": lambda: module.parallel(tree, ["a", "it timed out", "b"]),
        "orchestrator": lambda: module.orchestrate(tree, "How many fruits are there?"),
        "evaluator": lambda: module.improve(tree, "When does water boil?"),
        "hand_off": lambda: module.serve(tree, "Please, which files are there?", workspace),
    }
    return await work[name]()


EXPECTED = {
    "prompt_chain": "The pipes have begun to rust.",
    "routing": ("sums", "42"),
    "parallel_workers": ["it timed out"],
    "orchestrator": "7 fruits",
    "evaluator": ("100 degrees Celsius", True),
    "hand_off": ('There are ["access.log","errors.log","notes.txt"]', ["front", "files"]),
}


@pytest.mark.parametrize("name", NAMES)
async def test_what_it_gives(example, name, workspace):
    module, tree = example(name)
    assert await call(name, module, tree, workspace) == EXPECTED[name]
    assert tree.budget.used.total_tokens > 0


@pytest.mark.parametrize("name", NAMES)
async def test_one_budget_for_the_tree(example, name, workspace, store):
    module, tree = example(name)
    tree.budget = Budget(max_total_tokens=1)
    if name == "parallel_workers":  # all of them had begun when the first had used it up
        await call(name, module, tree, workspace)
    with pytest.raises(Exception, match="Together the runs used"):
        await call(name, module, tree, workspace)
    # One turn is what it may be exceeded by, and of runs side by side one each.
    turns = [run.turns for run in store.runs()]
    assert sum(turns) == (3 if name == "parallel_workers" else 1)


@pytest.mark.parametrize("name", NAMES)
async def test_one_stop_for_the_tree(example, name, workspace, store):
    module, tree = example(name)
    tree.stop.cancel("enough")
    with pytest.raises(Exception, match="enough"):
        await call(name, module, tree, workspace)
    assert {run.interruption_kind for run in store.runs()} == {"cancelled"}
    assert sum(run.turns for run in store.runs()) == 0


@pytest.mark.parametrize("name", NAMES)
def test_as_a_program(name, tmp_path):
    env = {
        key: value for key, value in os.environ.items() if not key.startswith(("LLM_", "OPENAI"))
    }
    done = subprocess.run(
        [sys.executable, FOLDER / f"{name}.py"],
        env={**env, "UITWEG_DATA": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("name", [*NAMES, "common"])
def test_it_is_short(name):
    assert len((FOLDER / f"{name}.py").read_text().splitlines()) <= 70
