"""The file tools over a real folder."""

from __future__ import annotations

import pytest

from harness.cancel import CancelToken
from harness.execute import execute
from harness.output import OUTPUT_CAP
from harness.tool import ToolContext
from harness.tools import delete_file, list_files, read_file
from harness.workspace import Workspace


@pytest.fixture
def context(tmp_path):
    for name in ("notes.txt", "access.log", "errors.log"):
        (tmp_path / name).write_text(f"{name}\n")
    return ToolContext(run_id="r", call_id="c", workspace=Workspace(tmp_path), cancel=CancelToken())


async def test_the_listing_is_compact_json(context):
    result = await execute(list_files, {}, context)
    assert result.content == '["access.log","errors.log","notes.txt"]'


async def test_a_file_is_read_exactly(context):
    assert (await execute(read_file, {"path": "notes.txt"}, context)).content == "notes.txt\n"


async def test_a_missing_file_is_said_with_what_to_do(context):
    result = await execute(read_file, {"path": "timeout.log"}, context)
    assert result.outcome == "error"
    assert result.content == "no such file: timeout.log. Call list_files to see what exists."
    assert (await execute(delete_file, {"path": "x"}, context)).content.startswith(
        "no such file: x."
    )


async def test_a_long_file_is_cut_while_reading(context, tmp_path):
    with (tmp_path / "huge.log").open("wb") as file:
        file.write(b"line\n" * 2000)
        file.truncate(10 * 1024**4)  # sparse: 10 TiB that nobody may read
    result = await execute(read_file, {"path": "huge.log"}, context)
    assert result.left_out_bytes == 10 * 1024**4 - OUTPUT_CAP
    assert result.content.startswith("line\nline\n")
    assert "more bytes left out" in result.content


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"", "x is empty."), (b"a\xe9b", "a\\xe9b"), (b"\x7fELF\0\0", "binary file of 6 bytes")],
)
async def test_what_is_no_text_is_shown_safely(context, tmp_path, data, said):
    (tmp_path / "x").write_bytes(data)
    assert said in (await execute(read_file, {"path": "x"}, context)).content


async def test_a_deletion_is_described_with_size_and_beginning(context, tmp_path):
    (tmp_path / "notes.txt").write_text("first\nsecond\nthird\nfourth\n")
    said = delete_file.describe_effect({"path": "notes.txt"}, context.workspace)
    assert said == ("Deletes notes.txt (26 bytes) for good. It begins with:\nfirst\nsecond\nthird")
    assert "no such file" in delete_file.describe_effect({"path": "x"}, context.workspace)
    assert "leaves the workspace" in delete_file.describe_effect(
        {"path": "../x"}, context.workspace
    )


async def test_a_deletion_deletes_and_says_so(context, tmp_path):
    result = await execute(delete_file, {"path": "access.log"}, context)
    assert result.content == "deleted access.log"
    assert not (tmp_path / "access.log").exists()


def test_the_fingerprint_moves_with_the_file(context, tmp_path):
    def take():
        return delete_file.fingerprint({"path": "notes.txt"}, context.workspace)

    first = take()
    assert first == take()
    (tmp_path / "notes.txt").write_text("other\n")
    second = take()
    (tmp_path / "notes.txt").unlink()
    assert len({first, second, take()}) == 3


def test_a_name_has_one_spelling_for_rules_and_approvals():
    assert delete_file.validate('{"path":"./sub//../notes.txt"}') == {"path": "sub/../notes.txt"}
    assert delete_file.validate('{"path":"./notes.txt"}') == {"path": "notes.txt"}
