"""The benchmarks on the small model: that they run to their end and tell what they measured."""

from __future__ import annotations

import os

import pytest

from models.store import Store
from uitweg.bench import work
from uitweg.bench.servers import Setup
from uitweg.main import run

pytestmark = pytest.mark.engine


@pytest.fixture
def cache(small_model, tmp_path, monkeypatch):
    """A cache of its own with a link to the small model in it."""
    monkeypatch.setenv("UITWEG_CACHE", str(tmp_path))
    (tmp_path / "models").mkdir()
    os.link(small_model.path, tmp_path / "models" / small_model.path.name)
    return tmp_path


def test_bench_prints_a_table_and_a_roofline(cache, small_model, capsys) -> None:
    arguments = ["bench", "--model", small_model.name, "--rounds", "1", "--only", "alone"]
    assert run(arguments) == 0
    out = capsys.readouterr().out
    assert "decode, one request" in out
    assert "roofline: memory gives" in out


def test_optimise_makes_a_file_that_is_used_only_by_name(
    cache, small_model, capsys, monkeypatch
) -> None:
    monkeypatch.setattr("uitweg.bench.work.TASKS", work.TASKS[:1])
    assert run(["models", "optimise", small_model.name]) == 0
    out = capsys.readouterr().out
    for what in ("file", "prefill", "decode", "perplexity", "the six tasks, 2 turns"):
        assert what in out
    made = Store().verify(f"{small_model.name}-q4_0")
    assert made.bytes < small_model.bytes
    assert run(["models", "list"]) == 0
    assert f"made here of {small_model.name}" in capsys.readouterr().out


def test_a_short_soak_has_no_wrong_text(small_model, capsys) -> None:
    from uitweg.bench.soak import soak

    setup = Setup(small_model.path, small_model.sha256, 2)
    result = soak(setup, 12, lambda _line: None, seed=3)
    assert (result.wrong, result.failed) == (0, 0)
    assert result.requests == 12


def test_steps_are_measured_by_their_rows(small_model) -> None:
    from uitweg.bench.steps import ROWS, steps

    spent, prefill = steps(Setup(small_model.path, small_model.sha256, 2), 1)
    assert tuple(spent) == ROWS
    assert min(*spent.values(), prefill) > 0
