"""Prefilled prefixes on disk: found again, checked, bounded, and right."""

from __future__ import annotations

import os

import numpy as np
import pytest

from server.engine.kept import WORTH, KeptStates

FITS = {"model": "m", "build": "b"}
IDS = np.arange(100, dtype=np.int32)


def keep(root, fits=FITS, **options):
    return KeptStates(root, fits, **options)


def test_what_was_saved_is_found_by_another_process(tmp_path) -> None:
    assert keep(tmp_path).save(IDS, b"state")
    again = keep(tmp_path)
    kept, shared = again.find(np.arange(200, dtype=np.int32), 0)
    assert (shared, again.load(kept)) == (100, b"state")
    assert again.has(IDS)


def test_a_part_is_worth_it_only_if_it_saves_enough(tmp_path) -> None:
    states = keep(tmp_path)
    states.save(IDS, b"state")
    assert states.find(IDS, 100 - WORTH) is not None
    assert states.find(IDS, 100 - WORTH + 1) is None
    assert states.find(np.flip(IDS), 0) is None


def test_another_model_build_or_setting_finds_nothing(tmp_path) -> None:
    keep(tmp_path).save(IDS, b"state")
    assert keep(tmp_path, {**FITS, "build": "c"}).find(IDS, 0) is None


@pytest.mark.parametrize("change", ["flip", "short", "empty", "text"])
def test_a_damaged_file_is_never_used(tmp_path, change) -> None:
    keep(tmp_path).save(IDS, b"state" * 100)
    (path,) = tmp_path.glob("*/*.state")
    data = path.read_bytes()
    changed = {
        "flip": data[:-1] + bytes([data[-1] ^ 1]),
        "short": data[:-40],
        "empty": b"",
        "text": b"not a state",
    }
    states = keep(tmp_path)
    path.write_bytes(changed[change])
    kept, _ = states.find(IDS, 0)
    assert states.load(kept) is None
    assert states.find(IDS, 0) is None
    assert not path.exists()
    path.write_bytes(changed[change])
    fresh = keep(tmp_path)
    found = fresh.find(IDS, 0)
    assert found is None or fresh.load(found[0]) is None


def test_the_longest_unused_go_first(tmp_path) -> None:
    states = keep(tmp_path, most_bytes=4 * 2000)
    for number in range(4):
        states.save(IDS + number, bytes(1400))
        path = sorted(tmp_path.glob("*/*.state"), key=lambda p: p.stat().st_mtime_ns)[-1]
        os.utime(path, ns=(number * 10**9, number * 10**9))
    states.save(IDS + 4, bytes(1400))
    assert not states.has(IDS)
    assert states.has(IDS + 4)
    assert sum(p.stat().st_size for p in tmp_path.glob("*/*")) <= 8000
    assert not states.save(IDS + 5, bytes(3000))


def test_a_folder_that_cannot_be_written_only_costs_time(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    assert not keep(tmp_path / "file").save(IDS, b"state")


@pytest.mark.engine
def test_a_restart_does_not_compute_the_common_part_again(started, asked, tmp_path) -> None:
    common = "These are the rules of the house, and there are many of them. " * 8
    texts, loads = [], []
    for question in ("Who cooks?", "Who cooks?", "Who sweeps?"):
        engine = started(tmp_path)
        try:
            ask = asked(engine)
            keep_at = len(engine.model.tokenize(common, begin=True)) - 2
            reply = ask.reply(common + question, 16, keep=keep_at)
            texts.append(reply.whole)
            loads.append(engine.figures.kept_loads)
            if loads[-1]:
                assert reply.ending.cached_tokens == keep_at
            else:
                assert engine.figures.kept_saves == 1
        finally:
            engine.close()
    assert loads == [0, 1, 1]
    assert texts[0] == texts[1]
