"""The slow tool: it reads a real archive and stops at once."""

from __future__ import annotations

import asyncio
import json
import time
import zipfile
from dataclasses import replace

import pytest

from harness.cancel import CancelToken
from harness.demo import copy_demo
from harness.execute import execute
from harness.tool import ToolContext
from harness.tools import scan_archive
from harness.tools.archive import DEMO_FILES, write_demo_archive
from harness.workspace import Workspace


@pytest.fixture
def context(tmp_path):
    return ToolContext(run_id="r", call_id="c", workspace=Workspace(tmp_path), cancel=CancelToken())


async def test_the_demo_archive_has_its_files_and_matches(context, tmp_path):
    write_demo_archive(tmp_path / ".archive.zip", seconds=0)
    result = await execute(scan_archive, {"word": "TimeOut"}, context)
    assert json.loads(result.content) == {"files": 1200, "matches": 37}
    assert context.workspace.listing() == []


async def test_progress_comes_every_200_files_over_the_demos_three_seconds(context, tmp_path):
    write_demo_archive(tmp_path / ".archive.zip")
    seen: list[int] = []
    started = time.monotonic()
    followed = replace(context, report=lambda _message, done, _total: seen.append(done))
    await execute(scan_archive, {"word": "x"}, followed)
    assert seen == [200, 400, 600, 800, 1000, 1200]
    assert time.monotonic() - started >= 3.0


async def test_h13_a_scan_is_stopped_where_it_is(context, tmp_path):
    write_demo_archive(tmp_path / ".archive.zip", seconds=60)
    asyncio.get_running_loop().call_later(0.2, context.cancel.cancel, "Stop")
    result = await execute(scan_archive, {"word": "x"}, context)
    assert result.outcome == "cancelled"


async def test_an_archive_of_ones_own_is_read_at_full_speed(context, tmp_path):
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.mkdir("folder")
        archive.writestr("folder/a.txt", "a needle here")
        archive.writestr("folder/b.txt", "nothing")
    result = await execute(scan_archive, {"word": "needle"}, context)
    assert json.loads(result.content) == {"files": 2, "matches": 1}


@pytest.mark.parametrize("word", ["", "  "])
async def test_an_empty_word_is_refused(context, word):
    assert "word is empty" in (await execute(scan_archive, {"word": word}, context)).content


async def test_no_archive_and_no_real_archive_are_said(context, tmp_path):
    assert (
        "there is no archive here" in (await execute(scan_archive, {"word": "x"}, context)).content
    )
    (tmp_path / "archive.zip").write_bytes(b"PK nonsense")
    assert "cannot be read" in (await execute(scan_archive, {"word": "x"}, context)).content


async def test_an_archive_by_link_is_refused(context, tmp_path, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "a.zip"
    write_demo_archive(outside, seconds=0)
    (tmp_path / "archive.zip").symlink_to(outside)
    assert "symbolic link" in (await execute(scan_archive, {"word": "x"}, context)).content


def test_the_demo_has_the_archive_and_does_not_list_it(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    copy_demo(tmp_path)
    assert Workspace(tmp_path).listing() == ["access.log", "errors.log", "notes.txt"]
    assert len(zipfile.ZipFile(tmp_path / ".archive.zip").infolist()) == DEMO_FILES
    assert (tmp_path / "notes.txt").read_text() == "mine"
