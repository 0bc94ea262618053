"""The helper for tests of one's own tools."""

from __future__ import annotations

import time

from harness import CancelToken, PermanentToolError, ToolContext, ToolError, tool
from harness.testing import call_tool, call_tool_async
from harness.tools import list_files, read_file


@tool(effect="read")
def shout(word: str, times: int = 1) -> str:
    """Say it loudly."""
    if word == "no":
        raise ToolError("that word is not said here")
    if word == "never":
        raise PermanentToolError("nobody says that")
    return word.upper() * times


def test_a_call_as_a_run_makes_it(tmp_path):
    (tmp_path / "a.txt").write_text("one two")
    done = call_tool(read_file, workspace=tmp_path, path="a.txt")
    assert (done.outcome, done.content) == ("ok", "one two")
    assert call_tool(shout, word="hey", times=2).content == "HEYHEY"


def test_without_a_workspace_it_is_an_empty_folder():
    assert call_tool(list_files).content == "[]"


def test_what_goes_wrong_is_an_outcome(tmp_path):
    assert call_tool(shout, word="no").content == "that word is not said here"
    assert call_tool(shout, word="never").permanent
    wrong = call_tool(shout, word=3)
    assert wrong.outcome == "invalid"
    assert "`word` is a number" in wrong.content


async def test_within_a_loop_with_progress_and_a_stop():
    token, heard = CancelToken(), []

    @tool
    def wait(context: ToolContext) -> str:
        """Wait for the stop."""
        context.progress("waiting", 1, 2)
        token.cancel("enough")
        while True:
            context.cancel.raise_if_cancelled()
            time.sleep(0.001)

    done = await call_tool_async(
        wait, cancel=token, on_progress=lambda message, *_: heard.append(message)
    )
    assert done.outcome == "cancelled"
    assert heard == ["waiting"]
