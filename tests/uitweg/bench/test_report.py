"""Tables, ratios and the roofline."""

from __future__ import annotations

import json

import pytest

from models import gguf
from uitweg.bench import report, work
from uitweg.bench.cases import Measured
from uitweg.bench.roofline import Roofline, bandwidth, bytes_per_step
from uitweg.commands.optimise import compared, tasks_compared
from uitweg.main import run

SPEED = Measured("speed", "tokens/s", True, {"uitweg": [30, 33, 36], "peer": [30, 30, 31]})
WAIT = Measured("wait", "ms", False, {"broken": [], "uitweg": [50], "peer": [100], "other": [80]})


def test_a_ratio_above_one_is_better_for_us_whatever_the_unit() -> None:
    lines = report.table({"a": SPEED})
    assert lines[2].endswith("| 1.10  |")
    assert "33.0 tokens/s" in lines[2]
    assert report.table({"b": WAIT})[2].endswith("| 1.60  |")


def test_a_server_that_failed_is_told_from_one_that_was_not_asked() -> None:
    lines = report.table({"a": SPEED, "b": WAIT})
    cells = {name.strip() for name in lines[0].split("|")}
    assert {"broken", "other"} <= cells
    assert "not measured" in lines[2]
    assert "fails" not in lines[2]
    assert "fails" in lines[3]


def test_alone_there_is_no_ratio() -> None:
    lines = report.table({"a": Measured("speed", "tokens/s", True, {"uitweg": [30]})})
    assert "ratio" not in lines[0]


def test_every_figure_is_saved(tmp_path) -> None:
    report.save(tmp_path / "all.json", {"model": "m"}, {"a": SPEED})
    saved = json.loads((tmp_path / "all.json").read_text())
    assert saved["model"] == "m"
    assert saved["cases"]["a"]["rounds"]["peer"] == [30, 30, 31]


def test_the_machine_is_named() -> None:
    assert "2 threads" in report.machine(2)


def test_roofline() -> None:
    assert Roofline(20e9, 400_000_000).steps_per_s == 50
    assert bandwidth(1) > 1e8


@pytest.mark.engine
def test_a_step_reads_the_weights_but_not_a_table_of_its_own(small_model) -> None:
    sizes = gguf.check(small_model.path).sizes
    # This model's table is its output head too, so all of it is read.
    assert bytes_per_step(small_model.path) == sum(sizes.values())


def test_the_work_is_two_turns_of_six_tasks() -> None:
    turns = work.turns()
    assert len(turns) == 12
    assert [len(turn["messages"]) for turn in turns[:2]] == [2, 4]
    assert work.task(0, "x ")["messages"][0]["content"].startswith("x ")


def test_a_case_that_is_not_known(small_model, capsys, monkeypatch) -> None:
    monkeypatch.setenv("UITWEG_CACHE", str(small_model.path.parents[1]))
    assert run(["bench", "--model", small_model.name, "--only", "nothing"]) == 2
    assert "nothing is no case" in capsys.readouterr().err


def test_gains_and_losses_in_lines() -> None:
    from server.engine.optimise import Measures

    lines = compared(Measures(491_000_000, 10, 100, 30), Measures(350_000_000, 11, 150, 42))
    assert lines[1].split() == ["prefill", "100.0", "->", "150.0", "tokens/s", "+50%"]
    assert "(lower is better)" in lines[3]
    assert "2 turns: 1 -> 1" in tasks_compared([[["f", "{}"]], "text"], [[["f", "{}"]], "other"])
