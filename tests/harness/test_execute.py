"""One tool call, whatever the tool does."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cancel import CancelToken
from harness.execute import execute
from harness.output import NOTHING, OUTPUT_CAP
from harness.tool import PermanentToolError, ToolContext, ToolError, tool
from harness.workspace import Workspace

TOOLS = Path(__file__).parent / "killable_tools.py"


@pytest.fixture
def context(tmp_path):
    return ToolContext(
        run_id="r", call_id="c", idempotency_key="r:c", workspace=Workspace(tmp_path),
        cancel=CancelToken(),
    )  # fmt: skip


@pytest.fixture(scope="session")
def killable():
    spec = importlib.util.spec_from_file_location("killable_tools", TOOLS)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


def reading(function):
    return tool(effect="read")(function)


async def wait_for_file(path: Path) -> str:
    while not path.exists():
        await asyncio.sleep(0.005)
    return path.read_text()


def is_alive(pid: int) -> bool:
    try:
        state = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True
        )
    except OSError:
        return False
    return bool(state.stdout.strip()) and not state.stdout.strip().startswith("Z")


# What tools give back


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text\n", "text\n"),
        (b"a\xffb", "a\\xffb"),
        ("", NOTHING),
        (None, NOTHING),
        ("  \n", NOTHING),
        ([1, "ä"], '[1,"ä"]'),
        ({"path": Path("x")}, '{"path":"x"}'),
        (0, "0"),
        (False, "false"),
        ("a\ud800b", "a\\ud800b"),
    ],
)
async def test_every_result_becomes_words(context, value, content):
    @reading
    def give() -> object:
        """Give."""
        return value

    @reading
    async def give_later() -> object:
        """Give later."""
        return value

    for one in (give, give_later):
        result = await execute(one, {}, context)
        assert (result.outcome, result.content) == ("ok", content)


class Unshowable:
    def __init__(self) -> None:
        self.me = [self]


@pytest.mark.parametrize("value", [object(), Unshowable(), {(1, 2): 3}, [lambda: 1]])
async def test_a_result_without_text_form_is_an_error_in_words(context, value):
    @reading
    def give() -> object:
        """Give."""
        return value

    result = await execute(give, {}, context)
    assert result.outcome == "error"
    assert "cannot be shown" in result.content


async def test_a_coroutine_by_mistake_is_an_error_in_words(context):
    async def inner() -> str:
        return "x"

    @reading
    def give() -> object:
        """Give."""
        return inner()

    assert "cannot be shown" in (await execute(give, {}, context)).content


class Unspeakable(ToolError):
    """Whoever asks what is wrong is told nothing."""

    def __str__(self) -> str:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("error", "content"),
    [
        (Unspeakable(), "(it cannot be shown: ZeroDivisionError)"),
        (ToolError("no such file: x."), "no such file: x."),
        (ToolError(""), "fail failed and did not say why."),
        (ValueError("bad"), "fail failed: ValueError: bad"),
        (SystemExit(3), "fail failed: RuntimeError: SystemExit 3"),
        (KeyboardInterrupt(), "fail failed: RuntimeError: KeyboardInterrupt"),
        (StopIteration(), "fail failed: RuntimeError: "),
        (RecursionError(), "fail failed: RecursionError: "),
    ],
)
async def test_every_error_goes_to_the_model_in_words(context, error, content):
    @reading
    def fail() -> str:
        """Fail."""
        raise error

    @reading
    async def fail_later() -> str:
        """Fail."""
        raise error

    for one in (fail, fail_later):
        result = await execute(one, {}, context)
        assert result.outcome == "error"
        assert result.content.replace("fail_later", "fail").startswith(content)
        assert not result.permanent


async def test_no_use_trying_again_is_passed_on(context):
    @reading
    async def fail() -> str:
        """Fail."""
        raise PermanentToolError("locked")

    result = await execute(fail, {}, context)
    assert (result.outcome, result.permanent, result.content) == ("error", True, "locked")


async def test_arguments_are_checked_once_more_before_the_call(context):
    @reading
    def give(path: str) -> str:
        """Give."""
        return path

    result = await execute(give, {"path": 3}, context)
    assert result.outcome == "invalid"
    assert "`path` is a number" in result.content


# Output without end


async def test_long_text_is_cut_and_says_how_much_is_missing(context):
    @reading
    def give() -> str:
        """Give."""
        return "ä" * OUTPUT_CAP

    result = await execute(give, {}, context)
    assert result.left_out_bytes == OUTPUT_CAP
    assert result.content.endswith(
        f"[{OUTPUT_CAP:,} more bytes left out: at most 8,192 bytes are shown.]"
    )
    assert "\\x" not in result.content


@pytest.mark.parametrize("offset", range(4))
async def test_a_character_is_never_cut_in_two(context, offset):
    @reading
    def give() -> str:
        """Give."""
        return "x" * (OUTPUT_CAP - offset) + "\N{GRINNING FACE}" * 10

    text = (await execute(give, {}, context)).content
    assert "\\x" not in text
    assert text.startswith("x" * (OUTPUT_CAP - offset))


async def test_a_generator_without_end_is_stopped_while_it_produces(context):
    closed = threading.Event()

    @reading
    def flood() -> object:
        """Flood."""
        try:
            while True:
                yield "x" * 100
        finally:
            closed.set()

    @reading
    async def flood_later() -> object:
        """Flood."""
        while True:
            yield b"x" * 100

    for one in (flood, flood_later):
        result = await execute(one, {}, context)
        assert result.outcome == "ok"
        assert len(result.content) < OUTPUT_CAP + 200
        assert "The rest left out" in result.content
    assert closed.is_set()


async def test_a_generator_of_something_else_is_an_error(context):
    @reading
    def count() -> object:
        """Count."""
        yield 1

    assert "must give text" in (await execute(count, {}, context)).content


# Stop


async def test_h13_a_blocking_tool_that_looks_at_its_token_is_stopped(context):
    @reading
    def wait(context: ToolContext) -> str:
        """Wait."""
        context.progress("begun", 1, 9)
        while True:
            context.cancel.raise_if_cancelled()
            time.sleep(0.001)

    asyncio.get_running_loop().call_later(0.05, context.cancel.cancel, "you pressed Stop")
    result = await execute(wait, {}, context)
    assert result.outcome == "cancelled"
    assert "you pressed Stop" in result.content
    assert "begun" in result.content


async def test_h13_an_async_tool_is_cancelled(context):
    cleaned = []

    @reading
    async def wait() -> str:
        """Wait."""
        try:
            await asyncio.sleep(3600)
        finally:
            cleaned.append(True)
        return "never"

    asyncio.get_running_loop().call_later(0.05, context.cancel.cancel, "Stop")
    assert (await execute(wait, {}, context)).outcome == "cancelled"
    assert cleaned == [True]


async def test_h13_a_tool_that_does_not_stop_is_abandoned_and_its_late_result_dropped(context):
    release, ended = threading.Event(), threading.Event()
    seen = []

    @tool
    def deaf(context: ToolContext) -> str:
        """Ignore."""
        release.wait()
        context.progress("late", None, None)
        ended.set()
        return "late result"

    asyncio.get_running_loop().call_later(0.05, context.cancel.cancel, "Stop")
    result = await execute(deaf, {}, replace(context, report=lambda *item: seen.append(item)))
    release.set()
    await asyncio.to_thread(ended.wait)
    await asyncio.sleep(0.01)
    assert result.outcome == "abandoned"
    assert "did not" in result.content
    assert seen == []


async def test_h13_an_async_tool_that_swallows_its_cancellation_is_abandoned(context):
    @reading
    async def deaf() -> str:
        """Ignore."""
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(3600)

    asyncio.get_running_loop().call_later(0.05, context.cancel.cancel, "Stop")
    assert (await execute(deaf, {}, context)).outcome == "abandoned"


ABANDONS = """
import asyncio, time
from harness.cancel import CancelToken
from harness.execute import execute
from harness.tool import ToolContext, tool
from harness.workspace import Workspace

@tool(effect="read", timeout=0.01)
def blocks() -> str:
    "Block."
    time.sleep(3600)
    return ""

@tool(effect="read", timeout=0.01)
async def swallows() -> str:
    "Swallow."
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

async def main():
    for one in (blocks, swallows):
        token, here = CancelToken(), Workspace(".")
        context = ToolContext(run_id="r", call_id="c", workspace=here, cancel=token)
        print((await execute(one, {}, context)).outcome)

asyncio.run(main())
"""


def test_h13_abandoned_tools_do_not_keep_the_process(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", ABANDONS], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout.split()) == (0, ["abandoned"] * 2), done.stderr


async def test_a_tool_that_finished_all_the_same_is_told_as_it_was(context):
    @tool
    def write(context: ToolContext) -> str:
        """Write."""
        while not context.cancel.cancelled:
            time.sleep(0.001)
        return "written"

    asyncio.get_running_loop().call_later(0.02, context.cancel.cancel, "Stop")
    result = await execute(write, {}, context)
    assert (result.outcome, result.content) == ("ok", "written")


async def test_a_time_limit_stops_the_tool_and_not_the_run(context):
    @tool(effect="read", timeout=0.05)
    async def slow() -> str:
        """Be slow."""
        await asyncio.sleep(3600)
        return ""

    @tool(effect="write", timeout=0.05)
    def polite(context: ToolContext) -> str:
        """Be slow."""
        while True:
            context.cancel.raise_if_cancelled()

    first, second = await execute(slow, {}, context), await execute(polite, {}, context)
    assert (first.outcome, second.outcome) == ("error", "error")
    assert "took longer than 0.05 s" in first.content
    assert "part of its work" in second.content
    assert not context.cancel.cancelled


async def test_cancelling_the_callers_task_stops_the_tool(context):
    stopped = threading.Event()

    @reading
    def wait(context: ToolContext) -> str:
        """Wait."""
        while not context.cancel.cancelled:
            time.sleep(0.001)
        stopped.set()
        return ""

    task = asyncio.ensure_future(execute(wait, {}, context))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped.is_set()


async def test_progress_is_thinned_and_its_last_word_kept(context):
    seen: list[tuple[object, ...]] = []

    @reading
    def count(context: ToolContext) -> str:
        """Count."""
        for number in range(10_000):
            context.progress("x" * 1000, number, 10_000)
        return "done"

    await execute(count, {}, replace(context, report=lambda *item: seen.append(item)))
    assert 2 <= len(seen) < 1000
    assert (seen[0][1], seen[-1][1]) == (0, 9999)
    assert len(str(seen[0][0])) == 500


# Killable tools


async def test_a_killable_tool_runs_elsewhere_and_answers_the_same(context, killable, tmp_path):
    (tmp_path / "a.txt").touch()
    seen = []
    result = await execute(
        killable.pid_and_words, {"word": "hi"}, replace(context, report=lambda *i: seen.append(i))
    )
    printed, words = result.content.split("\n")
    assert printed == "printed"
    assert words.split()[0] == "hi"
    assert int(words.split()[1]) != os.getpid()
    assert words.endswith("r:c ['a.txt']")
    assert seen == [("half way", 1, 2)]
    assert (await execute(killable.later, {"word": "hi"}, context)).content == "hi"


async def test_a_killable_tool_is_killed_with_its_grandchildren(context, killable, tmp_path):
    running = asyncio.ensure_future(execute(killable.stubborn, {}, context))
    pids = [int(pid) for pid in (await wait_for_file(tmp_path / "ready")).split()]
    assert all(is_alive(pid) for pid in pids)
    context.cancel.cancel("Stop")
    assert (await running).outcome == "cancelled"
    escapable = pids if sys.platform == "linux" else pids[:1]
    assert not any(is_alive(pid) for pid in escapable)


async def test_what_a_killable_tool_leaves_behind_is_killed(context, killable):
    if sys.platform != "linux":
        pytest.skip("a process that left its group can be found on Linux only")
    result = await execute(killable.leaves_a_child_behind, {}, context)
    assert not is_alive(int(result.content))


async def test_a_killable_tool_may_stop_by_itself(context, killable, tmp_path):
    running = asyncio.ensure_future(execute(killable.stops_when_told, {}, context))
    await wait_for_file(tmp_path / "ready")
    context.cancel.cancel("Stop")
    assert (await running).outcome == "cancelled"


async def test_printing_without_end_is_bounded(context, killable):
    limited = replace(killable.prints_without_end, timeout=1.5)
    result = await execute(limited, {}, context)
    assert result.outcome == "error"
    assert "took longer" in result.content


async def test_printed_bytes_are_shown_safely(context, killable):
    assert (await execute(killable.prints_bytes, {}, context)).content == "a\\xff\\xfeb"


async def test_a_process_that_ends_early_is_an_error_in_words(context, killable):
    result = await execute(killable.dies, {}, context)
    assert result.outcome == "error"
    assert "last words" in result.content


async def test_errors_come_back_from_the_other_process(context, killable):
    results = [
        await execute(killable.fails, {"how": how}, context) for how in ("permanent", "told", "x")
    ]
    assert [result.permanent for result in results] == [True, False, False]
    assert [result.content for result in results][:2] == ["locked", "not today"]
    assert "ZeroDivisionError" in results[2].content


async def test_a_tool_that_no_other_process_can_find_says_so(context, killable):
    result = await execute(killable.not_at_the_top(), {}, context)
    assert "not a tool at the top of" in result.content


DIES = """
import asyncio, importlib.util, os, signal, sys
from harness.cancel import CancelToken
from harness.execute import execute
from harness.tool import ToolContext
from harness.workspace import Workspace

spec = importlib.util.spec_from_file_location("killable_tools", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
context = ToolContext(run_id="r", call_id="c", workspace=Workspace("."), cancel=CancelToken())
asyncio.run(execute(module.stops_when_told, {}, context))
"""


async def test_a_killed_harness_takes_its_tools_along(tmp_path):
    harness = subprocess.Popen([sys.executable, "-c", DIES, str(TOOLS)], cwd=tmp_path)
    await wait_for_file(tmp_path / "ready")
    children = json.loads(f"[{_children(harness.pid)}]")
    assert children
    harness.kill()
    harness.wait()
    for _ in range(2000):
        if not any(is_alive(pid) for pid in children):
            break
        await asyncio.sleep(0.01)
    assert not any(is_alive(pid) for pid in children)


def _children(pid: int) -> str:
    listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True)
    rows = [row.split() for row in listing.stdout.splitlines()]
    return ",".join(child for child, parent in rows if parent == str(pid))
